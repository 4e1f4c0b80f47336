"""Posteriors against references independent of our programs: draws of posteriordb, and sums over grids.

posteriordb's ``gp_regr`` has y ~ Normal(0, K + sigma I) with K = alpha^2 exp(-(x - x')^2 / (2 rho^2)), where sigma is
a variance, and rho ~ Gamma(25, rate 4), alpha ~ half-Normal(0, 2), sigma ~ half-Normal(0, 1). ``fm_gp`` without graphs,
as a product of separate kernels, and with a prior of the mean that has no width, has exactly that likelihood.
Importance weights replace our log-normal priors by those of ``gp_regr``. Means and second moments are compared with
those of posteriordb's draws and with a sum over a grid.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace
from scipy.stats import gamma, norm

import slayr_py as sl
from slayr_py.inference.diagnostics.arviz_bridge import pareto_smooth, standard_error
from slayr_py.inference.model import NOISE_FLOOR
from slayr_py.inference.sampling.options import FitOptions
from slayr_py.inference.sampling.programs import compiled
from slayr_py.inference.sampling.run import run
from slayr_py.kernels import FrequencyModulated, Hyperparameter, Matern
from slayr_py.kernels.hyperparameters import MEAN
from slayr_py.kernels.mixed.contract import COMBINATIONS, FM_GP, MODULATORS

pytestmark = pytest.mark.stan

FOLDER = Path(__file__).resolve().parents[1] / "data" / "posteriordb"
NAMES = ("rho", "alpha", "sigma")
RANGE = 20.0  # of x

PRIORS = {"lengthscale": (np.log(6.5 / RANGE), 0.5), "sigma_f": (np.log(2.0), 0.7), "sigma_n": (np.log(1.2), 0.5)}


def gp_regr_data(x, y):
    """Return data with which the likelihood of ``fm_gp`` is that of ``gp_regr``."""
    n = len(y)
    points = {"N": n, "D": 1, "X": x[:, None] / RANGE, "active": np.ones((n, 1)), "U": np.zeros((n, 0)), "y": y}
    none_new = {"M": 0, "X_new": np.zeros((0, 1)), "active_new": np.zeros((0, 1)), "U_new": np.zeros((0, 0))}
    no_levels = np.zeros(0, dtype=np.int64)
    no_graphs = {"P": 0, "G": 0, "Q": 0, "lambda": np.zeros(0), "graph_of": no_levels, "group_of": no_levels}
    separate = {"modulator": MODULATORS["laplacian"], "combine": COMBINATIONS["product"]}
    priors = [MEAN] + [
        Hyperparameter(name, sl.LogNormal(*values), ("x",) if name == "lengthscale" else None)
        for name, values in PRIORS.items()
    ]
    data = FM_GP.data(points | none_new | no_graphs | separate, priors)
    return data | {"mu_location": 0.0, "mu_scale": 0.0}


def gp_regr_log_prior(rho, alpha, sigma):
    return gamma(25, scale=1 / 4).logpdf(rho) + norm(0, 2).logpdf(alpha) + norm(0, 1).logpdf(sigma)


def gp_regr_by_quadrature(x, y, size=80):
    """Means and second moments of rho, alpha, sigma from a grid of their logarithms."""
    logs = [np.linspace(low, high, size) for low, high in [(0.3, 3.2), (-4.0, 2.5), (-4.0, 2.0)]]
    rho, alpha, sigma = (np.exp(values) for values in np.meshgrid(*logs, indexing="ij"))
    log_density = gp_regr_log_prior(rho, alpha, sigma) + np.log(rho * alpha * sigma)
    for i, length in enumerate(np.exp(logs[0])):
        eigenvalues, vectors = np.linalg.eigh(np.exp(-0.5 * np.square((x[:, None] - x) / length)))
        spectrum = np.square(alpha[i])[..., None] * eigenvalues + sigma[i][..., None]
        log_density[i] -= 0.5 * np.sum(np.log(spectrum) + np.square(vectors.T @ y) / spectrum, axis=-1)
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    return np.array([np.sum(weight * values**power) for values in (rho, alpha, sigma) for power in (1, 2)])


@pytest.mark.slow
def test_gp_regr():
    stored = json.loads((FOLDER / "gp_pois_regr.json").read_text())
    x = np.array(stored["x"], dtype=float)
    y = np.array(stored["y"])
    reference = json.loads((FOLDER / "gp_regr_moments.json").read_text())

    fit = run(
        compiled("fm_gp"),
        gp_regr_data(x, y),
        FitOptions(chains=4, warmup=500, draws=5000, target_acceptance=0.9),
        seed=1,
    ).variables
    lengthscale, sigma_f, sigma_n = (fit[name][..., 0] for name in ("lengthscale", "sigma_f", "sigma_n"))
    ours = {"rho": RANGE * lengthscale, "alpha": sigma_f, "sigma": np.square(sigma_n)}
    log_ratio = gp_regr_log_prior(**ours)
    # Densities of the logarithms: the priors of gp_regr times their arguments, over normal densities.
    for (name, values), log_values in zip(ours.items(), np.log([lengthscale, sigma_f, sigma_n]), strict=True):
        location, scale = PRIORS[{"rho": "lengthscale", "alpha": "sigma_f", "sigma": "sigma_n"}[name]]
        log_ratio += np.log(values) - norm(location, scale).logpdf(log_values)
    assert pareto_smooth(log_ratio.ravel())[1] < 0.5  # the weights have a variance
    weight = np.exp(log_ratio - log_ratio.max())
    weight /= weight.mean()

    exact = iter(gp_regr_by_quadrature(x, y))
    for name in NAMES:
        for power in (1, 2):
            mean = np.mean(weight * ours[name] ** power)
            # Error of a ratio of means, whose denominator is 1.
            error = standard_error(weight * (ours[name] ** power - mean))
            theirs, their_error = (reference[name][power - 1][key] for key in ("mean", "standard_error"))
            assert error < 0.03 * mean
            assert abs(mean - theirs) < 4 * np.hypot(error, their_error), (name, power)
            assert abs(mean - next(exact)) < 4 * error, (name, power)


def one_real() -> ConfigurationSpace:
    return ConfigurationSpace({"x": (0.0, 1.0)})


def one_categorical() -> ConfigurationSpace:
    space = ConfigurationSpace()
    space.add(Categorical("v", ["a", "b", "c", "d"]))
    return space


def by_quadrature(gp, train, y, name, size=41):
    """Means and second moments of mu, log sigma_f, log sigma_n and log ``name`` from a grid of standard-normal scores.

    The mean is integrated out: with mu ~ Normal(m, s^2), y - m has the covariance C = K + sigma_n^2 I + s^2 1 1', and
    mu the conditional mean m + s^2 1' C^-1 (y - m) and variance s^2 - s^4 1' C^-1 1.
    """
    scores = np.linspace(-5, 5, size)
    mu, sigma_f, sigma_n, third = (gp.priors[each] for each in ("mu", "sigma_f", "sigma_n", name))
    log_f = sigma_f.mu + sigma_f.sigma * scores
    log_n = np.log(sigma_n.at_score(scores))
    log_third = np.squeeze(third.mu) + np.squeeze(third.sigma) * scores
    table = []
    for z, value in zip(scores, log_third, strict=True):
        k = gp.kernel.gram(train, train, {name: [np.exp(value)]})
        # One graph that is complete: all vertices have the same variance, and sigma_f is the function's.
        scale = k[0, 0]
        for z_f, value_f in zip(scores, log_f, strict=True):
            variances, vectors = np.linalg.eigh(np.exp(2 * value_f) * k / scale + mu.sigma**2)
            spectrum = variances + np.exp(2 * log_n)[:, None] + NOISE_FLOOR**2
            ones = vectors.sum(axis=0)
            residual = vectors.T @ (y - mu.mu)
            log_density = -0.5 * np.sum(np.log(spectrum) + np.square(residual) / spectrum, axis=1)
            log_density -= 0.5 * (z**2 + z_f**2 + np.square(scores))
            mean = mu.mu + mu.sigma**2 * np.sum(ones * residual / spectrum, axis=1)
            variance = mu.sigma**2 - mu.sigma**4 * np.sum(np.square(ones) / spectrum, axis=1)
            log_sigma_f = np.full(size, value_f - np.log(scale) / 2)
            columns = (log_density, mean, mean**2 + variance, log_sigma_f, log_n, np.full(size, value))
            table.append(np.column_stack(columns))
    log_density, mean, square, *logs = np.concatenate(table).T
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    return np.array([weight @ mean, weight @ square] + [weight @ values**power for values in logs for power in (1, 2)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "space", "name"),
    [(Matern(2), one_real(), "lengthscale"), (FrequencyModulated(), one_categorical(), "beta")],
    ids=["matern", "fm"],
)
def test_default_priors_against_a_grid(kernel, space, name):
    gp = sl.GaussianProcess(space, kernel)
    rng = np.random.default_rng(4)
    points = gp.encoder.encode(gp.encoder.sobol(8, 0))
    y = np.sin(4 * points.unit_values[:, 0]) + 0.4 * rng.normal(size=8)
    # Long, since the tail of small noise is visited rarely.
    posterior = gp.fit(points, y, draws=4000, target_acceptance=0.95, seed=2)
    fit = {key: values.values for key, values in posterior.idata["posterior"].to_dataset().items()}
    chains = [fit["mu"], np.log(fit["sigma_f"]), np.log(fit["sigma_n"]), np.log(fit[name][..., 0])]
    wanted = iter(by_quadrature(gp, points, (y - posterior.y_mean) / posterior.y_sd, name))
    for values in chains:
        for power in (1, 2):
            error = standard_error(values**power)
            assert error < 0.1 * np.std(values**power)
            assert abs(np.mean(values**power) - next(wanted)) < 4 * error
