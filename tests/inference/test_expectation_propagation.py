from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from slayr_py.inference import expectation_propagation
from slayr_py.inference.expectation_propagation import CONVERGED_EVIDENCE, Tolerance, propagate
from slayr_py.space import FloatArray


def squared_exponential(x: FloatArray, sigma_f: float, lengthscale: float) -> FloatArray:
    return sigma_f**2 * np.exp(-0.5 * ((x[:, None] - x) / lengthscale) ** 2)


def test_moments_are_those_of_the_posterior():
    """Compared with importance sampling from the prior of five latent values."""
    rng = np.random.default_rng(0)
    x = np.array([0.0, 0.1, 0.3, 0.7, 1.0])
    covariance = squared_exponential(x, 3.0, 0.4)
    mu = np.array([0.4])
    y = np.array([1.0, 1.0, -1.0, -1.0, 1.0])
    targets, variance = (values[0] for values in propagate(y, covariance[None], mu)[:2])
    gain = covariance @ np.linalg.inv(covariance + np.diag(variance))
    mean = mu + gain @ (targets - mu)
    sd = np.sqrt(np.diag(covariance - gain @ covariance))
    n = 400_000
    f = mu + rng.normal(size=(n, 5)) @ np.linalg.cholesky(covariance + 1e-9 * np.eye(5)).T
    weights = np.exp(norm.logcdf(y * f).sum(axis=1))
    weights /= weights.sum()
    exact_mean = weights @ f
    exact_sd = np.sqrt(weights @ (f - exact_mean) ** 2)
    # Expectation propagation is not exact; the Monte Carlo error is about 0.02.
    np.testing.assert_allclose(mean, exact_mean, atol=0.06)
    np.testing.assert_allclose(sd, exact_sd, atol=0.06)


def test_confident_observations_have_finite_targets():
    sites = propagate(np.ones(2), np.array([[[1e8, 9e7], [9e7, 1e8]]]), np.zeros(1))
    assert np.isfinite([sites.targets, sites.variance]).all() and np.isfinite(sites.log_evidence).all()


def test_evidence_of_one_observation_is_exact():
    sites = propagate(np.array([-1.0]), np.array([[[4.0]], [[0.25]]]), np.array([0.5, -0.3]))
    exact = norm.logcdf(-np.array([0.5, -0.3]) / np.sqrt([5.0, 1.25]))
    np.testing.assert_allclose(sites.log_evidence, exact, rtol=1e-12)
    assert sites.targets.shape == sites.variance.shape == (2, 1)


def test_evidence_is_near_the_orthant_probability():
    """P(all y_i (f_i + e_i) > 0) with standard normal noise e, by numerical integration in three dimensions."""
    x = np.array([0.0, 0.2, 0.7])
    covariance = squared_exponential(x, 1.5, 0.4)
    y = np.array([1.0, 1.0, -1.0])
    flipped = np.outer(y, y) * (covariance + np.eye(3))
    exact = multivariate_normal(np.zeros(3), flipped).cdf(0.3 * y)
    evidence = propagate(y, covariance[None], np.array([0.3])).log_evidence[0]
    assert evidence == pytest.approx(np.log(exact), abs=5e-3)  # expectation propagation is not exact


