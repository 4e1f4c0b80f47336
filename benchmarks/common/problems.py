"""Test functions with their search spaces and minima.

Branin, Hartmann3 and Hartmann6 (Dixon & Szegö 1978); Ackley, Griewank, Styblinski-Tang, Dixon-Price and Powell; Func2C
and Func3C (Ru et al. 2020) and Ackley5C as in Oh et al. (2021), but without their uniform noise of 1e-6; decision trees
(Jenatton et al. 2017).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float


class Problem(NamedTuple):
    """An objective, its search space and its minimum."""

    space: ConfigurationSpace
    objective: Callable[[Mapping[str, Any]], float]
    minimum: float
    """NaN if unknown."""
    noise: float = 0.0
    """Standard deviation of the normal noise that a study adds to the objective."""
    constraints: Callable[[Mapping[str, Any]], dict[str, float]] | None = None
    """Values by name; a configuration is feasible if none is positive."""
    design: Callable[[int], list[dict[str, Any]]] | None = None
    """Initial configurations of a seed for all samplers, instead of the benchmark's own design."""
    within: tuple[str, ...] = ()
    """Constraints on inputs."""
    graphs: Mapping[str, Any] | None = None
    """Graphs of parameters, for samplers that know of graphs."""


def branin(config: Mapping[str, Any]) -> float:
    x1 = config["x1"]
    x2 = config["x2"]
    curve = x2 - 5.1 / (4 * np.pi**2) * x1**2 + 5 / np.pi * x1 - 6
    return float(curve**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x1) + 10)


# Exponents A, centres P and weights of the Hartmann functions.
HARTMANN_A3 = np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
HARTMANN_P3 = 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]])
HARTMANN_A6 = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
HARTMANN_P6 = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
HARTMANN_WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])


def point(config: Mapping[str, Any], dimension: int) -> np.ndarray:
    """Return (x1, ..., x<dimension>)."""
    return np.array([config[f"x{i}"] for i in range(1, dimension + 1)])


def hartmann3(config: Mapping[str, Any]) -> float:
    return float(-HARTMANN_WEIGHTS @ np.exp(-np.sum(HARTMANN_A3 * (point(config, 3) - HARTMANN_P3) ** 2, axis=1)))


def hartmann6(config: Mapping[str, Any]) -> float:
    return float(-HARTMANN_WEIGHTS @ np.exp(-np.sum(HARTMANN_A6 * (point(config, 6) - HARTMANN_P6) ** 2, axis=1)))


def ackley(x: np.ndarray) -> float:
    bowl = 20 * (1 - np.exp(-0.2 * np.sqrt(np.mean(x**2))))
    return float(bowl + np.e - np.exp(np.mean(np.cos(2 * np.pi * x))))


def ackley5(config: Mapping[str, Any]) -> float:
    return ackley(point(config, 5))


def styblinski_tang5(config: Mapping[str, Any]) -> float:
    x = point(config, 5)
    return float(np.sum(x**4 - 16 * x**2 + 5 * x) / 2)


def dixon_price4(config: Mapping[str, Any]) -> float:
    x = point(config, 4)
    return float((x[0] - 1) ** 2 + np.sum(np.arange(2, 5) * (2 * x[1:] ** 2 - x[:-1]) ** 2))


def powell8(config: Mapping[str, Any]) -> float:
    a, b, c, d = point(config, 8).reshape(2, 4).T
    return float(np.sum((a + 10 * b) ** 2 + 5 * (c - d) ** 2 + (b - 2 * c) ** 4 + 10 * (a - d) ** 4))


def griewank5(config: Mapping[str, Any]) -> float:
    """Griewank's function of x1, ..., x5; further parameters have no effect."""
    x = point(config, 5)
    return float(np.sum(x**2) / 4000 - np.prod(np.cos(x / np.sqrt(np.arange(1, 6)))) + 1)


def _rosenbrock(x1: float, x2: float) -> float:
    return (100 * (x2 - x1**2) ** 2 + (x1 - 1) ** 2) / 300


def _camel(x1: float, x2: float) -> float:
    return ((4 - 2.1 * x1**2 + x1**4 / 3) * x1**2 + x1 * x2 + (4 * x2**2 - 4) * x2**2) / 10


def _beale(x1: float, x2: float) -> float:
    return sum((a - x1 + x1 * x2**k) ** 2 for k, a in enumerate((1.5, 2.25, 2.625), start=1)) / 50


_CAMEL_MINIMUM = -0.10316284534898774
_TERMS = (_rosenbrock, _camel, _beale)


def func2c(config: Mapping[str, Any]) -> float:
    x = 2 * config["x1"], 2 * config["x2"]
    # The last three of the five levels of h2 select the same term.
    return _TERMS[config["h1"]](*x) + _TERMS[min(config["h2"], 2)](*x)


def func3c(config: Mapping[str, Any]) -> float:
    x = 2 * config["x1"], 2 * config["x2"]
    third = (5 * _camel(*x), 2 * _rosenbrock(*x), 2 * _beale(*x), 3 * _beale(*x))
    return func2c(config) + third[config["h3"]]


