"""Models that `benchmarks.correctness.noise` compares: priors of slayr_py, and point estimates of other packages."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import root
from scipy.stats import invgamma, norm

import slayr_py as sl
from slayr_py.sklearn import BayesianGPRegressor
from slayr_py.space import Encoder


@dataclass(frozen=True)
class Fitted:
    """A fit and its predictions at m points, in the units of the targets."""

    sigma_n: np.ndarray
    """Draws of the noise standard deviation; a point estimate has one."""

    mean: np.ndarray
    cumulative: Callable[[np.ndarray], np.ndarray]
    """Maps observations (m,) to their predicted probabilities of a smaller one."""

    log_density: Callable[[np.ndarray], np.ndarray]
    """Maps observations (m,) to their log densities."""

    ok: bool


Model = Callable[[Encoder, Sequence[Any], np.ndarray, Sequence[Any], int], Fitted]
"""Maps encoder, configurations, targets, new configurations and seed to a fit."""


@dataclass(frozen=True)
class Priors:
    """A Gaussian process of slayr_py under given priors."""

    sigma_n: sl.kernels.Prior
    lengthscale: Callable[[np.ndarray], sl.kernels.Prior]
    """Maps the training inputs (n, D) in the unit cube to the prior of the length-scales."""

    sigma_f: sl.kernels.Prior = sl.LogNormal(0.0, 0.5)

    def __call__(self, encoder: Encoder, train: Sequence[Any], y: np.ndarray, test: Sequence[Any], seed: int) -> Fitted:
        lengthscale = self.lengthscale(encoder.encode(train).columns)
        priors = {"sigma_n": self.sigma_n, "sigma_f": self.sigma_f, "lengthscale": lengthscale}
        gp = sl.GaussianProcess(encoder, sl.kernels.Matern(), priors)
        posterior = gp.fit(
            train, y, seed=seed + 1, chains=2, warmup=150, draws=150, retries=0, pointwise=False, method="nuts"
        )
        return _fitted(posterior, posterior.predict(test))


@dataclass(frozen=True)
class Regressor:
    """The regressor of slayr_py with its defaults, or under another prior of the noise."""

    sigma_n: sl.kernels.Prior | None = None

    def __call__(self, encoder: Encoder, train: Sequence[Any], y: np.ndarray, test: Sequence[Any], seed: int) -> Fitted:
        priors = None if self.sigma_n is None else {"sigma_n": self.sigma_n}
        regressor = BayesianGPRegressor(priors=priors, random_state=seed).fit(pd.DataFrame(train), y)
        posterior = regressor.posterior_
        return _fitted(posterior, posterior.predict(regressor.encode(pd.DataFrame(test))))


def _fitted(posterior: sl.Posterior, prediction: sl.Prediction) -> Fitted:
    latent = prediction.latent
    noise = latent.sigma_n[:, None]
    return Fitted(
        posterior.draws["sigma_n"] * abs(posterior.y_sd),
        prediction.mean,
        lambda values: latent.cumulative(values, noise),
        lambda values: latent.log_density(values, noise),
        posterior.check().ok,
    )


def median(multiple: float, scale: float = 1.0) -> Callable[[np.ndarray], sl.kernels.Prior]:
    """Return the log-normal prior of length-scales with this median over sqrt(D)."""
    return lambda x: sl.LogNormal(float(np.log(multiple * np.sqrt(x.shape[1]))), scale)


def brms_lengthscale(x: np.ndarray) -> sl.kernels.Prior:
    """Return the default of brms for each input: 1% of an inverse gamma below the smallest distance, 1% above 1."""
    shapes, scales = [], []
    for column in x.T:
        smallest = max(float(np.min(np.diff(np.sort(column)), initial=1.0, where=np.diff(np.sort(column)) > 0)), 1e-3)

        def tails(log: np.ndarray, smallest: float = smallest) -> list[float]:
            shape, scale = np.exp(log)
            return [invgamma.logcdf(smallest, shape, scale=scale), invgamma.logsf(1.0, shape, scale=scale)] - np.log(
                [0.01, 0.01]
            )

        solution = root(tails, np.log([1.0, 0.1]))
        shape, scale = np.exp(solution.x) if solution.success else (1.5, 0.06)  # brms' values for many points
        shapes.append(float(shape))
        scales.append(float(scale))
    return sl.InverseGamma(shapes, scales)


def scikit_learn(encoder: Encoder, train: Sequence[Any], y: np.ndarray, test: Sequence[Any], seed: int) -> Fitted:
    """Fit scikit-learn's Gaussian process with a Matérn-5/2 kernel and white noise by maximum likelihood."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    x = encoder.encode(train).columns
    kernel = ConstantKernel(1.0, (1e-2, 1e2)) * Matern(np.full(x.shape[1], 0.5), (1e-2, 1e2), nu=2.5)
    kernel = kernel + WhiteKernel(0.1, (1e-8, 1e1))
    fit = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=4, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # bounds that are reached
        fit.fit(x, y)
    mean, sd = fit.predict(encoder.encode(test).columns, return_std=True)  # with the noise of an observation
    noise = float(np.sqrt(fit.kernel_.k2.noise_level) * y.std())
    return _normal(noise, mean, sd)


