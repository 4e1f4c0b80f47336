"""Minimise the Branin function (three global minima of 0.397887) in 30 evaluations."""

import math
from collections.abc import Mapping

from ConfigSpace import ConfigurationSpace

import slayr_py as sl


def branin(config: Mapping[str, float]) -> float:
    """Evaluate Branin at x in [-5, 10], y in [0, 15]."""
    x = config["x"]
    y = config["y"]
    valley = y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6
    return valley**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


if __name__ == "__main__":
    space = ConfigurationSpace({"x": (-5.0, 10.0), "y": (0.0, 15.0)})
    result = sl.minimize(branin, space, budget=30, seed=1)
    print(result.best_value, result.best_config)
