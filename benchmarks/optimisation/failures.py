"""Measure how well the loop learns where an objective fails.

    python -m benchmarks.optimisation.failures --seeds 5

Two objectives return NaN in a region behind whose border the best value would be: a quadratic function of two floats,
minimised, and a score of a support vector machine on a conditional space (kernel, degree, gamma, C), maximised, which
fails where C * gamma > 30. Printed are the share of failures among the suggestions of the model, the largest distance
of a seed's best value from the best success, and processor seconds per suggestion.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, InCondition, Integer

import slayr_py as sl
from benchmarks.common.command_line import begin, command_parser


class Failing(NamedTuple):
    """An objective that fails in a region, and the best value of a success."""

    objective: Callable[[Mapping[str, Any]], float]
    space: ConfigurationSpace
    direction: str
    best: float


def quadratic(config: Mapping[str, Any]) -> float:
    x = config["x"]
    y = config["y"]
    return math.nan if x + y > 1.1 else (x - 0.7) ** 2 + (y - 0.6) ** 2


def machine(config: Mapping[str, Any]) -> float:
    c = config["C"]
    gamma = config.get("gamma", 0.01)
    if c * gamma > 30:
        return math.nan
    base = {"linear": 0.8, "poly": 0.85, "rbf": 0.9}[config["kernel"]]
    return base - 0.01 * (math.log10(c) - 2) ** 2 - 0.01 * math.log10(gamma) ** 2


def machine_space() -> ConfigurationSpace:
    space = ConfigurationSpace()
    kernel = Categorical("kernel", ["linear", "poly", "rbf"])
    degree = Integer("degree", (2, 5))
    gamma = Float("gamma", (1e-4, 1e1), log=True)
    space.add(kernel, degree, gamma, Float("C", (1e-3, 1e3), log=True))
    space.add(EqualsCondition(degree, kernel, "poly"), InCondition(gamma, kernel, ["poly", "rbf"]))
    return space


PROBLEMS = {
    "quadratic": Failing(quadratic, ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)}), "minimize", 0.02),
    # With u = log10 C and v = log10 gamma, (u - 2)^2 + v^2 on u + v = log10 30 is (2 - log10 30)^2 / 2.
    "machine": Failing(machine, machine_space(), "maximize", 0.9 - 0.005 * (2 - math.log10(30)) ** 2),
}


def row(name: str, seeds: int, suggestions: int, failures: str) -> str:
    """Run a problem and return its row of the table."""
    problem = PROBLEMS[name]
    failed = 0
    total = 0
    worst = 0.0
    seconds = 0.0
    for seed in range(seeds):
        n_initial = sl.study.StanGPSampler(problem.space).strategy.design.size
        clock = time.process_time()
        result = sl.minimize(
            problem.objective,
            problem.space,
            n_initial + suggestions,
            seed=seed,
            direction=problem.direction,
            progress=False,
            failures=failures,
        )
        seconds += time.process_time() - clock
        states = result.trials["state"][n_initial:]
        failed = failed + int((states == "FAIL").sum())
        total = total + len(states)
        worst = max(worst, abs(result.best_value - problem.best))
    return f"| {name} | {failures} | {failed} of {total} ({failed / total:.0%}) | {worst:.2g} | {seconds / total:.2f} |"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--suggestions", type=int, default=30, help="by the model, in each study")
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--failures", nargs="+", choices=["learn", "ignore"], default=["learn"])
    given = begin(parser, arguments)
    print("| problem | failures | failed suggestions | largest distance of the best | seconds |\n|---|---|---|---|---|")
    for name in given.problems:
        for failures in given.failures:
            print(row(name, given.seeds, given.suggestions, failures), flush=True)


if __name__ == "__main__":
    main()
