"""Compare slayr_py with Optuna's samplers on problems with constraints.

    python -m benchmarks.optimisation.constrained --samplers slayr optuna-gp random --seeds 5 --budget 50

Problems: the two simulations of Gardner et al. (2014) and the design of a welded beam. Every evaluation reports its
constraints with `Trial.set_constraint`. Samplers: slayr, "slayr:key=value,..." and Optuna's, as in
benchmarks.optimisation.suite. Each trial is appended to constrained-SAMPLER.csv; run the same command again to resume
after an interruption. --report only prints the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.constrained_problems import CONSTRAINED
from benchmarks.common.problems import Problem
from benchmarks.common.studies import standard_error
from benchmarks.optimisation.peers import N_INITIAL, Optuna, peer
from benchmarks.optimisation.report import BUDGETS, best_values
from benchmarks.optimisation.runs import read_trials, run_all

NAME = "constrained"
SAMPLERS = ["slayr", "optuna-gp", "optuna-tpe", "random"]
RUN = ["problem", "sampler", "seed"]


def table(trials: pd.DataFrame, problems: Mapping[str, Problem], samplers: Sequence[str], budget: int) -> str:
    """Return the regret of the best feasible value, the number of feasible evaluations and the time, in Markdown."""
    if trials.empty:
        return "no stored trials"
    budgets = [b for b in BUDGETS if b <= budget] or [budget]
    trials = finished(trials[trials["number"] < budget], max(budgets))
    if trials.empty:
        return "no finished runs"
    best = best_values(feasible_only(trials), budgets)
    number = (trials["violation"] <= 0).groupby([trials[key] for key in RUN]).sum()
    seconds = trials[trials["number"] >= N_INITIAL].groupby(["problem", "sampler"])["seconds"].mean()
    heads = ["problem", "sampler", *(f"at {b}" for b in budgets), "feasible evaluations", "seconds per suggestion"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name in [name for name in problems if name in best.index.unique("problem")]:
        regret = best.loc[name] - problems[name].minimum
        for sampler in [s for s in samplers if s in regret.index.unique("sampler")]:
            cells = [regret_cell(regret.loc[sampler, b]) for b in budgets]
            cells += [f"{number[name, sampler].mean():.1f}", f"{seconds.get((name, sampler), np.nan):.2f}"]
            lines.append(f"| {name} | {sampler} | {' | '.join(cells)} |")
    return "\n".join(lines)


def finished(trials: pd.DataFrame, budget: int) -> pd.DataFrame:
    """Return the trials of runs with this many evaluations: a shorter one may only lack a feasible value so far."""
    return trials[trials.groupby(RUN)["number"].transform("size") >= budget]


def feasible_only(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the trials without the values of infeasible ones, which are never the best of a run."""
    feasible = trials["violation"] <= 0
    return trials.assign(value=trials["value"].where(feasible, np.inf), exact=trials["exact"].where(feasible))


def regret_cell(regrets: pd.Series) -> str:
    """Return "mean ± standard error, runs with a feasible evaluation / runs"; the mean is over the former."""
    found = regrets.dropna()
    if found.empty:
        return f"0/{len(regrets)}"
    error = f" ± {standard_error(found):.2g}" if len(found) > 1 else ""
    return f"{found.mean():.3g}{error}, {len(found)}/{len(regrets)}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--problems", nargs="+", choices=CONSTRAINED, default=list(CONSTRAINED), metavar="PROBLEM")
    parser.add_argument("--samplers", nargs="+", default=SAMPLERS, help="sampler names (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=5, help="runs per problem and sampler")
    parser.add_argument("--budget", type=int, default=50, help="evaluations per run")
    parser.add_argument("--jobs", type=int, default=1, help="number of parallel runs")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results", help="folder of the files")
    parser.add_argument("--report", action="store_true", help="run nothing; print the table of the stored trials")
    options = begin(parser, arguments)
    if without := [sampler for sampler in options.samplers if not issubclass(peer(sampler).kind, Optuna)]:
        raise SystemExit(f"{', '.join(without)} cannot be told constraints; available: {', '.join(SAMPLERS)}")
    problems = {name: CONSTRAINED[name] for name in options.problems}
    if not options.report:
        for sampler in options.samplers:
            run_all(problems, sampler, options.seeds, options.budget, options.output, options.jobs, name=NAME)
    trials = read_trials(options.output, options.samplers, NAME)
    trials = trials[trials["problem"].isin([*problems]) & (trials["seed"] < options.seeds)]
    print(table(trials, problems, options.samplers, options.budget))


if __name__ == "__main__":
    main()
