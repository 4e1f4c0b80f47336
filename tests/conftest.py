"""Spaces, data and one fit that many tests look at."""

from __future__ import annotations

import os

import matplotlib
import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace, EqualsCondition, ForbiddenAndConjunction, ForbiddenEqualsClause, InCondition

import slayr_py as sl
from slayr_py.space import Encoder

matplotlib.use("Agg")
os.environ.setdefault("OMP_NUM_THREADS", "1")


def plain_space() -> ConfigurationSpace:
    return ConfigurationSpace({"x": (0.0, 1.0), "z": (-5.0, 10.0)})


def mixed_space() -> ConfigurationSpace:
    from ConfigSpace import Categorical, Constant, Float, Integer

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
    from ConfigSpace import Categorical, Constant, Float, Integer

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


@pytest.fixture(params=sorted(SPACES))
def any_space(request: pytest.FixtureRequest) -> ConfigurationSpace:
    return SPACES[request.param]()


@pytest.fixture(scope="session")
def branin_data() -> tuple[ConfigurationSpace, list, np.ndarray]:
    """20 Sobol points of Branin on its usual domain."""
    space = ConfigurationSpace({"x1": (-5.0, 10.0), "x2": (0.0, 15.0)})
    configs = Encoder(space).sobol(20, 0)
    return space, configs, np.array([branin(c) for c in configs])


def branin(config) -> float:
    x1, x2 = config["x1"], config["x2"]
    curve = x2 - 5.1 / (4 * np.pi**2) * x1**2 + 5 / np.pi * x1 - 6
    return float(curve**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x1) + 10)


@pytest.fixture(scope="session")
def branin_posterior(branin_data) -> sl.Posterior:
    space, configs, y = branin_data
    return sl.GaussianProcess(space).fit(configs, y, chains=2, warmup=300, draws=300, seed=5)


@pytest.fixture(scope="session")
def mixed_posterior() -> sl.Posterior:
    """A small fit on a space with every kind of parameter."""
    space = mixed_space()
    configs = Encoder(space).sobol(12, 3)
    y = [np.log(c["lr"]) + c["layers"] + (c["act"] == "relu") + 0.1 * len(c["size"]) for c in configs]
    return sl.GaussianProcess(space).fit(configs, y, chains=2, warmup=150, draws=100, seed=2)
