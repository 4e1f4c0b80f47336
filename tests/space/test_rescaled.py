"""Logarithmic scales that the space does not declare."""

from __future__ import annotations

import json

import numpy as np
import pytest
from ConfigSpace import Float, Integer

import slayr_py as sl
from slayr_py.acquisition import OptimumPrior
from slayr_py.space import Dimension, Encoder, as_encoder, encoder_from_json, encoder_to_json

SPACE = {"rate": (1e-3, 1.0), "units": (1, 2000), "alpha": (0.0, 50.0), "count": (0, 500), "kind": ["a", "b"]}
NUMBERS = ("rate", "units", "alpha", "count")


def dimension(parameter):
    return Dimension.from_hyperparameter(parameter)


def test_a_positive_range_has_the_scale_that_log_declares():
    for lower, upper, kind in ((1e-3, 1.0, Float), (1, 2000, Integer)):
        declared = dimension(kind("x", (lower, upper), log=True))
        assert dimension(kind("x", (lower, upper))).rescaled() == declared
        assert declared.rescaled() is None


@pytest.mark.parametrize(
    ("parameter", "shift"),
    [(Float("x", (0.0, 50.0)), 0.05), (Integer("x", (0, 500)), 1.0), (Integer("x", (0, 100_000)), 100.0)],
    ids=str,
)
def test_a_range_from_zero_has_the_scale_of_shifted_logarithms(parameter, shift):
    linear = dimension(parameter)
    other = linear.rescaled()
    assert other.shift == shift and not other.is_linear and not other.log
    numbers = np.linspace(0, linear.upper, 101)
    if linear.kind == "integer":
        numbers = np.unique(np.rint(numbers))
    units = other.unit_values(numbers)
    expected = np.log(numbers + shift)
    expected = (expected - np.log(shift)) / (np.log(linear.upper + shift) - np.log(shift))
    np.testing.assert_allclose(units, expected, rtol=0, atol=1e-14)
    np.testing.assert_allclose(other.numbers(units), numbers, rtol=1e-13, atol=1e-13)
    assert all(other.equals(units, number)[row] for row, number in enumerate(numbers))
    assert other.numbers(np.array([0.0, 1.0])).tolist() == [0.0, linear.upper]


@pytest.mark.parametrize(
    "parameter",
    [
        Float("x", (1.0, 99.0)),
        Float("x", (-5.0, 5.0)),
        Float("x", (-5.0, -0.01)),
        Float("x", (-5.0, 0.0)),
        Float("x", (1e-3, 1.0), log=True),
        Float("x", (1e-13, 1.0)),
        Integer("x", (0, 90)),
        Integer("x", (1, 50)),
    ],
    ids=str,
)
def test_other_ranges_keep_their_scale(parameter):
    assert dimension(parameter).rescaled() is None


def test_configurations_do_not_depend_on_scales():
    encoder = Encoder(SPACE)
    other = encoder.rescaled(["alpha", "rate"])
    assert other.logarithmic == ("alpha", "rate") and encoder.logarithmic == ()
    configs = encoder.sobol(40, 3)
    assert other.decode(other.encode(configs)) == configs
    assert not other.matches(encoder)
    for here, there in ((encoder, other), (other, encoder)):
        moved = there.encode(here.encode(configs))
        np.testing.assert_array_equal(moved.unit_values, there.encode(configs).unit_values)
        assert there.decode(moved) == configs
    columns = [other.names.index(name) for name in ("kind", "units", "count")]
    np.testing.assert_array_equal(
        other.encode(configs).unit_values[:, columns], encoder.encode(configs).unit_values[:, columns]
    )
    assert other.rescaled(()).matches(encoder)
    assert other.rescaled(["rate", "alpha"]) is other
    with pytest.raises(sl.SpaceError, match="encoded for another space"):
        other.encode(Encoder({"rate": (1e-3, 1.0)}).encode([{"rate": 0.5}]))


def test_uniform_draws_are_uniform_on_the_scale():
    encoder = Encoder(SPACE).rescaled(NUMBERS)
    values = np.array([[config[name] for name in NUMBERS] for config in encoder.sobol(1024, 0)])
    medians = [np.sqrt(1e-3), np.sqrt(2000), 0.05 * (np.sqrt(1001) - 1), np.sqrt(501) - 1]
    np.testing.assert_allclose(np.median(values, axis=0), medians, rtol=0.06)


@pytest.mark.parametrize("within", ["x + y <= 101", "x * y <= 2600"])
def test_draws_inside_constraints_that_always_hold_are_uniform_on_shifted_logarithms_too(within):
    quartiles = []
    for lower in (0.0, 0.05):  # the shift is 0.05
        encoder = Encoder({"x": (lower, 50.0), "y": (0.0, 50.0)}, within=[within]).rescaled(["x"])
        encoded, allowed = encoder.resolve(encoder.uniform(2000, np.random.default_rng(0)))
        assert allowed.all()
        quartiles.append(np.quantile(encoded.unit_values[:, 0], [0.25, 0.5, 0.75]))
    np.testing.assert_allclose(quartiles, [[0.25, 0.5, 0.75]] * 2, atol=0.08)
    np.testing.assert_allclose(*quartiles, atol=0.05)


