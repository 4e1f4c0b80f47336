"""The 24 functions of BBOB, and their mixed-integer forms, from the package `coco-experiment`.

Hansen et al. (2021), *COCO: a platform for comparing continuous optimizers in a black-box setting*. A function has many
instances, which differ by shifts, rotations and the value of the minimum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace

from benchmarks.common.problems import Problem

FUNCTIONS = range(1, 25)
INSTANCES = (1, 2, 3)
DIMENSIONS = {"bbob": (2, 3, 5, 10), "bbob-mixint": (5,)}
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
