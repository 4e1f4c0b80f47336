from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from scipy.special import log_ndtr
from scipy.stats import multivariate_normal, norm

from benchmarks.correctness.binary import cases, signs_and_predictions
from slayr_py.inference import Targets
from slayr_py.inference.prediction.kernel_predictor import KernelPredictor
from slayr_py.inference.prediction.success import _log_orthant
from slayr_py.kernels import from_name
from slayr_py.space import Encoded, Encoder

ENCODER = Encoder(ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)}))
KERNEL = from_name("matern")
DRAWS = {
    "mu": np.array([0.3, -0.5, 1.0]),
    "sigma_f": np.array([10.0, 3.0, 15.0]),
    "sigma_n": np.ones(3),
    "lengthscale": np.array([[0.4, 0.6], [0.2, 0.3], [0.7, 0.5]]),
}


def predictor_of(X, success):
    targets = Targets(np.where(success, 1.0, -1.0), np.zeros(len(X)), binary=True)
    return KernelPredictor.factorise(KERNEL, ENCODER.encode(X), targets, DRAWS)


def by_moments(predictor, new):
    mean, variance = predictor.moments(new)
    return norm.cdf(mean / np.sqrt(1 + variance))


@pytest.mark.parametrize("success", [True, False])
def test_one_observation_is_exact(success):
    """P(y* = 1 | y) is a ratio of an orthant probability of two normal variables and one of a single one."""
    x = np.array([[0.5, 0.5]])
    X = np.array([[0.5, 0.5], [0.5, 0.52], [0.7, 0.4], [0.0, 1.0]])
    probability = np.exp(predictor_of(x, np.array([success])).log_success(ENCODER.encode(X)))
    K = KERNEL.cross(ENCODER.encode(X), ENCODER.encode(X), DRAWS)
    sign = 1.0 if success else -1.0
    for s, mu in enumerate(DRAWS["mu"]):
        for m in range(len(X)):
            covariance = np.array([[K[s, m, m] + 1, sign * K[s, m, 0]], [sign * K[s, m, 0], K[s, 0, 0] + 1]])
            joint = multivariate_normal(cov=covariance).cdf([mu, sign * mu])
            exact = joint / norm.cdf(sign * mu / np.sqrt(covariance[1, 1]))
            assert probability[s, m] == pytest.approx(exact, rel=1e-5), (s, m)


def test_repeated_successes_have_the_documented_errors():
    """Exact: the latent value at the configuration has the density of Normal(mu, sigma_f) times Phi(f)^6."""
    predictor = predictor_of(np.full((6, 2), 0.5), np.ones(6, dtype=bool))
    X = ENCODER.encode(np.column_stack([np.linspace(0.5, 1.0, 26), np.full(26, 0.5)]))
    K = KERNEL.cross(X, X, DRAWS)
    probability = np.exp(predictor.log_success(X))
    spread = np.sqrt(predictor.moments(X)[1][:, 0])
    for s, (mu, sigma_f) in enumerate(zip(DRAWS["mu"], DRAWS["sigma_f"], strict=True)):
        f = np.linspace(mu - 8 * sigma_f, mu + 8 * sigma_f, 20_001)
        weight = norm.pdf(f, mu, sigma_f) * norm.cdf(f) ** 6
        weight /= weight.sum()
        sd = np.sqrt(weight @ np.square(f - weight @ f))
        assert 0.7 * sd < spread[s] < 0.9 * sd
        slope = K[s, 0] / sigma_f**2
        rest = np.sqrt(1 + sigma_f**2 - slope * K[s, 0])
        exact = norm.cdf((mu + slope * (f[:, None] - mu)) / rest).T @ weight
        assert abs(probability[s, 0] - exact[0]) < 0.002 and np.abs(probability[s] - exact).max() < 0.05


@pytest.mark.parametrize(("h", "k", "rho"), [(-6.0, 4.0, -0.8), (6.0, -7.0, -0.9), (-8.0, -7.0, 0.5)])
def test_small_probabilities_of_two_variables(h, k, rho):
    x = np.linspace(-45.0, h, 100_001)
    log_density = norm.logpdf(x) + log_ndtr((k - rho * x) / np.sqrt(1 - rho**2))
    largest = log_density.max()
    wanted = largest + np.log(np.trapezoid(np.exp(log_density - largest), x))
    assert _log_orthant(*np.array([[h], [k], [rho]]))[0] == pytest.approx(wanted, abs=0.01)


@pytest.mark.parametrize("name", cases())
def test_probabilities_are_closer_to_the_exact_ones_than_by_moments(name):
    """Beside observations. Reference: simulated orthant probabilities of ``benchmarks/correctness/binary.py``."""
    case = cases()[name]
    case = case._replace(new=case.new[:2])
    predictor = predictor_of(case.X, case.success)
    new = ENCODER.encode(case.new)
    both = ENCODER.encode(np.vstack([case.X, case.new]))
    K = KERNEL.cross(both, both, DRAWS)
    rng = np.random.default_rng(0)
    uniform = rng.random((20_000, len(case.X)))
    exact = []
    for covariance, mu in zip(K, DRAWS["mu"], strict=True):
        together = signs_and_predictions(case, covariance, mu, uniform)
        exact.append(together[1:] / together[0])
    error = np.abs(np.exp(predictor.log_success(new)) - exact).max()
    assert error < 0.5 * np.abs(by_moments(predictor, new) - exact).max()


@pytest.mark.parametrize("pending", [0, 2])
def test_gradients_are_those_of_finite_differences(pending):
    case = cases()["a corner of 25"]
    rng = np.random.default_rng(1)
    predictor = predictor_of(case.X, case.success).with_pending(ENCODER.encode(rng.random((pending, 2))))
    # Beside failures and successes, between them, and confident: the logarithms are down to -20
    new = ENCODER.encode(np.vstack([case.new[:3] + 0.01, rng.random((4, 2))]))
    values, gradient = predictor.log_success_with_gradient(new)
    np.testing.assert_allclose(values, predictor.log_success(new), rtol=1e-12)
    h = 1e-5
    for j in range(2):
        step = h * np.eye(2)[j]
        up, down = (
            predictor.log_success(Encoded(new.unit_values + sign * step, new.active, ENCODER)) for sign in (1, -1)
        )
        np.testing.assert_allclose(gradient[:, :, j], (up - down) / (2 * h), rtol=1e-5, atol=1e-5)


def test_it_is_the_moments_far_from_all_observations():
    predictor = predictor_of(np.array([[0.0, 0.0], [0.01, 0.0]]), np.array([True, False]))
    short = KernelPredictor.factorise(
        KERNEL, predictor.train, predictor.targets, DRAWS | {"lengthscale": np.full((3, 2), 0.001)}
    )
    far = ENCODER.encode(np.array([[1.0, 1.0]]))
    np.testing.assert_allclose(np.exp(short.log_success(far)), by_moments(short, far), rtol=1e-12)
    values, gradient = short.log_success_with_gradient(far)
    assert np.isfinite(values).all() and np.isfinite(gradient).all()
