"""The 24 functions of BBOB, and their mixed-integer forms, from the package `coco-experiment`.

Hansen et al. (2021), *COCO: a platform for comparing continuous optimizers in a black-box setting*. A function has many
instances, which differ by shifts, rotations and the value of the minimum.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from contextlib import chdir
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace

from benchmarks.common.problems import Problem

FUNCTIONS = range(1, 25)
INSTANCES = (1, 2, 3)
AT_BOUND = 0.5
SMALLEST_RANGE = 2.0
DIMENSIONS = {"bbob": (2, 3, 5, 10, 20, 40), "bbob-mixint": (5,)}
"""Dimensions by the name of the suite."""


@lru_cache(maxsize=1)
def _suite(name: str) -> Any:
    import cocoex

    return cocoex.Suite(name, "", "")


@lru_cache(maxsize=8)
def _open(suite: str, function: int, dimension: int, instance: int) -> Any:
    return _suite(suite).get_problem_by_function_dimension_instance(function, dimension, instance)


@dataclass(frozen=True)
class Function:
    """A function of a suite, which is opened where it is called: it cannot be sent to another process.

    Attributes
    ----------
    suite : {"bbob", "bbob-mixint"}
    function, dimension, instance : int
    """

    suite: str
    function: int
    dimension: int
    instance: int

    def __call__(self, config: Mapping[str, Any]) -> float:
        return float(self.opened()(np.array([config[f"x{i}"] for i in range(1, self.dimension + 1)], dtype=float)))

    def opened(self) -> Any:
        """Return the problem of `cocoex`."""
        return _open(self.suite, self.function, self.dimension, self.instance)

    def space(self) -> ConfigurationSpace:
        """Return the box of the function; the first variables of a mixed-integer function are integers."""
        problem = self.opened()
        space: dict[str, tuple[float, float]] = {}
        bounds = zip(problem.lower_bounds, problem.upper_bounds, strict=True)
        for i, (lower, upper) in enumerate(bounds):
            number = int if i < problem.number_of_integer_variables else float
            space[f"x{i + 1}"] = (number(lower), number(upper))
        return ConfigurationSpace(space)

    def location(self) -> np.ndarray:
        """Return where the minimum is; `cocoex` writes it to a file of the working directory."""
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            self.opened()._best_parameter("print")
            return np.loadtxt("._bbob_problem_best_parameter.txt", ndmin=1)

    def minimum(self) -> float:
        """Return the minimum, NaN for the mixed-integer functions."""
        import cocoex

        if self.suite != "bbob":
            return float("nan")
        return float(cocoex.BareProblem(self.suite, self.function, self.dimension, self.instance).best_value())


def bbob(
    suite: str = "bbob", dimensions: Iterable[int] | None = None, instances: Iterable[int] = INSTANCES
) -> dict[str, Problem]:
    """Return the problems of a suite by name, such as "f10 d5 i1" for function 10 in 5 dimensions, instance 1."""
    problems = {}
    for dimension in DIMENSIONS[suite] if dimensions is None else dimensions:
        for instance in instances:
            for number in FUNCTIONS:
                function = Function(suite, number, dimension, instance)
                name = f"f{number} d{dimension} i{instance}"
                problems[name] = Problem(function.space(), function, function.minimum())
    return problems


def at_bounds(problems: Mapping[str, Problem]) -> dict[str, Problem]:
    """Return functions of BBOB in boxes with a bound through the minimum, on average in half of the dimensions.

    The bound is the lower or the upper one by chance, and a range is at least 2. The choice depends on the name alone.
    """
    moved = {}
    for name, problem in problems.items():
        rng = np.random.default_rng(sum(map(ord, name)))
        box = {}
        for parameter, best in zip(problem.space, problem.objective.location(), strict=True):
            lower, upper = problem.space[parameter].lower, problem.space[parameter].upper
            if rng.random() < AT_BOUND:
                is_lower = rng.random() < 0.5
                is_lower &= upper - best >= SMALLEST_RANGE
                is_lower |= best - lower < SMALLEST_RANGE
                lower, upper = (best, upper) if is_lower else (lower, best)
            box[parameter] = (float(lower), float(upper))
        moved[name] = problem._replace(space=ConfigurationSpace(box))
    return moved
