"""Fixed values of some parameters."""

from __future__ import annotations

import numpy as np
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
)

from slayr_py.errors import SpaceError
from slayr_py.space import Encoder


@pytest.fixture
def encoder() -> Encoder:
    space = ConfigurationSpace()
    kernel = Categorical("kernel", ["rbf", "poly"])
    degree = Integer("degree", (1, 8))
    rate = Float("rate", (1e-5, 7.0), log=True)
    flag = Categorical("flag", [True, False])
    space.add(kernel, degree, rate, flag, Constant("version", 3))
    space.add(EqualsCondition(degree, kernel, "poly"))
    space.add(ForbiddenAndConjunction(ForbiddenEqualsClause(kernel, "rbf"), ForbiddenEqualsClause(flag, False)))
    return Encoder(space)


def test_resolved_genotypes_have_the_fixed_values_to_the_last_digit(encoder):
    fixed = encoder.fix({"rate": 0.1 + 0.2, "degree": 3, "version": 3})
    assert fixed.values == {"degree": 3, "rate": 0.3}  # the digits that ConfigSpace keeps
    encoded, allowed = encoder.resolve(encoder.from_uniform(np.random.default_rng(0).random((50, 4))), fixed)
    found = encoder.decode(encoded[allowed])
    assert 10 < len(found) < 40
    for config in found:
        assert config["rate"] == 0.3 and config["degree"] == 3 and config["kernel"] == "poly"
    assert fixed.hold(encoded).tolist() == allowed.tolist()
    assert fixed.hold(encoder.encode([{"kernel": "rbf", "rate": 0.3, "flag": True}])).tolist() == [False]


@pytest.mark.parametrize(
    ("parameter", "value", "other"),
    [
        (Integer("x", (0, 2**32 - 1)), 7, 8),
        (Integer("x", (1, 2**32 - 1), log=True), 2**32 - 1, 2**32 - 2),
        (Float("x", (0.0, 1e12)), 0.0, 1.0),
        (Float("x", (1e-3, 1e12), log=True), 0.1, 0.1000001),
    ],
)
def test_neighbouring_values_of_a_wide_range_are_told_apart(parameter, value, other):
    encoder = Encoder(ConfigurationSpace({"x": parameter}))
    encoded = encoder.encode([{"x": value}, {"x": other}])
    assert encoder.fix({"x": value}).hold(encoded).tolist() == [True, False]


def test_rounding_does_not_change_a_fixed_value(encoder):
    configs = [{"kernel": "rbf", "rate": rate, "flag": True} for rate in (0.3, 0.1 + 0.2, 0.3 + 2e-12)]
    assert encoder.fix({"rate": 0.3}).hold(encoder.encode(configs)).tolist() == [True, True, False]


def test_a_design_has_the_fixed_values(encoder):
    free = encoder.sobol(20, 1)
    design = encoder.sobol(20, 1, encoder.fix({"rate": 0.123, "flag": True}))
    assert all(config["rate"] == 0.123 and config["flag"] for config in design)
    assert len({config["rate"] for config in free}) == 20


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"ratte": 0.1}, "^here: there is no parameter 'ratte' .= 0.1.; did you mean 'rate'"),
        ({"rate": 9.0}, "^here: parameter 'rate' is 9.0; give a number from 1e-05 to 7.0"),
        ({"kernel": "sigmoid"}, "^here: parameter 'kernel' has no level 'sigmoid'"),
        ({"kernel": "rbf", "degree": 2}, "^here: parameter 'degree' has a value although it is inactive: degree |"),
        ({"kernel": "rbf", "flag": False}, "^here: no configuration of the space has the values"),
        ({"version": 4}, "^here: parameter 'version' is the constant 3, not 4"),
        (["rate"], "^here: the fixed values are .'rate'.; give a mapping"),
    ],
)
def test_illegal_values(encoder, values, words):
    with pytest.raises(SpaceError, match=words):
        encoder.fix(values, "here: ")
