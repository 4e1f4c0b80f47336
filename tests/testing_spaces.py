"""Spaces and functions that the tests share."""

from __future__ import annotations

import numpy as np
from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    Constant,
    EqualsCondition,
    Float,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    InCondition,
    Integer,
)


def plain_space() -> ConfigurationSpace:
    return ConfigurationSpace({"x": (0.0, 1.0), "z": (-5.0, 10.0)})


def mixed_space() -> ConfigurationSpace:
    space = ConfigurationSpace()
    space.add(
        Float("lr", (1e-4, 1e-1), log=True),
        Integer("layers", (1, 5)),
        Integer("units", (8, 512), log=True),
        Categorical("act", ["relu", "tanh", "gelu"]),
        Categorical("size", ["small", "medium", "large"], ordered=True),
        Constant("dataset", "iris"),
    )
    return space


def conditional_space() -> ConfigurationSpace:
    space = ConfigurationSpace()
    kernel = Categorical("kernel", ["linear", "poly", "rbf"])
    degree, gamma = Integer("degree", (2, 5)), Float("gamma", (1e-3, 1e1), log=True)
    coef = Float("coef0", (-1.0, 1.0))
    marker = Constant("marker", 7)
    space.add(kernel, degree, gamma, coef, marker, Float("C", (1e-2, 1e2), log=True))
    space.add(
        EqualsCondition(degree, kernel, "poly"),
        InCondition(gamma, kernel, ["poly", "rbf"]),
        EqualsCondition(coef, degree, 3),
        EqualsCondition(marker, kernel, "rbf"),
    )
    space.add(ForbiddenAndConjunction(ForbiddenEqualsClause(kernel, "poly"), ForbiddenEqualsClause(degree, 5)))
    return space


SPACES = {"plain": plain_space, "mixed": mixed_space, "conditional": conditional_space}


def branin(config) -> float:
    x1, x2 = config["x1"], config["x2"]
    curve = x2 - 5.1 / (4 * np.pi**2) * x1**2 + 5 / np.pi * x1 - 6
    return float(curve**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x1) + 10)
