"""NormalCoordinates that are standard normal under the prior."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import slayr_py as sl
from slayr_py.errors import DataError
from slayr_py.inference.modes.normal_coordinates import LARGEST, NormalCoordinates
from slayr_py.kernels import Hyperparameter

HYPERPARAMETERS = (
    Hyperparameter("mu", sl.Normal(1.0, 2.0)),
    Hyperparameter("a", sl.LogNormal([0.0, -1.0], [1.0, 0.5]), ("x", "z"), "column"),
    Hyperparameter("b", sl.Gamma(2.0, 3.0)),
    Hyperparameter("c", sl.Beta([1.0, 2.0], [1.0, 1.0]), ("1", "2"), "left"),
    Hyperparameter("d", sl.InverseGamma(3.0, 1.0)),
    Hyperparameter("e", sl.HalfNormal(2.0)),
    Hyperparameter("f", sl.LogNormal(np.log(3.0), 0.0)),
)
DISTRIBUTIONS = [
    stats.norm(1, 2),
    stats.lognorm(1, scale=1),
    stats.lognorm(0.5, scale=np.exp(-1)),
    stats.gamma(2, scale=1 / 3),
    stats.beta(1, 1),
    stats.beta(2, 1),
    stats.invgamma(3, scale=1),
    stats.halfnorm(scale=2),
]


def test_values_are_the_quantiles_of_the_prior():
    coordinates = NormalCoordinates(HYPERPARAMETERS)
    z = np.random.default_rng(1).normal(size=(20, coordinates.size))
    theta = coordinates.theta(z)
    assert theta["mu"].shape == (20,)
    assert theta["a"].shape == (20, 2)
    values = np.column_stack([theta[h.name].reshape(20, -1) for h in HYPERPARAMETERS[:-1]])
    for i, distribution in enumerate(DISTRIBUTIONS):
        np.testing.assert_allclose(values[:, i], distribution.ppf(stats.norm.cdf(z[:, i])), rtol=1e-9)
    np.testing.assert_allclose(theta["f"], 3.0, rtol=1e-15)


def test_entries_have_names_and_labels():
    coordinates = NormalCoordinates(HYPERPARAMETERS[:4])
    assert coordinates.entries == (("mu", ""), ("a", "x"), ("a", "z"), ("b", ""), ("c", "1"), ("c", "2"))
    assert coordinates.place("c") == slice(4, 6)


def test_derivatives_are_those_of_the_values():
    coordinates = NormalCoordinates(HYPERPARAMETERS)
    rng = np.random.default_rng(2)
    z = rng.normal(size=(3, coordinates.size))
    weights = {name: rng.normal(size=values.shape) for name, values in coordinates.theta(z).items()}

    def total(z):
        return sum(
            (weights[name] * values).reshape(len(z), -1).sum(axis=1) for name, values in coordinates.theta(z).items()
        )

    steps = 1e-6 * np.eye(coordinates.size)
    expected = np.column_stack([(total(z + step) - total(z - step)) / 2e-6 for step in steps])
    np.testing.assert_allclose(coordinates.by_coordinate(z, weights), expected, rtol=1e-6, atol=1e-8)


def test_what_is_fixed_or_beyond_the_largest_score_has_no_derivative():
    coordinates = NormalCoordinates(HYPERPARAMETERS)
    z = np.full((1, coordinates.size), LARGEST + 1)
    weights = {name: np.ones_like(values) for name, values in coordinates.theta(z).items()}
    assert not coordinates.by_coordinate(z, weights).any()
    assert all(np.isfinite(values).all() for values in coordinates.theta(z).values())
    assert coordinates.by_coordinate(np.zeros((1, coordinates.size)), weights)[0, -1] == 0


def test_weights_with_a_dirichlet_prior_are_refused():
    coordinates = NormalCoordinates([Hyperparameter("share", sl.Dirichlet(1.0), ("a", "b"), "part")])
    with pytest.raises(DataError, match="Dirichlet"):
        coordinates.theta(np.zeros((1, 2)))
