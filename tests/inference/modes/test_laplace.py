"""Modes and Laplace's approximation on densities with known answers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from slayr_py.errors import InferenceError
from slayr_py.inference.modes.laplace import find_mode, hessian, laplace_draws, laplace_evidence
from slayr_py.inference.modes.marginal import LogDensity, Marginal

A = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 50.0]])
CENTRE = np.array([1.0, -2.0, 0.3])


class Quadratic(Marginal):
    """A normal density times a constant; a second, lower mode on request."""

    n = 5

    def __init__(self, constant=3.0, second=False):
        self.constant = constant
        self.second = second
        self.calls = 0

    def __call__(self, z):
        self.calls += 1
        offset = z - CENTRE
        value = self.constant - 0.5 * offset @ A @ offset
        gradient = -A @ offset
        if self.second and z[0] < -5:
            value = -10 - 0.5 * np.sum(np.square(z + 10))
            gradient = -(z + 10)
        return LogDensity(value, gradient, value)

    def leave_one_out(self, z):
        raise AssertionError("not called")

    def mean(self, z, new):
        raise AssertionError("not called")


class Nowhere(Quadratic):
    def __call__(self, z):
        return LogDensity(-np.inf, np.zeros(3), -np.inf)


def test_the_best_of_several_modes_is_found():
    marginal = Quadratic(second=True)
    mode = find_mode(marginal, [np.full(3, -11.0), np.zeros(3)])
    np.testing.assert_allclose(mode.z, CENTRE, atol=1e-4)
    assert mode.evaluations == marginal.calls  # the density at the mode is one of them


def test_evidence_of_a_normal_density_is_its_integral():
    density = Quadratic()(CENTRE)
    marginal = Quadratic()
    curvature = hessian(marginal, CENTRE, density.gradient)
    assert marginal.calls == 3  # one for each coordinate: the gradient at the mode is known
    np.testing.assert_allclose(curvature, A, rtol=1e-6, atol=1e-6)
    expected = 3.0 + 1.5 * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(A)[1]
    assert laplace_evidence(density, curvature) == pytest.approx(expected, rel=1e-8)


def test_a_direction_without_curvature_costs_what_the_prior_gives():
    flat = np.diag([2.0, 1e-5, -0.3])
    density = LogDensity(0.0, np.zeros(3), 0.0)
    assert laplace_evidence(density, flat) == pytest.approx(1.5 * np.log(2 * np.pi) - 0.5 * np.log(2.0))


def test_draws_have_the_moments_of_the_approximation():
    draws = laplace_draws(Quadratic(), CENTRE, 4000, np.random.default_rng(1))
    inverse = np.linalg.inv(A)
    error = 4 * np.sqrt(np.diagonal(inverse) / 4000)  # four standard errors of a mean
    assert np.all(np.abs(draws.mean(axis=0) - CENTRE) < error)
    # The log density of the draws has the expectation of a normal distribution: minus its entropy.
    logs = multivariate_normal(CENTRE, inverse).logpdf(draws)
    expected = -0.5 * (3 + 3 * np.log(2 * np.pi) + np.linalg.slogdet(inverse)[1])
    assert abs(logs.mean() - expected) < 4 * np.sqrt(1.5 / 4000)


def test_no_finite_density_is_an_error():
    with pytest.raises(InferenceError, match="not positive definite"):
        find_mode(Nowhere(), [np.zeros(3), np.ones(3)])
