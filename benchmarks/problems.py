"""Test functions with known minima (Dixon & Szegö 1978)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace


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


PROBLEMS: dict[str, tuple[ConfigurationSpace, Callable[[Mapping[str, Any]], float], float]] = {
    "branin": (ConfigurationSpace({"x1": (-5.0, 10.0), "x2": (0.0, 15.0)}), branin, 0.39788735772973816),
    "hartmann6": (ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(1, 7)}), hartmann6, -3.322368011391339),
}
"""Name -> (space, function, minimum)."""
