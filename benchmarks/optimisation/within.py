"""Compare slayr_py with BoTorch and BayBE on problems with linear constraints on inputs.

    python -m benchmarks.optimisation.within --seeds 5 --budget 50

Problems: two mixtures, and two with inequalities. All samplers evaluate the initial design of slayr_py first. BoTorch's
`optimize_acqf` and BayBE take the constraints as they are; random-inside draws uniformly from the points that satisfy
them. Each trial is appended to within-SAMPLER.csv; run the same command again to resume after an interruption. --report
only prints the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.problems import Problem
from benchmarks.common.results import markdown, mean_cell
from benchmarks.common.within_problems import WITHIN
from benchmarks.optimisation.report import START, best_values, budgets_up_to
from benchmarks.optimisation.runs import add_run_arguments, trials_of

NAME = "within"
SAMPLERS = ["slayr", "botorch", "baybe", "random-inside"]


def table(trials: pd.DataFrame, problems: Mapping[str, Problem], samplers: Sequence[str], budget: int) -> str:
    """Return the regret of the best value, the largest violation and the time of a suggestion, in Markdown."""
    if trials.empty:
        return "no stored trials"
    budgets = budgets_up_to(budget)
    best = best_values(trials, budgets)
    groups = trials.groupby(["problem", "sampler"])
    violation = groups["violation"].max()
    seconds = trials[trials["number"] >= START].groupby(["problem", "sampler"])["seconds"].mean()
    lines = []
    for name in [name for name in problems if name in best.index.unique("problem")]:
        regret = best.loc[name] - problems[name].minimum
        for sampler in [s for s in samplers if s in regret.index.unique("sampler")]:
            cells = [mean_cell(regret.loc[sampler, b].dropna()) for b in budgets]
            runs = regret.loc[sampler, max(budgets)].count()
            cells += [f"{violation[name, sampler]:.0e}", f"{seconds.get((name, sampler), np.nan):.2f}", f"{runs}"]
            lines.append([name, sampler, *cells])
    heads = ["problem", "sampler", *(f"at {b}" for b in budgets)]
    return markdown([*heads, "largest violation", "seconds per suggestion", "runs"], lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--problems", nargs="+", choices=WITHIN, default=list(WITHIN), metavar="PROBLEM")
    add_run_arguments(parser, __file__, SAMPLERS, seeds=5)
    options = begin(parser, arguments)
    if unable := [name for name in options.samplers if name.partition(":")[0] not in SAMPLERS]:
        raise SystemExit(f"{', '.join(unable)} cannot keep constraints on inputs; available: {', '.join(SAMPLERS)}")
    problems = {name: WITHIN[name] for name in options.problems}
    trials = trials_of(problems, options, NAME)
    print(table(trials, problems, options.samplers, options.budget))


if __name__ == "__main__":
    main()
