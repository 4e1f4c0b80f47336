"""Minimise the Branin and the Currin function together, in 25 evaluations."""

import math
from collections.abc import Mapping

from ConfigSpace import ConfigurationSpace

import slayr_py as sl


def branin_currin(config: Mapping[str, float]) -> dict[str, float]:
    """Evaluate both functions at x and y in [0, 1]."""
    x = config["x"]
    y = config["y"]
    u = 15 * x - 5
    valley = 15 * y - 5.1 / (4 * math.pi**2) * u**2 + 5 / math.pi * u - 6
    slope = 1 - math.exp(-1 / (2 * y)) if y > 0 else 1.0
    return {
        "branin": valley**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(u) + 10,
        "currin": slope * (2300 * x**3 + 1900 * x**2 + 2092 * x + 60) / (100 * x**3 + 500 * x**2 + 4 * x + 20),
    }


if __name__ == "__main__":
    space = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)})
    directions = {"branin": "minimize", "currin": "minimize"}
    result = sl.minimize(branin_currin, space, budget=25, directions=directions, seed=1)
    print(result.front)
    print("hypervolume", result.hypervolume({"branin": 18, "currin": 6}), "of at most 59.36")
