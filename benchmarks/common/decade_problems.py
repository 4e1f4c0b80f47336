"""Functions whose values differ by orders of magnitude, also the good ones: squared errors of calibrations, rates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer

from benchmarks.common.problems import Problem, point

Config = Mapping[str, Any]

_TIMES = np.linspace(0.25, 8.0, 12)
_RATES = (0.9, 0.35)  # of the reaction whose concentrations are fitted
_GROWTH = (40.0, 1.1, 4.0)  # largest size, rate and time of the curve that is fitted
_SCALES = {"a": 1e3, "b": 30.0, "c": 1.0, "d": 0.1}  # of the levels


def exponential_bowl(config: Config) -> float:
    x = point(config, 5)
    return float(np.expm1(6 * np.sum([1, 2, 1, 0.5, 3] * (x - [0.2, 0.7, 0.4, 0.9, 0.5]) ** 2)))


def intermediate(first: float, second: float) -> np.ndarray:
    """Return the concentration of B at `_TIMES` in the reaction A -> B -> C from A = 1."""
    if abs(first - second) < 1e-9 * first:
        return first * _TIMES * np.exp(-first * _TIMES)
    return first / (second - first) * (np.exp(-first * _TIMES) - np.exp(-second * _TIMES))


def reaction(config: Config) -> float:
    """Return the sum of squared differences from the concentrations of the true rates, with a factor and an offset."""
    fitted = config["factor"] * intermediate(config["first"], config["second"]) + config["offset"]
    return float(np.sum((fitted - intermediate(*_RATES)) ** 2))


def logistic(largest: float, rate: float, middle: float) -> np.ndarray:
    return largest / (1 + np.exp(-rate * (_TIMES - middle)))


def growth(config: Config) -> float:
    """Return the sum of squared differences from a logistic curve."""
    fitted = logistic(config["largest"], config["rate"], config["middle"])
    return float(np.sum((fitted - logistic(*_GROWTH)) ** 2))


def filter_leak(config: Config) -> float:
    """Return the power that leaks through four stages in a row, each with a resonance of its own."""
    x = point(config, 4)
    return float(np.prod((x - [0.3, 0.55, 0.7, 0.2]) ** 2 + 1e-3))


def scaled_levels(config: Config) -> float:
    """Return a bowl times a factor of the level, with another minimum in each level."""
    centre = {"a": 0.2, "b": 0.8, "c": 0.4, "d": 0.6}[config["kind"]]
    away = (config["x"] - centre) ** 2 + 2 * (config["y"] - 0.7 * centre) ** 2 + 0.02 * (config["n"] - 6) ** 2
    return float(_SCALES[config["kind"]] * (away + 0.01))


def integration_error(config: Config) -> float:
    """Return the error of an integrator: of the method, which falls with the step, and of rounding, which grows."""
    order = config["order"]
    method = 10.0 ** (order * np.log10(config["step"]) + 0.4 * (order - 4) ** 2)
    rounding = 1e-9 * order / config["step"]
    return float(method + rounding + 1e-6 * (np.log10(config["damping"]) + 2) ** 2)


DECADES = {
    "exponential of a bowl": Problem(
        ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(1, 6)}), exponential_bowl, 0.0
    ),
    "reaction": Problem(
        ConfigurationSpace(
            [
                Float("first", (0.01, 10.0), log=True),
                Float("second", (0.01, 10.0), log=True),
                Float("factor", (0.3, 3.0), log=True),
                Float("offset", (-0.5, 0.5)),
            ]
        ),
        reaction,
        0.0,
    ),
    "growth": Problem(
        ConfigurationSpace(
            [
                Float("largest", (1.0, 1000.0), log=True),
                Float("rate", (0.05, 10.0), log=True),
                Float("middle", (0.0, 8.0)),
            ]
        ),
        growth,
        0.0,
    ),
    "filter": Problem(ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(1, 5)}), filter_leak, 1e-12),
    "scaled levels": Problem(
        ConfigurationSpace(
            [Categorical("kind", list("abcd")), Float("x", (0.0, 1.0)), Float("y", (0.0, 1.0)), Integer("n", (1, 12))]
        ),
        scaled_levels,
        1e-3,
    ),
    "integrator": Problem(
        ConfigurationSpace(
            [Float("step", (1e-4, 1.0), log=True), Integer("order", (1, 8)), Float("damping", (1e-5, 1.0), log=True)]
        ),
        integration_error,
        np.nan,
    ),
}
"""Functions by name."""
