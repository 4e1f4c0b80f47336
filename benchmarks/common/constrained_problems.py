"""Problems with constraints: the two simulations of Gardner et al. (2014) and the design of a welded beam.

Gardner, Kusner, Xu, Weinberger & Cunningham (2014), *Bayesian Optimization with Inequality Constraints*, ICML, section
4.1. Their limits, 0.5 and -0.95, are subtracted here: a constraint holds where its value is at most 0.

Welded beam: Cagnina, Esquivel & Coello Coello (2008), *Solving Engineering Optimization Problems with the Simple
Constrained Particle Swarm Optimizer*, Informatica 32:319. Each constraint is divided by its limit, and the bound
0.125 <= h belongs to the space.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace

from benchmarks.common.problems import Problem

_LOAD = 6000.0
_LENGTH = 14.0
_YOUNG = 30e6
_SHEAR = 12e6  # lb, in, psi, psi
_LARGEST_TAU = 13600.0
_LARGEST_SIGMA = 30000.0
_LARGEST_DELTA = 0.25
_LARGEST_COST = 5.0  # psi, psi, in, dollars


def gardner1(config: Mapping[str, Any]) -> float:
    return float(np.cos(2 * config["x"]) * np.cos(config["y"]) + np.sin(config["x"]))


def gardner1_constraints(config: Mapping[str, Any]) -> dict[str, float]:
    x = config["x"]
    y = config["y"]
    return {"c": float(np.cos(x) * np.cos(y) - np.sin(x) * np.sin(y) - 0.5)}


def gardner2(config: Mapping[str, Any]) -> float:
    return float(np.sin(config["x"]) + config["y"])


def gardner2_constraints(config: Mapping[str, Any]) -> dict[str, float]:
    return {"c": float(np.sin(config["x"]) * np.sin(config["y"]) + 0.95)}


def welded_beam(config: Mapping[str, Any]) -> float:
    """Return the cost of a beam of height t and thickness b with a weld of height h and length l."""
    h, length, t, b = (config[name] for name in "hltb")
    return float(1.10471 * h**2 * length + 0.04811 * t * b * (_LENGTH + length))


def welded_beam_constraints(config: Mapping[str, Any]) -> dict[str, float]:
    h, length, t, b = (config[name] for name in "hltb")
    radius = np.sqrt(length**2 / 4 + (h + t) ** 2 / 4)
    inertia = 2 * np.sqrt(2) * h * length * (length**2 / 12 + (h + t) ** 2 / 4)
    primary = _LOAD / (np.sqrt(2) * h * length)
    secondary = _LOAD * (_LENGTH + length / 2) * radius / inertia
    tau = np.sqrt(primary**2 + primary * secondary * length / radius + secondary**2)
    sigma = 6 * _LOAD * _LENGTH / (b * t**2)
    delta = 4 * _LOAD * _LENGTH**3 / (_YOUNG * b * t**3)
    buckling = 4.013 * _YOUNG * t * b**3 / (6 * _LENGTH**2) * (1 - t / (4 * _LENGTH) * np.sqrt(_YOUNG / _SHEAR))
    values = {
        "shear stress": tau / _LARGEST_TAU - 1,
        "bending stress": sigma / _LARGEST_SIGMA - 1,
        "weld": h - b,
        "cost": (0.10471 * h**2 + 0.04811 * t * b * (_LENGTH + length)) / _LARGEST_COST - 1,
        "deflection": delta / _LARGEST_DELTA - 1,
        "buckling": 1 - buckling / _LOAD,
    }
    return {name: float(value) for name, value in values.items()}


_SQUARE = ConfigurationSpace({"x": (0.0, 6.0), "y": (0.0, 6.0)})
_BEAM = ConfigurationSpace({"h": (0.125, 2.0), "l": (0.1, 10.0), "t": (0.1, 10.0), "b": (0.1, 2.0)})

# The minima of Gardner et al. are at (3 pi / 2, 0), where the constraint is inactive, and at (3 pi / 2, arcsin 0.95).
CONSTRAINED = {
    "gardner1": Problem(_SQUARE, gardner1, -2.0, constraints=gardner1_constraints),
    "gardner2": Problem(_SQUARE, gardner2, float(np.arcsin(0.95)) - 1, constraints=gardner2_constraints),
    "welded beam": Problem(_BEAM, welded_beam, 1.7248523, constraints=welded_beam_constraints),
}
