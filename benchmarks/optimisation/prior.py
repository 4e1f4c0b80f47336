"""Measure what a belief about the location of the optimum costs or saves.

    python -m benchmarks.optimisation.prior --seeds 5 --budget 100

Each study stops at the first value within 1% of the objective's standard deviation over the space (4,096 points) of its
minimum. The belief is right (normal distributions around the optimum, a tenth of the range wide; 80% for each best
level), wrong (the same in a corner with bad values, 5 or 10% for each best level) or absent. Printed are the numbers of
evaluations, the initial design included, and their ratio to the studies without a belief; a study that does not reach
the target counts with its budget. Seeds without a run for every belief are left out. Each run is appended to prior.csv;
run the same command again to resume after an interruption. --report only prints the table.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import slayr_py as sl
from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.problems import PROBLEMS
from benchmarks.common.results import ResultFile, add_result_arguments, markdown
from benchmarks.common.versions import write_versions
from slayr_py.space import Encoder

COLUMNS = ["problem", "belief", "seed", "evaluations", "reached", "seconds"]
BELIEFS = ("none", "right", "wrong")
TARGET = 0.01  # standard deviations of the objective
WIDTH = 0.1  # of the range


class Place(NamedTuple):
    """An optimum, and a corner with bad values."""

    optimum: Mapping[str, Any]
    corner: Mapping[str, Any]


PLACES = {
    "branin": Place({"x1": np.pi, "x2": 2.275}, {"x1": -5.0, "x2": 0.0}),
    "hartmann3": Place({"x1": 0.1146, "x2": 0.5556, "x3": 0.8525}, {"x1": 1.0, "x2": 0.0, "x3": 0.0}),
    "func2c": Place(
        {"x1": 0.0449, "x2": -0.3563, "h1": 1, "h2": 1},
        {"x1": 1.0, "x2": 1.0, "h1": 0, "h2": 0},
    ),
}


def belief_at(encoder: Encoder, place: Mapping[str, Any]) -> dict[str, Any]:
    """Return a belief around one configuration."""
    beliefs: dict[str, Any] = {}
    for d in encoder.dimensions:
        if d.is_real:
            beliefs[d.name] = sl.Normal(float(place[d.name]), WIDTH * (d.upper - d.lower))
        else:
            rest = 0.2 / (len(d.levels) - 1)
            beliefs[d.name] = {level: 0.8 if level == place[d.name] else rest for level in d.levels}
    return beliefs


def run(name: str, belief: str, seed: int, budget: int) -> dict[str, Any]:
    """Run a study up to the target; return its row."""
    problem = PROBLEMS[name]
    encoder = Encoder(problem.space)
    sd = float(np.std([problem.objective(config) for config in encoder.sobol(4096, 0)]))
    target = problem.minimum + TARGET * sd
    options: dict[str, Any] = {}
    if belief != "none":
        place = PLACES[name].optimum if belief == "right" else PLACES[name].corner
        options["prior"] = belief_at(encoder, place)
    clock = time.process_time()

    def stop(study: Any, trial: Any) -> None:
        if trial.value is not None and trial.value <= target:
            study.stop()

    result = sl.minimize(problem.objective, encoder, budget, seed=seed, progress=False, callbacks=[stop], **options)
    return {
        "problem": name,
        "belief": belief,
        "seed": seed,
        "evaluations": len(result.trials),
        "reached": bool(result.best_value <= target),
        "seconds": time.process_time() - clock,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=int, default=100, help="evaluations per study at most")
    parser.add_argument("--problems", nargs="+", choices=PLACES, default=list(PLACES))
    add_result_arguments(parser, __file__)
    given = begin(parser, arguments)
    results = ResultFile(given.output / "prior.csv", COLUMNS[:3], COLUMNS)
    if not given.report:
        write_versions(results.path)
        runs = [(name, belief, seed) for seed in range(given.seeds) for name in given.problems for belief in BELIEFS]
        for name, belief, seed in results.missing(runs):
            results.append([run(name, belief, seed, given.budget)])
    print(table_of(results.rows(), given.problems))


def table_of(rows: pd.DataFrame, problems: Sequence[str]) -> str:
    """Return the table, of the seeds with a run for every belief."""
    table = []
    for name in problems:
        own = rows[rows["problem"] == name]
        own = own[own.groupby("seed")["belief"].transform("nunique") == len(BELIEFS)].sort_values("seed")
        mean = own.groupby("belief")["evaluations"].mean()
        for belief in BELIEFS:
            part = own[own["belief"] == belief]
            counts = ", ".join(map(str, part["evaluations"]))
            missed = int((~part["reached"].astype(bool)).sum())
            table.append(
                [name, belief, f"{mean[belief]:.1f}", counts, str(missed), f"{mean[belief] / mean['none']:.2f}"]
            )
    return markdown(["problem", "belief", "evaluations", "of each seed", "not reached", "ratio"], table)


if __name__ == "__main__":
    main()
