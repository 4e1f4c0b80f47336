"""Functions with penalties: users return a huge value where a configuration is not allowed, or training diverges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer

from benchmarks.common.problems import Problem, branin, point

Config = Mapping[str, Any]


def unit_cube(dimension: int) -> ConfigurationSpace:
    return ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(1, dimension + 1)})


def penalised(
    function: Callable[[np.ndarray], float],
    allowed: Callable[[np.ndarray], bool],
    penalty: Callable[[np.ndarray], float],
    dimension: int,
) -> Problem:
    """Return a function of the unit cube with a penalty where it is not allowed."""

    def objective(config: Config) -> float:
        x = point(config, dimension)
        return float(function(x) if allowed(x) else penalty(x))

    return Problem(unit_cube(dimension), objective, np.nan)


def bowl(x: np.ndarray) -> float:
    return float(np.sum((x - [0.2, 0.5, 0.3, 0.4]) ** 2) + 0.2 * np.sin(9 * x[2]))


def in_bowl(x: np.ndarray) -> bool:
    return bool(x.sum() >= 1.2 and x[0] * x[1] <= 0.5)


def of_any_size(x: np.ndarray) -> float:
    """Return a penalty from 1e3 to 1e9, which says nothing about the distance to the border."""
    return float(10 ** (3 + 6 * (1e4 * x.sum() % 1)))


def sines(x: np.ndarray) -> float:
    return float(-np.sum(x * np.sin(5 * x + np.arange(6))))


def in_sines(x: np.ndarray) -> bool:
    return bool(x[:3].sum() >= 1.0 and x[3:].sum() <= 1.6)


def disk(config: Config) -> float:
    """Return Branin's function in a disk with a fifth of the volume around one of its minima, else 1e8."""
    inside = (config["x1"] - 3) ** 2 + (config["x2"] - 3) ** 2 <= 14.4
    return branin(config) if inside else 1e8


def diverging(config: Config) -> float:
    """Return the loss of a training run, which grows up to 1e12 at large steps, later for one of the optimisers."""
    is_sgd = config["optimiser"] == "sgd"
    excess = np.log10(config["step"]) + (0.7 if is_sgd else 1.7) - 0.5 * (1 - config["momentum"])
    if excess > 0.3:
        return float(10 ** min(6 * excess, 12.0))
    best = -1.5 if is_sgd else -3.0
    loss = 0.3 + 0.05 * (np.log10(config["step"]) - best) ** 2 + 0.1 * (config["momentum"] - 0.9) ** 2
    return float(loss + 0.01 * (np.log10(config["decay"]) + 4) ** 2)


def levels(config: Config) -> float:
    """Return 999 for one level of a category, and for another one with large numbers."""
    if config["kind"] == "c" or (config["kind"] == "a" and config["n"] > 6):
        return 999.0
    offset = {"a": 0.2, "b": 0.1, "d": 0.15}[config["kind"]]
    return float(offset + (config["x"] - 0.3) ** 2 + 0.5 * abs(config["y"] - 0.6) + 0.01 * (config["n"] - 5) ** 2)


PENALTIES = {
    "bowl, 1e6": penalised(bowl, in_bowl, lambda x: 1e6, 4),
    "bowl, 1e3": penalised(bowl, in_bowl, lambda x: 1e3, 4),
    "bowl, 1e3 to 1e9": penalised(bowl, in_bowl, of_any_size, 4),
    "parabola, 1e6": penalised(
        lambda x: float(np.sum((x - [0.2, 0.5]) ** 2)), lambda x: bool(x.sum() >= 0.6), lambda x: 1e6, 2
    ),
    "sines, 1e4": penalised(sines, in_sines, lambda x: 1e4, 6),
    "branin in a disk, 1e8": Problem(ConfigurationSpace({"x1": (-5.0, 10.0), "x2": (0.0, 15.0)}), disk, 0.397887),
    "training, up to 1e12": Problem(
        ConfigurationSpace(
            [
                Float("step", (1e-5, 10.0), log=True),
                Float("momentum", (0.0, 0.99)),
                Float("decay", (1e-6, 1.0), log=True),
                Categorical("optimiser", ["sgd", "adam"]),
            ]
        ),
        diverging,
        0.3,
    ),
    "levels, 999": Problem(
        ConfigurationSpace(
            [Categorical("kind", list("abcd")), Float("x", (0.0, 1.0)), Float("y", (0.0, 1.0)), Integer("n", (1, 9))]
        ),
        levels,
        0.1,
    ),
}
"""Functions by their name and the size of the penalty."""
