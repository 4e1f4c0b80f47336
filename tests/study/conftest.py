"""Small spaces and fits that are quick rather than good."""

from __future__ import annotations

from typing import Any

import pytest
from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    Constant,
    EqualsCondition,
    Float,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    Integer,
    OrdinalHyperparameter,
)


@pytest.fixture
def quick() -> dict[str, Any]:
    """The mode of the hyperparameters: enough for everything that is not about the fit itself."""
    return {"method": "map", "chains": 1, "warmup": 50, "draws": 50}


@pytest.fixture
def plane() -> ConfigurationSpace:
    return ConfigurationSpace({"x": (-5.0, 10.0), "y": (0.0, 15.0)})


@pytest.fixture
def mixed() -> ConfigurationSpace:
    """Every kind of parameter, a condition and a forbidden combination."""
    space = ConfigurationSpace()
    kernel = Categorical("kernel", ["rbf", "poly", "linear"])
    degree = Integer("degree", (1, 8), log=True)
    rate = Float("rate", (1e-4, 1.0), log=True)
    size = OrdinalHyperparameter("size", ["s", "m", "l"])
    flag = Categorical("flag", [True, False])
    space.add(kernel, degree, rate, size, flag, Constant("version", 3))
    space.add(EqualsCondition(degree, kernel, "poly"))
    space.add(ForbiddenAndConjunction(ForbiddenEqualsClause(size, "l"), ForbiddenEqualsClause(flag, False)))
    return space
