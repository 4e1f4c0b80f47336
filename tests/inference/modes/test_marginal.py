"""The marginal likelihood of composite kernels in NumPy, against dense algebra and against Stan."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from scipy.stats import multivariate_normal, norm
from testing_spaces import mixed_space

import slayr_py as sl
from slayr_py.errors import DataError
from slayr_py.inference.model import Model
from slayr_py.inference.modes.laplace import find_mode
from slayr_py.inference.modes.marginal import ExactMarginal
from slayr_py.space import Encoder

SQUARE = ConfigurationSpace({"x": (0.0, 1.0), "z": (0.0, 1.0)})
EXPRESSIONS = ["SE", "LIN * PER + RQ[x] * MAT52 + C", "(MAT12 + LIN[z]) * (PER[x] + MAT32)"]


def marginal_of(expression, space=SQUARE, n=12, y_sd=None):
    model = Model(space, expression)
    train = Encoder(space).sobol(n, 1)
    train = model.encoder.encode(train)
    y = np.sin(7 * train.columns[:, 0]) + np.random.default_rng(1).normal(size=n) / 3
    return ExactMarginal(model, train, (y - y.mean()) / y.std(ddof=1), y_sd), model, train


def covariance(model, train, theta, y_sd=0.0):
    noise = theta["sigma_n"][0] ** 2 + model.noise_floor**2 + np.square(y_sd)
    return model.kernel.cross(train, train, theta)[0] + noise * np.eye(len(train))


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_density_is_that_of_the_multivariate_normal_and_the_scores(expression):
    errors = np.linspace(0, 0.5, 12)
    marginal, model, train = marginal_of(expression, y_sd=errors)
    z = np.random.default_rng(2).normal(size=marginal.coordinates.size)
    theta = marginal.coordinates.theta(z[None])
    density = marginal(z)
    reference = multivariate_normal(np.full(12, theta["mu"][0]), covariance(model, train, theta, errors))
    assert density.likelihood == pytest.approx(reference.logpdf(marginal._y), rel=1e-10)
    assert density.value == pytest.approx(density.likelihood + norm.logpdf(z).sum(), rel=1e-12)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_gradient_is_that_of_differences(expression):
    marginal, _, _ = marginal_of(expression)
    z = np.random.default_rng(3).normal(size=marginal.coordinates.size) / 2
    steps = 1e-5 * np.eye(len(z))
    expected = [(marginal(z + step).value - marginal(z - step).value) / 2e-5 for step in steps]
    np.testing.assert_allclose(marginal(z).gradient, expected, rtol=1e-5, atol=1e-5)


def test_categorical_parameters_are_one_hot_columns():
    marginal, model, train = marginal_of("SE[act] * MAT52 + LIN[lr]", mixed_space())
    z = np.zeros(marginal.coordinates.size)
    theta = marginal.coordinates.theta(z[None])
    reference = multivariate_normal(np.full(12, theta["mu"][0]), covariance(model, train, theta))
    assert marginal(z).likelihood == pytest.approx(reference.logpdf(marginal._y), rel=1e-10)


def test_leave_one_out_is_that_of_fits_without_each_target():
    marginal, model, train = marginal_of("SE + LIN")
    z = np.random.default_rng(4).normal(size=marginal.coordinates.size) / 2
    theta = marginal.coordinates.theta(z[None])
    y = marginal._y
    K = covariance(model, train, theta)
    expected = 0.0
    for i in range(len(y)):
        rest = np.delete(np.arange(len(y)), i)
        weights = np.linalg.solve(K[np.ix_(rest, rest)], K[rest, i])
        mean = theta["mu"][0] + weights @ (y[rest] - theta["mu"][0])
        expected += norm.logpdf(y[i], mean, np.sqrt(K[i, i] - weights @ K[rest, i]))
    assert marginal.leave_one_out(z) == pytest.approx(expected, rel=1e-9)


def test_mean_is_that_of_the_conditional_normal():
    marginal, model, train = marginal_of("SE + LIN")
    z = np.zeros(marginal.coordinates.size)
    new = model.encoder.encode(Encoder(SQUARE).sobol(5, 9))
    theta = marginal.coordinates.theta(z[None])
    cross = model.kernel.cross(new, train, theta)[0]
    expected = theta["mu"][0] + cross @ np.linalg.solve(covariance(model, train, theta), marginal._y - theta["mu"][0])
    np.testing.assert_allclose(marginal.mean(z, new), expected, rtol=1e-8)


@pytest.mark.parametrize(
    ("kernel", "options", "text"),
    [("matern", {}, "Matérn"), ("SE", {"warp": "log"}, "warp 'log'"), ("SE", {"likelihood": "probit"}, "probit")],
)
def test_other_models_are_refused(kernel, options, text):
    model = Model(SQUARE, kernel, **options)
    with pytest.raises(DataError, match=text):
        ExactMarginal(model, model.encoder.encode(Encoder(SQUARE).sobol(3, 1)), np.zeros(3))


@pytest.mark.stan
def test_mode_and_leave_one_out_are_those_of_stan():
    x = np.linspace(0, 1, 25)
    configs = [{"x": v} for v in x]
    y = np.sin(9 * x) + 0.1 * np.random.default_rng(5).normal(size=25)
    priors = {"sigma_n": sl.LogNormal(-4.0, 1.0)}
    gp = sl.GaussianProcess(ConfigurationSpace({"x": (0.0, 1.0)}), "SE * RQ", priors)
    posterior = gp.fit(configs, y, method="map", seed=2)
    marginal = ExactMarginal(gp.model, posterior.train, posterior.targets.y)
    # Log-normal and normal priors: Stan's mode is the mode of the scores, up to the tolerance of its optimiser.
    z = np.zeros(marginal.coordinates.size)
    for h in gp.hyperparameters:
        value = posterior.draws[h.name].reshape(-1)
        z[marginal.coordinates.place(h.name)] = (np.log(value) if h.name != "mu" else value) - h.prior.mu
        z[marginal.coordinates.place(h.name)] /= h.prior.sigma
    rng = np.random.default_rng(6)
    mode = find_mode(marginal, [np.zeros(len(z)), *rng.normal(size=(5, len(z)))])
    assert marginal(z).value == pytest.approx(mode.density.value, abs=1e-3)
    stan = posterior.idata["log_likelihood"]["y"].to_numpy().sum()
    assert marginal.leave_one_out(z) == pytest.approx(stan, rel=1e-8)
