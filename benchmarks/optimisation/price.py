"""Compare the processor time of a suggestion for several objectives with that for the first objective alone.

    python -m benchmarks.optimisation.price

A study of each problem of benchmarks.optimisation.objectives has 50 evaluations: 25 anywhere, and 25 near those that
are non-dominated so far, as a loop has them. Another one has the same evaluations of the first objective. Both are
continued in turns, so that the load of the machine is the same for both; the first suggestion of each, whose fit is
cold, is left out. A row of price.csv is one suggestion. --report only prints the table of the medians.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import optuna
import pandas as pd

from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.objectives_problems import TRADEOFFS, Tradeoff
from benchmarks.common.results import ResultFile, add_result_arguments, markdown
from benchmarks.optimisation.runs import processor_time
from slayr_py.acquisition import non_dominated
from slayr_py.study import StanGPSampler, space_to_distributions
from slayr_py.study.storage.suggesting import suggest_all

KEYS = ["problem", "objectives"]
COLUMNS = [*KEYS, "observations", "seconds"]
PROBLEMS = ["zdt1", "dtlz2-2", "branin-currin", "wfg4", "dtlz2-3"]
ANYWHERE = 25
STORED = 50
STEP = 0.1  # standard deviation of a step from a non-dominated configuration, in units of the range


def as_in_a_loop(problem: Tradeoff) -> list[dict[str, Any]]:
    """Return configurations of which more and more are near the front."""
    rng = np.random.default_rng(0)
    low = np.array([parameter.lower for parameter in problem.space.values()])
    width = np.array([parameter.upper for parameter in problem.space.values()]) - low
    unit = rng.uniform(size=(ANYWHERE, len(low)))

    def configs() -> list[dict[str, Any]]:
        return [dict(zip(problem.space, row, strict=True)) for row in (low + width * unit).tolist()]

    while len(unit) < STORED:
        values = np.array([problem.objective(config) for config in configs()])
        front = unit[non_dominated(values)]
        step = STEP * rng.standard_normal(len(low))
        unit = np.vstack([unit, np.clip(front[rng.integers(len(front))] + step, 0, 1)])
    return configs()


def study_of(problem: Tradeoff, objectives: int) -> optuna.Study:
    """Return a study of the first objectives with the stored evaluations."""
    sampler = StanGPSampler(problem.space, seed=0, n_initial=STORED)
    study = optuna.create_study(directions=["minimize"] * objectives, sampler=sampler)
    distributions = space_to_distributions(problem.space)
    for config in as_in_a_loop(problem):
        values = list(problem.objective(config)[:objectives])
        study.add_trial(optuna.trial.create_trial(params=config, distributions=distributions, values=values))
    return study


def suggest(study: optuna.Study, problem: Tradeoff) -> float:
    """Make and evaluate a suggestion; return its processor time."""
    start = processor_time()
    trial = study.ask()
    params = suggest_all(trial, problem.space)
    seconds = processor_time() - start
    study.tell(trial, list(problem.objective(params)[: len(study.directions)]))
    return seconds


def table(rows: pd.DataFrame) -> str:
    """Return the medians and their ratios in Markdown."""
    medians = rows.groupby(KEYS)["seconds"].median()
    lines = []
    for problem in [name for name in PROBLEMS if name in medians.index.unique("problem")]:
        of_one, of_all = medians[problem].sort_index()
        cells = [str(len(TRADEOFFS[problem].reference)), f"{of_all:.2f}", f"{of_one:.2f}", f"{of_all / of_one:.1f}"]
        lines.append([problem, *cells])
    return markdown(["problem", "objectives", "seconds", "first alone", "ratio"], lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--suggestions", type=int, default=12, help="suggestions of each study")
    add_result_arguments(parser, __file__)
    options = begin(parser, arguments)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    stored = ResultFile(options.output / "price.csv", ["problem"], COLUMNS)
    if not options.report:
        for (name,) in stored.missing([(name,) for name in PROBLEMS]):
            problem = TRADEOFFS[name]
            studies = [study_of(problem, len(problem.reference)), study_of(problem, 1)]
            rows = []
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for number in range(options.suggestions):
                    for study in studies:
                        row = (name, len(study.directions), STORED + number, round(suggest(study, problem), 4))
                        rows.append(dict(zip(COLUMNS, row, strict=True)))
            stored.append(rows[2:])
    print(table(stored.rows()))


if __name__ == "__main__":
    main()
