"""Compare slayr_py with Optuna's samplers on problems with constraints.

    python -m benchmarks.optimisation.constrained --samplers slayr optuna-gp random --seeds 5 --budget 50

Problems: the two simulations of Gardner et al. (2014) and the design of a welded beam; with --suite bocode, designs and
test functions of that package (pip install bocode). Every evaluation reports its constraints with
`Trial.set_constraint`. Samplers: slayr, "slayr:key=value,..." and Optuna's, as in benchmarks.optimisation.suite. Each
trial is appended to constrained-SAMPLER.csv, or designs-SAMPLER.csv; run the same command again to resume after an
interruption. --report only prints the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from benchmarks.common.bocode_problems import CONSTRAINED as DESIGNS, designs
from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.constrained_problems import CONSTRAINED
from benchmarks.common.problems import Problem
from benchmarks.common.results import markdown, mean_cell
from benchmarks.optimisation.peers import Optuna
from benchmarks.optimisation.report import START, best_values, budgets_up_to, lost_table, rank_table
from benchmarks.optimisation.runs import add_run_arguments, require_kind, trials_of

NAME = "constrained"
SUITES = {NAME: NAME, "bocode": "designs"}
"""Names of the suites, with the beginnings of the names of their files."""
SAMPLERS = ["slayr", "optuna-gp", "optuna-tpe", "random"]
RUN = ["problem", "sampler", "seed"]


def table(trials: pd.DataFrame, problems: Mapping[str, Problem], samplers: Sequence[str], budget: int) -> str:
    """Return regrets, numbers of feasible evaluations and times, average ranks, and lost problems, in Markdown.

    A regret is that of the best feasible value, or this value if the minimum is unknown.
    """
    if trials.empty:
        return "no stored trials"
    budgets = budgets_up_to(budget)
    trials = finished(trials[trials["number"] < budget], max(budgets))
    if trials.empty:
        return "no finished runs"
    best = best_values(feasible_only(trials), budgets)
    number = (trials["violation"] <= 0).groupby([trials[key] for key in RUN]).sum()
    seconds = trials[trials["number"] >= START].groupby(["problem", "sampler"])["seconds"].mean()
    heads = ["problem", "sampler", *(f"at {b}" for b in budgets), "feasible evaluations", "seconds per suggestion"]
    lines = []
    for name in [name for name in problems if name in best.index.unique("problem")]:
        regret = best.loc[name] - np.nan_to_num(problems[name].minimum)
        for sampler in [s for s in samplers if s in regret.index.unique("sampler")]:
            cells = [regret_cell(regret.loc[sampler, b]) for b in budgets]
            cells += [f"{number[name, sampler].mean():.1f}", f"{seconds.get((name, sampler), np.nan):.2f}"]
            lines.append([name, sampler, *cells])
    ranked = best.fillna(np.inf)  # a run without a feasible value is last
    present = [name for name in samplers if name in best.index.unique("sampler")]
    return "\n\n".join([markdown(heads, lines), rank_table(ranked, present), lost_table(ranked, present)])


def finished(trials: pd.DataFrame, budget: int) -> pd.DataFrame:
    """Return the trials of runs with this many evaluations: a shorter one may only lack a feasible value so far."""
    return trials[trials.groupby(RUN)["number"].transform("size") >= budget]


def feasible_only(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the trials without the values of infeasible ones, which are never the best of a run."""
    feasible = trials["violation"] <= 0
    return trials.assign(value=trials["value"].where(feasible, np.inf), exact=trials["exact"].where(feasible))


def regret_cell(regrets: pd.Series) -> str:
    """Return "mean ± standard error, runs with a feasible evaluation / runs"; the mean is over the former."""
    feasible = regrets.dropna()
    share = f"{len(feasible)}/{len(regrets)}"
    return share if feasible.empty else f"{mean_cell(feasible)}, {share}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--suite", choices=list(SUITES), default=NAME, help="(default: %(default)s)")
    parser.add_argument("--problems", nargs="+", metavar="PROBLEM", help="(default: all)")
    add_run_arguments(parser, __file__, SAMPLERS, seeds=5)
    options = begin(parser, arguments)
    require_kind(options.samplers, (Optuna,), "told constraints", SAMPLERS)
    problems = CONSTRAINED if options.suite == NAME else designs(DESIGNS)
    if missing := set(options.problems or ()) - set(problems):
        raise SystemExit(f"no problem {sorted(missing)}; available: {list(problems)}")
    problems = {name: problems[name] for name in options.problems or problems}
    trials = trials_of(problems, options, SUITES[options.suite])
    print(table(trials, problems, options.samplers, options.budget))


if __name__ == "__main__":
    main()
