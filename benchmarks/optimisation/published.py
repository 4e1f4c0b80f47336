"""Print the results of Oh et al. (2021) beside those of slayr_py and other samplers.

    python -m benchmarks.optimisation.published --data DIR --problems func2c func3c --budget 200

Func2C, Func3C, Ackley5C, NuSVR and XGBoost for 200 evaluations from the five initial designs of the authors' public
program (supplement, sections 5.1 to 5.5). Func2C, Func3C, Ackley5C and NuSVR are the objectives of the paper; XGBoost
has its space, but smaller data, so that its errors are not comparable with the printed ones. Each trial is appended to
published-SAMPLER.csv; run the same command again to resume, and with a larger --budget to extend the runs.

The table has the mean best value and its standard error. Rows "own design" are stored runs of
`benchmarks.optimisation.suite`. "k/n" is the number of runs within 0.001 of the minimum. --report only prints it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.problems import PROBLEMS, Problem
from benchmarks.common.published_results import N_RUNS, PUBLISHED, published_design
from benchmarks.common.results import markdown, mean_cell
from benchmarks.optimisation.peers import Optuna
from benchmarks.optimisation.report import BUDGETS, best_values
from benchmarks.optimisation.runs import add_run_arguments, read_trials, require_kind, trials_of
from benchmarks.optimisation.suite import problems_of

SAMPLERS = ["slayr", "optuna-gp", "optuna-tpe", "random"]
NEAR = 0.001


def published_problems(data: Path | None) -> dict[str, Problem]:
    """Return the problems of the paper with its designs; NuSVR and XGBoost need the folder of their data."""
    found = {}
    for name, problem in problems_of(data).items():
        if name in PUBLISHED:
            found[name] = problem._replace(design=partial(published_design, name, problem.space))
    return found


def report(folder: Path, samplers: Sequence[str], names: Sequence[str] = tuple(PUBLISHED)) -> str:
    """Return the printed results and the stored ones, one column for each problem."""
    lines = []
    for method in PUBLISHED[names[0]]:
        printed = (PUBLISHED[name][method] for name in names)
        lines.append([f"{method}, printed", "200", *(f"{mean:.4f} ± {error:.4f}" for mean, error in printed)])
    for sampler in samplers:
        for benchmark, design in (("published", "paper's design"), ("suite", "own design")):
            trials = read_trials(folder, [sampler], benchmark)
            trials = trials[trials["problem"].isin(names)]
            best = best_values(trials, BUDGETS)
            for budget in BUDGETS:
                values = best[budget].dropna()
                wanted = sampler == "slayr" and budget == 200 and benchmark == "published"
                if len(values) or wanted:
                    cells = (_cell(values[values.index.get_level_values("problem") == name], name) for name in names)
                    lines.append([f"{sampler}, {design}", str(budget), *cells])
    return markdown(["method", "evaluations", *names], lines)


def _cell(values: pd.Series, name: str) -> str:
    """Return the mean, its standard error, and the runs near the minimum or, if it is unknown, all runs."""
    if values.empty:
        return "not run"
    minimum = PROBLEMS[name].minimum if name in PROBLEMS else np.nan
    near = f"{(values - minimum <= NEAR).sum()}/{len(values)}" if np.isfinite(minimum) else f"{len(values)} runs"
    return f"{mean_cell(values, 4)}, {near}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--data", type=Path, help="folder with boston_housing.csv and optdigits.csv")
    parser.add_argument("--problems", nargs="+", choices=list(PUBLISHED), default=list(PUBLISHED), metavar="PROBLEM")
    add_run_arguments(parser, __file__, SAMPLERS, seeds=N_RUNS)
    parser.set_defaults(budget=200)
    options = begin(parser, arguments)
    require_kind(options.samplers, (Optuna,), "given the designs of the paper", SAMPLERS)
    if not options.report:
        problems = published_problems(options.data)
        if missing := [name for name in options.problems if name not in problems]:
            raise SystemExit(f"{', '.join(missing)} need files; name their folder with --data")
        trials_of({name: problems[name] for name in options.problems}, options, "published")
    print(report(options.output, options.samplers, options.problems))


if __name__ == "__main__":
    main()