def test_the_bounds_are_exact_on_every_scale():
    for lower, upper in ((1.0, 200.0), (1e-3, 1.0), (0.1, 37.0), (0.0, 50.0)):
        linear = dimension(Float("x", (lower, upper)))
        for d in (linear, linear.rescaled()):
            assert d.values(d.numbers(np.array([0.0, 1.0]))) == [lower, upper]


@pytest.mark.parametrize("name", ["kind", "unknown"])
def test_other_names_are_refused(name):
    with pytest.raises(sl.SpaceError, match=f"^{name} cannot be logarithmic"):
        Encoder(SPACE).rescaled(["rate", name])


def test_json_has_the_scales_that_are_not_declared():
    encoder = Encoder(SPACE)
    assert "logarithmic" not in encoder_to_json(encoder)
    other = encoder.rescaled(["units", "alpha"])
    again = encoder_from_json(json.loads(json.dumps(encoder_to_json(other))))
    assert again.matches(other) and again.logarithmic == other.logarithmic == ("alpha", "units")


def test_fixed_values_of_another_scale_are_refused():
    encoder = Encoder(SPACE)
    other = encoder.rescaled(["alpha"])
    genotype = other.uniform(3, np.random.default_rng(0))
    assert other.resolve(genotype, other.fix({"alpha": 0.25}))[1].all()
    with pytest.raises(sl.SpaceError, match=r"'alpha': 0.25.* were fixed for another space or scale"):
        other.resolve(genotype, encoder.fix({"alpha": 0.25}))
    assert other.resolve(genotype, encoder.fix({"rate": 0.25}))[1].all()


def large(config):
    return config["x"] + config["y"] + config["z"] >= 2400


def test_fixed_values_have_an_example_also_where_a_function_allows_little_of_the_scale():
    numbers = ["x", "y", "z"]
    encoder = Encoder({**dict.fromkeys(numbers, (1.0, 1000.0)), "share": (0.0, 1.0)}, within=[large])
    other = encoder.rescaled(numbers)
    fixed = encoder.fix({"share": 0.25})
    for kept in (other.fix({"share": 0.25}), other.refix(fixed)):
        encoded, allowed = other.resolve(kept.example, kept)
        assert allowed.all() and other.decode(encoded)[0]["share"] == 0.25
    assert encoder.refix(fixed) is fixed
    np.testing.assert_allclose(encoder.refix(other.refix(fixed)).example, fixed.example, rtol=1e-13)
    assert encoder.is_searchable and not other.is_searchable


def test_constraints_on_inputs_stay():
    within = ["alpha + 10 * rate <= 20"]
    encoder = as_encoder(Encoder(SPACE).rescaled(["alpha"]), within)
    assert encoder.logarithmic == ("alpha",)
    configs = encoder.rescaled(["alpha", "rate"]).sobol(20, 0)
    assert all(config["alpha"] + 10 * config["rate"] <= 20 + 1e-9 for config in configs)
    alpha = np.linspace(0.5, 15.0, 7)
    (column,) = (j for j, name in enumerate(encoder.names) if name == "alpha")
    numbers = encoder._numbers(encoder.encode(configs))[:7]
    numbers[:, column] = alpha
    d = encoder.dimensions[column]
    units = d.unit_values(alpha)
    steps = (d.numbers(units + 1e-6) - d.numbers(units - 1e-6)) / 2e-6
    np.testing.assert_allclose(encoder.region.unit_steps(numbers)[:, column], steps, rtol=1e-6)


def test_a_belief_about_the_optimum_needs_the_declared_scale():
    with pytest.raises(sl.DataError, match="prior: the scale of 'alpha' is shifted"):
        OptimumPrior.of({"alpha": sl.LogNormal(0, 1)}, Encoder(SPACE).rescaled(["alpha"]))


@pytest.mark.parametrize("lower", [1e-15, 5e-324])
def test_a_range_whose_ratio_is_infinite_stays_linear(lower):
    assert Dimension("x", "float", lower, 1e294).rescaled() is None


def test_configurations_of_different_scales_are_not_joined():
    encoder = Encoder(SPACE)
    configs = encoder.sobol(2, 0)
    other = encoder.rescaled(["rate"])
    with pytest.raises(sl.SpaceError, match="scales"):
        encoder.encode(configs).concatenate(other.encode(configs))
    joined = encoder.encode(configs).concatenate(encoder.encode(other.encode(configs)))
    assert encoder.decode(joined) == [*configs, *configs]
