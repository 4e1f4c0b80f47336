from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gamma, kv
from sklearn.gaussian_process.kernels import Matern as SklearnMatern
from testing_spaces import mixed_space, plain_space

from slayr_py import DataError
from slayr_py.kernels import Matern
from slayr_py.kernels.base_kernels import matern_correlation
from slayr_py.space import Encoded, Encoder


@pytest.fixture
def points():
    encoder = Encoder(mixed_space())
    return encoder.encode(encoder.sobol(16, 0))


def random_theta(points, seed):
    rng = np.random.default_rng(seed)
    return {"sigma_f": rng.lognormal(), "lengthscale": rng.lognormal(size=points.columns.shape[1])}


@pytest.mark.parametrize("p", [0, 1, 2, 3])
def test_scikit_learn_agrees(points, p):
    for seed in range(20):
        theta = random_theta(points, seed)
        wanted = theta["sigma_f"] ** 2 * SklearnMatern(theta["lengthscale"], nu=p + 0.5)(points.columns)
        np.testing.assert_allclose(Matern(p).gram(points, points, theta), wanted, rtol=1e-10)


@pytest.mark.parametrize("p", [4, 7, 15, 40])
def test_bessel_form_agrees(p):
    # The definition for any nu: 2^(1-nu)/Gamma(nu) d^nu K_nu(d).
    d = np.geomspace(1e-2, 60, 50)
    nu = p + 0.5
    np.testing.assert_allclose(matern_correlation(d, p), 2 ** (1 - nu) / gamma(nu) * d**nu * kv(nu, d), rtol=1e-9)


def test_large_orders_approach_the_squared_exponential():
    r = np.linspace(0, 4, 30)
    np.testing.assert_allclose(matern_correlation(np.sqrt(2001) * r, 1000), np.exp(-0.5 * r**2), atol=1e-3)


@pytest.mark.parametrize("p", [0, 1, 2, 5, 1000])
def test_extreme_distances_are_harmless(p):
    assert np.array_equal(matern_correlation(np.array([0.0, 1e5, 1e200]), p), [1.0, 0.0, 0.0])


@pytest.mark.parametrize("p", [0, 1, 2, 3])
def test_gram_is_symmetric_and_positive_semidefinite(points, p):
    for seed in range(20):
        k = Matern(p).gram(points, points, random_theta(points, seed))
        assert np.array_equal(k, k.T)
        assert np.linalg.eigvalsh(k).min() > -1e-12 * k.max()


@pytest.mark.parametrize("p", [0, 1, 2, 3])
def test_gradient_is_that_of_finite_differences(points, p):
    theta = random_theta(points, p)
    draws = {"sigma_f": np.array([theta["sigma_f"]]), "lengthscale": theta["lengthscale"][None]}
    k, gradient = Matern(p).cross_gradient(points, points[:5], draws)
    np.testing.assert_allclose(k[0], Matern(p).gram(points, points[:5], theta))
    h = 1e-6
    real = [i for i, d in enumerate(points.encoder.dimensions) if d.is_real]
    apart = ~np.eye(16, 5, dtype=bool)  # the exponential kernel has a kink at coinciding points
    for position, j in enumerate(real):
        up = points.unit_values.copy()
        down = points.unit_values.copy()
        up[:, j] += h
        down[:, j] -= h
        above = Matern(p).gram(Encoded(up, points.active, points.encoder), points[:5], theta)
        below = Matern(p).gram(Encoded(down, points.active, points.encoder), points[:5], theta)
        np.testing.assert_allclose(gradient[0, ..., position][apart], ((above - below) / (2 * h))[apart], atol=1e-6)
    assert np.all(gradient[0][~apart] == 0)


def test_draws_are_computed_together(points):
    thetas = [random_theta(points, seed) for seed in range(4)]
    draws = {name: np.array([t[name] for t in thetas]) for name in thetas[0]}
    together = Matern(2).cross(points, points[:3], draws)
    for k, theta in zip(together, thetas, strict=True):
        np.testing.assert_allclose(k, Matern(2).gram(points, points[:3], theta), rtol=1e-14)


def test_sigma_f_defaults_to_one_and_noise_never_enters():
    encoder = Encoder(plain_space())
    points = encoder.encode(encoder.sobol(3, 0))
    theta = {"lengthscale": [1.0, 2.0]}
    k = Matern().gram(points, points, theta)
    np.testing.assert_array_equal(np.diag(k), 1.0)
    np.testing.assert_array_equal(k, Matern().gram(points, points, theta | {"sigma_n": 3.0, "mu": 1.0, "sigma_f": 1.0}))


@pytest.mark.parametrize("p", [-1, 1.5, "two", None, True, 1001])
def test_wrong_orders(p):
    with pytest.raises(DataError, match=repr(p)):
        Matern(p=p)


@pytest.mark.parametrize(
    ("theta", "words"),
    [
        ({}, "lengthscale"),
        ({"lengthscale": [1.0]}, "shape"),
        ({"lengthscale": [1.0, -2.0]}, "positive"),
        ({"lengthscale": [1.0, np.nan]}, "positive"),
        ({"lengthscale": [1.0, 1.0], "rho": 1}, "rho"),
    ],
)
def test_wrong_theta(theta, words):
    encoder = Encoder(plain_space())
    points = encoder.encode(encoder.sobol(3, 0))
    with pytest.raises(DataError, match=words):
        Matern().gram(points, points, theta)
