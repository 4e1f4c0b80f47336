from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gamma, kv
from sklearn.gaussian_process.kernels import Matern as SklearnMatern
from testing_spaces import mixed_space, plain_space

from slayr_py import DataError
from slayr_py.kernels import Matern
from slayr_py.kernels.base_kernels import matern_correlation
from slayr_py.space import Encoder


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