@pytest.mark.parametrize("sigma_f", [3.0, 10.0, 40.0, 1e3])
def test_sites_of_close_observations_converge(sigma_f):
    """With a constant share of 0.7 of each change they oscillate for ever if ``sigma_f`` is large.

    Their precisions are then small, and a tolerance that does not scale with them ends the iteration at the first step.
    """
    x = np.linspace(0, 1, 40)
    y = np.where(x > 0, 1.0, -1.0)
    covariance = squared_exponential(x, sigma_f, 1.0)
    mu = np.array([0.0])
    sites = propagate(y, covariance[None], mu)
    targets, noise = sites.targets[0], sites.variance[0]
    # Moments under the sites are those with each factor in place of its site (Rasmussen & Williams 2006, eq. 3.58).
    gain = covariance @ np.linalg.inv(covariance + np.diag(noise))
    mean = mu + gain @ (targets - mu)
    variance = np.diag(covariance - gain @ covariance)
    cavity = 1 / (1 / variance - 1 / noise)
    centre = cavity * (mean / variance - targets / noise)
    z = y * centre / np.sqrt(1 + cavity)
    ratio = np.exp(norm.logpdf(z) - norm.logcdf(z))
    matched = centre + y * cavity * ratio / np.sqrt(1 + cavity)
    np.testing.assert_allclose(matched, mean, atol=1e-4 * np.sqrt(variance.max()))
    rough = propagate(y, covariance[None], mu, CONVERGED_EVIDENCE)
    assert rough.log_evidence[0] == pytest.approx(sites.log_evidence[0], abs=5e-3)


def test_outcomes_that_the_prior_makes_certain_leave_it_as_it_is():
    """Precisions of the sites are nearly 0 and the variance small, so that their product has no digits beside 1."""
    covariance = squared_exponential(np.linspace(0, 1, 5), 1e-3, 0.5)
    sites = propagate(np.array([1.0, 1.0, 1.0, 1.0, -1.0]), np.stack([covariance, covariance]), np.array([8.0, -30.0]))
    np.testing.assert_allclose(sites.log_evidence, [norm.logcdf(-8.0), 4 * norm.logcdf(-30.0)], rtol=1e-4)
    assert np.isfinite([sites.targets, sites.variance]).all()


@pytest.mark.parametrize(("n", "places"), [(100, 1), (150, 4)])
def test_many_observations_at_few_places(n, places):
    """The sites change together, and the evidence converges slowly: one small change is not enough."""
    rng = np.random.default_rng(0)
    x = rng.random(places)[np.arange(n) % places]
    y = np.where(x > 0.5, 1.0, -1.0)
    sigma_f, lengthscale = np.exp([[2.3], [-0.5]] + np.array([[0.5], [0.9]]) * rng.standard_normal((2, 8)))
    covariance = np.stack([squared_exponential(x, *each) for each in zip(sigma_f, lengthscale, strict=True)])
    mu = rng.standard_normal(8)
    sites = propagate(y, covariance, mu, Tolerance(1e-8, np.inf))  # with 1e-9 one draw does not converge
    rough = propagate(y, covariance, mu, CONVERGED_EVIDENCE)
    np.testing.assert_allclose(rough.log_evidence, sites.log_evidence, atol=0.03)
    fine = propagate(y, covariance, mu)
    np.testing.assert_allclose(fine.variance, sites.variance, rtol=1e-3)


def test_draws_do_not_depend_on_each_other():
    x = np.linspace(0, 1, 9)
    y = np.where(np.arange(9) % 4 == 0, -1.0, 1.0)
    covariance = np.stack([squared_exponential(x, scale, 0.2) for scale in (0.5, 5.0, 2.0)])
    mu = np.array([0.0, 1.0, -1.0])
    together = propagate(y, covariance, mu)
    for i in range(3):
        alone = propagate(y, covariance[i : i + 1], mu[i : i + 1])
        for several, one in zip(together, alone, strict=True):
            np.testing.assert_allclose(several[i], one[0], rtol=1e-10)


def test_a_covariance_without_a_factor_has_no_evidence():
    sites = propagate(np.ones(2), np.array([[[1.0, -50.0], [-50.0, 1.0]], np.eye(2)]), np.zeros(2))
    assert np.isnan(sites.log_evidence[0]) and np.isfinite(sites.log_evidence[1])


def test_iterations_that_end_early_are_reported(monkeypatch):
    monkeypatch.setattr(expectation_propagation, "_STEPS", 2)
    covariance = np.array([np.full((2, 2), 4.0) + 1e-6 * np.eye(2), np.full((2, 2), np.nan)])
    with pytest.warns(UserWarning, match="not converged after 2 steps for 1 of 2 draws"):
        propagate(np.array([1.0, -1.0]), covariance, np.zeros(2))