def botorch(encoder: Encoder, train: Sequence[Any], y: np.ndarray, test: Sequence[Any], seed: int) -> Fitted:
    """Fit BoTorch's `SingleTaskGP` with its defaults, a posterior mode under priors of GPyTorch's."""
    import torch
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    x = torch.tensor(encoder.encode(train).columns, dtype=torch.float64)
    model = SingleTaskGP(x, torch.tensor(y, dtype=torch.float64)[:, None])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    with torch.no_grad():
        new = torch.tensor(encoder.encode(test).columns, dtype=torch.float64)
        posterior = model.posterior(new, observation_noise=True)
        mean = posterior.mean[:, 0].numpy()
        sd = posterior.variance[:, 0].sqrt().numpy()
        noise = float(model.likelihood.noise.sqrt()) * float(np.std(y, ddof=1))
    return _normal(noise, mean, sd)


def _normal(noise: float, mean: np.ndarray, sd: np.ndarray) -> Fitted:
    return Fitted(
        np.array([noise]),
        mean,
        lambda values: norm.cdf(values, mean, sd),
        lambda values: norm.logpdf(values, mean, sd),
        ok=True,
    )


MODELS: dict[str, Model] = {
    "LogNormal(-4, 1), 0.2": Priors(sl.LogNormal(-4.0, 1.0), median(0.2)),
    "LogNormal(-1.5, 1.5), 0.2": Priors(sl.LogNormal(-1.5, 1.5), median(0.2)),
    "LogNormal(-1.5, 1.5), 0.54": Priors(sl.LogNormal(-1.5, 1.5), median(0.54)),
    "LogNormal(-2, 2), 0.54": Priors(sl.LogNormal(-2.0, 2.0), median(0.54)),
    "LogNormal(-1, 1), 0.54": Priors(sl.LogNormal(-1.0, 1.0), median(0.54)),
    "LogNormal(-4, 1), 0.54": Priors(sl.LogNormal(-4.0, 1.0), median(0.54)),
    "LogNormal(-2, 2), 0.2": Priors(sl.LogNormal(-2.0, 2.0), median(0.2)),
    "HalfNormal(1), 0.2": Priors(sl.HalfNormal(1.0), median(0.2)),
    "HalfNormal(1), 0.33": Priors(sl.HalfNormal(1.0), median(0.33)),
    "HalfNormal(0.5), 0.2": Priors(sl.HalfNormal(0.5), median(0.2)),
    "LogNormal(-1, 1), 0.2": Priors(sl.LogNormal(-1.0, 1.0), median(0.2)),
    "LogNormal(-1, 1.5), 0.2": Priors(sl.LogNormal(-1.0, 1.5), median(0.2)),
    "HalfNormal(1), 0.54": Priors(sl.HalfNormal(1.0), median(0.54)),
    "LogNormal(-1.5, 1.5), 1, 1": Priors(sl.LogNormal(-1.5, 1.5), median(1.0)),
    "LogNormal(-1.5, 1.5), 4.1, 1.7": Priors(sl.LogNormal(-1.5, 1.5), median(4.1, np.sqrt(3))),
    "brms": Priors(sl.HalfNormal(2.5), brms_lengthscale, sl.HalfNormal(2.5)),
    "scikit-learn": scikit_learn,
    "botorch": botorch,
}
"""Models by name: the prior of the noise, and median over sqrt(D) and scale of the prior of the length-scales."""

REAL_MODELS: dict[str, Model] = {
    "slayr_py, LogNormal(-4, 1)": Regressor(sl.LogNormal(-4.0, 1.0)),
    "slayr_py": Regressor(),
    "scikit-learn": scikit_learn,
    "botorch": botorch,
}
"""Models of the diabetes data by name."""