def ackley5c(config: Mapping[str, Any]) -> float:
    """Ackley's function in six dimensions, five of them seen at 17 equally spaced points only, without their order."""
    return ackley(np.array([config["x1"], *(config[f"h{i}"] / 8 - 1 for i in range(1, 6))]))


def decision_tree(config: Mapping[str, Any], depth: int) -> float:
    """Value at the leaf that the decisions lead to.

    Nodes are numbered as in a heap. Node k decides with ``x<k>`` for its child 2k or 2k + 1; leaf k costs ``x<k>**2``
    and 0.1 for itself and every leaf to its left; every deciding node below the root costs ``r<k>``, which all leaves
    under it share.
    """
    node = 1
    cost = 0.0
    while node < 2**depth:
        cost += config[f"r{node}"] if node > 1 else 0.0
        node = 2 * node + config[f"x{node}"]
    return float(cost + config[f"x{node}"] ** 2 + 0.1 * (node - 2**depth + 1))


def tree(depth: int) -> Problem:
    """Decision tree; depth 2 is the function of Jenatton et al. (2017), whose r8 and r9 are r2 and r3 here."""
    space = ConfigurationSpace()
    for node in range(1, 2 ** (depth + 1)):
        decides = node < 2**depth
        own = [Categorical(f"x{node}", [0, 1]) if decides else Float(f"x{node}", (-1.0, 1.0))]
        own += [Float(f"r{node}", (0.0, 1.0))] if decides and node > 1 else []
        space.add(own)
        if node > 1:
            space.add([EqualsCondition(h, space[f"x{node // 2}"], node % 2) for h in own])
    return Problem(space, partial(decision_tree, depth=depth), 0.1)


def box(dimension: int, lower: float, upper: float) -> ConfigurationSpace:
    """Return a space of x1, ..., x<dimension> with equal ranges."""
    return ConfigurationSpace({f"x{i}": (lower, upper) for i in range(1, dimension + 1)})


_BRANIN_RANGES = {"x1": (-5.0, 10.0), "x2": (0.0, 15.0)}
_UNUSED = {f"z{i}": (0.0, 1.0) for i in range(1, 49)}
_BRANIN = ConfigurationSpace(_BRANIN_RANGES)
_BRANIN_MINIMUM = 0.39788735772973816
_HARTMANN6_MINIMUM = -3.322368011415515
_SQUARE: dict[str, Any] = {"x1": (-1.0, 1.0), "x2": (-1.0, 1.0)}

# The ranges of Ackley's function (Eriksson et al. 2019) and of Griewank's are not symmetric: a sampler must not profit
# from a candidate in the middle. The noise is 5% of the standard deviation of the function over its space.
PROBLEMS = {
    "branin": Problem(_BRANIN, branin, _BRANIN_MINIMUM),
    "branin, noisy": Problem(_BRANIN, branin, _BRANIN_MINIMUM, 2.56),
    "hartmann3": Problem(box(3, 0.0, 1.0), hartmann3, -3.8627797873326597),
    "hartmann6": Problem(box(6, 0.0, 1.0), hartmann6, _HARTMANN6_MINIMUM),
    "hartmann6, noisy": Problem(box(6, 0.0, 1.0), hartmann6, _HARTMANN6_MINIMUM, 0.0193),
    "ackley5": Problem(box(5, -5.0, 10.0), ackley5, 0.0),
    "styblinski-tang5": Problem(box(5, -5.0, 5.0), styblinski_tang5, 5 * -39.166165703771412),
    "dixon-price4": Problem(box(4, -10.0, 10.0), dixon_price4, 0.0),
    "powell8": Problem(box(8, -4.0, 5.0), powell8, 0.0),
    "griewank5 of 10": Problem(box(10, -300.0, 600.0), griewank5, 0.0),
    "func2c": Problem(ConfigurationSpace(_SQUARE | {"h1": [*range(3)], "h2": [*range(5)]}), func2c, 2 * _CAMEL_MINIMUM),
    "func3c": Problem(
        ConfigurationSpace(_SQUARE | {"h1": [*range(3)], "h2": [*range(5)], "h3": [*range(4)]}),
        func3c,
        7 * _CAMEL_MINIMUM,
    ),
    "ackley5c": Problem(
        ConfigurationSpace({"x1": (-1.0, 1.0)} | {f"h{i}": [*range(17)] for i in range(1, 6)}), ackley5c, 0.0
    ),
    "jenatton": tree(2),
    "deeper tree": tree(3),
}

EMBEDDED = {
    "branin of 50": Problem(ConfigurationSpace(_BRANIN_RANGES | _UNUSED), branin, _BRANIN_MINIMUM),
    "hartmann6 of 50": Problem(box(50, 0.0, 1.0), hartmann6, _HARTMANN6_MINIMUM),
}
"""Functions of a few of 50 parameters."""
