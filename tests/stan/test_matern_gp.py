"""The Matérn program as a whole: its density, its gradient, its generated quantities."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import ConfigurationSpace
from scipy.stats import multivariate_normal, norm

import slayr_py as sl
from slayr_py.inference.programs import compiled
from slayr_py.inference.run import generate
from slayr_py.kernels import Matern
from slayr_py.space import Encoder

PRIORS = {
    "mu": sl.Normal(0.2, 0.7),
    "sigma_f": sl.LogNormal(0.1, 0.4),
    "sigma_n": sl.LogNormal(-1.0, 0.5),
}


@pytest.fixture(scope="module")
def program():
    return compiled("matern_gp")


def case(n, d, p, m=0, coinciding=False, seed=0):
    """A model and data with n points in d dimensions."""
    rng = np.random.default_rng(seed)
    encoder = Encoder(ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(d)}))
    x = rng.random((n, d))
    if coinciding:
        x[n // 2 :] = x[: n - n // 2]
    gp = sl.GaussianProcess(encoder, Matern(p), PRIORS | {"lengthscale": sl.LogNormal(rng.normal(size=d), 0.5)})
    train, new = encoder.encode(x), encoder.encode(rng.random((m, d)))
    y = rng.normal(size=n)
    return gp, train, new, y, gp.stan_data(train, y, new)


def hyperparameters(gp, z):
    """Scores (d + 3,) in the program's order to named values."""
    spread = gp.stan_data(gp.encoder.encode([]), np.zeros(0), gp.encoder.encode([]))
    theta = {"mu": spread["mu_location"] + spread["mu_scale"] * z[0]}
    for name, score in (("sigma_f", z[1]), ("sigma_n", z[2]), ("lengthscale", z[3:])):
        theta[name] = np.exp(spread[f"{name}_location"] + spread[f"{name}_scale"] * score)
    return theta


def log_density(gp, train, y, z):
    theta = hyperparameters(gp, z)
    k = gp.kernel.gram(train, train, theta) + theta["sigma_n"] ** 2 * np.eye(len(y))
    likelihood = multivariate_normal(np.full(len(y), theta["mu"]), k).logpdf(y)
    return likelihood - 0.5 * z @ z


def stan_log_density(program, data, points):
    """Value and gradient at points of the program's parameters, through CmdStan's own log_prob."""
    rows = []
    for z in points:
        scores = {"z_mu": z[0], "z_sigma_f": z[1], "z_sigma_n": z[2], "z_lengthscale": z[3:]}
        rows.append(program.model().log_prob(scores, data=data, sig_figs=18).iloc[0].to_numpy())
    table = np.array(rows)
    return table[:, 0], table[:, 1:]


CASES = [(8, 2, 2, False), (6, 3, 0, True), (6, 3, 1, True), (7, 2, 3, True), (1, 1, 2, False)]


@pytest.mark.parametrize(("n", "d", "p", "coinciding"), CASES)
def test_log_density_and_gradient(program, n, d, p, coinciding):
    gp, train, _, y, data = case(n, d, p, coinciding=coinciding)
    points = np.random.default_rng(3).normal(size=(3, d + 3))
    value, gradient = stan_log_density(program, data, points)
    wanted = np.array([log_density(gp, train, y, z) for z in points])
    # Stan drops constants: compare differences.
    np.testing.assert_allclose(np.diff(value), np.diff(wanted), rtol=1e-9, atol=1e-9)
    assert np.all(np.isfinite(gradient))
    h = 1e-5
    for z, slope in zip(points, gradient, strict=True):
        for j in range(d + 3):
            step = h * np.eye(d + 3)[j]
            finite = (log_density(gp, train, y, z + step) - log_density(gp, train, y, z - step)) / (2 * h)
            assert slope[j] == pytest.approx(finite, rel=1e-5, abs=1e-6)


def test_prior_only_is_a_standard_normal_in_the_scores(program):
    gp, train, _, y, _ = case(5, 2, 2)
    data = gp.stan_data(train, y, train[:0], prior_only=True)
    points = np.random.default_rng(4).normal(size=(3, 5))
    value, gradient = stan_log_density(program, data, points)
    np.testing.assert_allclose(np.diff(value), np.diff(-0.5 * np.sum(points**2, axis=1)), atol=1e-9)
    np.testing.assert_allclose(gradient, -points, atol=1e-9)


def scores_frame(points):
    names = ["z_mu", "z_sigma_f", "z_sigma_n", *[f"z_lengthscale.{i + 1}" for i in range(points.shape[1] - 3)]]
    return pd.DataFrame(points, columns=names)


def test_generated_quantities_against_inverses_at_a_hundred_hyperparameters(program):
    gp, train, new, y, data = case(9, 2, 2, m=4)
    points = np.random.default_rng(5).normal(size=(100, 5))
    output = generate(program, data | {"want_cov": 1}, scores_frame(points), seed=3)
    for i, z in enumerate(points):
        theta = hyperparameters(gp, z)
        inverse = np.linalg.inv(gp.kernel.gram(train, train, theta) + theta["sigma_n"] ** 2 * np.eye(9))
        cross = gp.kernel.gram(train, new, theta)
        mean = theta["mu"] + cross.T @ inverse @ (y - theta["mu"])
        cov = gp.kernel.gram(new, new, theta) - cross.T @ inverse @ cross
        row = output.iloc[i]
        np.testing.assert_allclose(row[[f"f_mean.{j + 1}" for j in range(4)]], mean, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(row[[f"f_sd.{j + 1}" for j in range(4)]], np.sqrt(np.diag(cov)), atol=1e-8)
        stan_cov = row[[c for c in output if c.startswith("f_cov.")]].to_numpy().reshape(4, 4)
        np.testing.assert_allclose(stan_cov, cov, atol=1e-9)
        loo_mean = y - (inverse @ (y - theta["mu"])) / np.diag(inverse)
        wanted = norm(loo_mean, 1 / np.sqrt(np.diag(inverse))).logpdf(y)
        np.testing.assert_allclose(row[[f"log_lik.{j + 1}" for j in range(9)]], wanted, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("prior_only", [False, True])
def test_replicates_have_their_joint_moments(program, prior_only):
    gp, train, _, y, _ = case(4, 2, 2)
    z = np.array([0.3, -0.2, 0.5, 0.1, -0.4])
    n = 20_000
    data = gp.stan_data(train, y, train[:0], prior_only=prior_only)
    output = generate(program, data, scores_frame(np.tile(z, (n, 1))), seed=11)
    replicates = output[[f"y_rep.{j + 1}" for j in range(4)]].to_numpy()
    theta = hyperparameters(gp, z)
    noise = theta["sigma_n"] ** 2 * np.eye(4)
    prior = gp.kernel.gram(train, train, theta)
    if prior_only:
        mean, cov = np.full(4, theta["mu"]), prior + noise
    else:
        gain = prior @ np.linalg.inv(prior + noise)
        mean, cov = theta["mu"] + gain @ (y - theta["mu"]), prior - gain @ prior + noise
    deviations = replicates - mean
    error = deviations.std(axis=0) / np.sqrt(n)
    assert np.all(np.abs(deviations.mean(axis=0)) < 4.5 * error)
    products = deviations[:, :, None] * deviations[:, None, :]
    error = products.std(axis=0) / np.sqrt(n)
    assert np.all(np.abs(products.mean(axis=0) - cov) < 4.5 * error)
