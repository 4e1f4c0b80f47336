"""Test functions with their search spaces and minima.

Branin and Hartmann6 (Dixon & Szegö 1978); Func2C and Func3C (Ru et al. 2020) and Ackley5C as in Oh et al. (2021), but
without their uniform noise of 1e-6; decision trees (Jenatton et al. 2017).
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


def branin(config: Mapping[str, Any]) -> float:
    x1, x2 = config["x1"], config["x2"]
    curve = x2 - 5.1 / (4 * np.pi**2) * x1**2 + 5 / np.pi * x1 - 6
    return float(curve**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x1) + 10)


_A = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
_C = np.array([1.0, 1.2, 3.0, 3.2])


def hartmann6(config: Mapping[str, Any]) -> float:
    x = np.array([config[f"x{i}"] for i in range(1, 7)])
    return float(-_C @ np.exp(-np.sum(_A * (x - _P) ** 2, axis=1)))


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
    z = np.array([config["x1"], *(config[f"h{i}"] / 8 - 1 for i in range(1, 6))])
    bowl = 20 * (1 - np.exp(-0.2 * np.sqrt(np.mean(z**2))))
    return float(bowl + np.e - np.exp(np.mean(np.cos(2 * np.pi * z))))


def decision_tree(config: Mapping[str, Any], depth: int) -> float:
    """Value at the leaf that the decisions lead to.

    Nodes are numbered as in a heap. Node k decides with ``x<k>`` for its child 2k or 2k + 1; leaf k costs ``x<k>**2``
    and 0.1 for itself and every leaf to its left; every deciding node below the root costs ``r<k>``, which all leaves
    under it share.
    """
    node, cost = 1, 0.0
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


_SQUARE: dict[str, Any] = {"x1": (-1.0, 1.0), "x2": (-1.0, 1.0)}

PROBLEMS = {
    "branin": Problem(ConfigurationSpace({"x1": (-5.0, 10.0), "x2": (0.0, 15.0)}), branin, 0.39788735772973816),
    "hartmann6": Problem(ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(1, 7)}), hartmann6, -3.322368011415515),
    "func2c": Problem(ConfigurationSpace(_SQUARE | {"h1": [*range(3)], "h2": [*range(5)]}), func2c, 2 * _CAMEL_MINIMUM),
    "func3c": Problem(
        ConfigurationSpace(_SQUARE | {"h1": [*range(3)], "h2": [*range(5)], "h3": [*range(4)]}),
        func3c,
        7 * _CAMEL_MINIMUM,
    ),
    "ackley5c": Problem(
        ConfigurationSpace({"x1": (-1.0, 1.0)} | {f"h{i}": [*range(17)] for i in range(1, 6)}), ackley5c, 0.0
    ),
}
