"""Fits of a kernel search at their modes: covariances, predictions, and averages over several fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

import slayr_py as sl
from slayr_py.inference import (
    NOISE_FLOOR,
    ExactMarginal,
    Model,
    SparseMarginal,
    Targets,
    inducing_points,
    standardised,
)
from slayr_py.inference.diagnostics.checks import PARETO_K_LIMIT
from slayr_py.inference.modes.laplace import laplace_draws
from slayr_py.inference.prediction.blocks import predict_all
from slayr_py.inference.prediction.kernel_predictor import KernelPredictor
from slayr_py.inference.sampling.population import improve
from slayr_py.inference.stacking.weights import stacking_weights
from slayr_py.search import SearchResult

USES = ("best", "draws", "nuts", "stacked", "averaged")
"""The best fit at its mode, and with draws of the hyperparameters by importance sampling and by NUTS; modes of the best
few weighted by stacking of leave-one-out densities, and by exp(laplace)."""

NUTS = {"chains": 2, "warmup": 300, "draws": 200, "retries": 0, "pointwise": False}

PROPOSALS = 300
"""Proposals of a step of importance sampling for every ten hyperparameters."""


class Predictive(NamedTuple):
    """Predictive distributions of m observations, each a mixture of k normal ones.

    Attributes
    ----------
    weights : (k,) float64
    mean, sd : (k, m) float64
        With the noise.
    """

    weights: np.ndarray
    mean: np.ndarray
    sd: np.ndarray

    def errors(self, y: np.ndarray) -> np.ndarray:
        """Return the errors (m,) of the mean."""
        return self.weights @ self.mean - y

    def log_density(self, y: np.ndarray) -> np.ndarray:
        """Return the log densities (m,) of observed values."""
        return np.asarray(logsumexp(norm.logpdf(y, self.mean, self.sd), axis=0, b=self.weights[:, None]))

    def scores(self, y: np.ndarray) -> dict[str, float]:
        """Return the root mean squared error and the mean log density."""
        rmse = np.sqrt(np.mean(np.square(self.errors(y))))
        return {"rmse": float(rmse), "log_density": float(np.mean(self.log_density(y)))}


class FittedKernel:
    """An expression that a search fitted, at its mode; all values are in the units of the targets.

    Parameters
    ----------
    found : SearchResult
    expression : str
        One of ``found.top``.
    """

    def __init__(self, found: SearchResult, expression: str) -> None:
        self.expression = expression
        self._train = found.train
        self._encoder = found.search.encoder
        self._y, self._mean, self._sd = standardised(found.y)
        self._kernel = found.kernel(expression)
        self._start = found.fits[expression].start
        self._theta = found.mode(expression)
        self._noise = float(self._theta["sigma_n"][0]) ** 2 + NOISE_FLOOR**2
        self._inducing = found.search.inducing_points(len(self._train))
        self._seed = found.search.seed

    @property
    def noise(self) -> float:
        """Variance of the noise."""
        return self._sd**2 * self._noise

    def covariance(self) -> np.ndarray:
        """Return the covariance (n, n) of the function at the observed configurations."""
        return self._sd**2 * self._kernel.cross(self._train, self._train, self._theta)[0]

    def predict(self, configs: Any) -> Predictive:
        """Return the predictive distributions of observations at m configurations."""
        mean, variance = self._predictor().moments(self._encoder.encode(configs, other_columns=True))
        sd = self._sd * np.sqrt(variance + self._noise)
        return Predictive(np.ones(1), self._mean + self._sd * mean, sd)

    def predict_by_draws(self, configs: Any, count: int = 100) -> Predictive:
        """Return the predictive distributions, each a mixture over posterior draws of the hyperparameters.

        The draws are made by importance sampling from a mixture that begins as Laplace's approximation at the mode.
        """
        model = Model(self._encoder, self._kernel).informed(self._train, self._y)
        marginal = ExactMarginal(model, self._train, self._y)
        rng = np.random.default_rng(self._seed)
        mode = np.array([self._start[name][label] for name, label in marginal.coordinates.entries])

        def log_density(points: np.ndarray) -> np.ndarray:
            return np.array([marginal(z).value for z in points])

        def good(pareto_k: float, ess: float) -> bool:
            return pareto_k <= PARETO_K_LIMIT and ess >= count / 4

        start = laplace_draws(marginal, mode, PROPOSALS, rng)
        found = improve(log_density, start, count, good, rng, PROPOSALS * max(1, len(mode) // 10))
        theta = marginal.coordinates.theta(found.draws)
        targets = Targets(self._y, np.zeros(len(self._y)), NOISE_FLOOR)
        new = self._encoder.encode(configs, other_columns=True)

        def predictor_of(rows: np.ndarray) -> KernelPredictor:
            some = {name: values[rows] for name, values in theta.items()}
            return KernelPredictor.factorise(self._kernel, self._train, targets, some)

        mean, latent_sd, _ = predict_all(predictor_of, count, len(self._train), new)
        sd = self._sd * np.sqrt(np.square(latent_sd) + np.square(theta["sigma_n"])[:, None] + NOISE_FLOOR**2)
        return Predictive(np.full(count, 1 / count), self._mean + self._sd * mean, sd)

    def leave_one_out(self) -> np.ndarray:
        """Return log densities (n,) of each observation given the others (Rasmussen & Williams 2006, eq. 5.12)."""
        covariance = self._kernel.cross(self._train, self._train, self._theta)[0] + self._noise * np.eye(len(self._y))
        precision = np.linalg.inv(covariance)
        variance = 1 / np.diagonal(precision)
        errors = variance * (precision @ (self._y - self._theta["mu"][0]))
        return np.asarray(norm.logpdf(errors, 0.0, np.sqrt(variance)) - np.log(self._sd))

    def _predictor(self) -> KernelPredictor:
        if self._inducing is None:
            targets = Targets(self._y, np.zeros(len(self._y)), NOISE_FLOOR)
            return KernelPredictor.factorise(self._kernel, self._train, targets, self._theta)
        model = Model(self._encoder, self._kernel)
        points = inducing_points(self._train, self._inducing, self._seed)
        marginal = SparseMarginal(model, self._train, self._y, points)
        factor, weights = marginal.pseudo_factor(self._theta)
        nothing = Targets(np.zeros(len(weights)), np.zeros(len(weights)), NOISE_FLOOR)
        return KernelPredictor.from_factors(self._kernel, points, nothing, self._theta, factor[None], weights[None])


def predict_by_nuts(found: SearchResult, configs: Any) -> Predictive:
    """Return the predictive distributions at m configurations of the best kernel, fitted by Stan."""
    process = sl.GaussianProcess(found.search.encoder, found.best)
    return predict_observations(process.fit(found.train, found.y, seed=found.search.seed, **NUTS), configs)


def predict_observations(posterior: sl.Posterior, configs: Any) -> Predictive:
    """Return the predictive distributions of observations at m configurations, a mixture over the draws."""
    predicted = posterior.predict(configs)
    noise = posterior.targets.common_noise(posterior.draws)
    sd = np.sqrt(np.square(predicted.draw_sd) + posterior.y_sd**2 * noise[:, None])
    return Predictive(np.full(len(noise), 1 / len(noise)), predicted.draw_mean, sd)


def predictions(found: SearchResult, configs: Any, top: int = 5, nuts: bool = False) -> dict[str, Predictive]:
    """Return the predictive distributions at m configurations by `USES`; of sparse fits those at modes only."""
    fits = [FittedKernel(found, expression) for expression in found.top(top)]
    single = [fit.predict(configs) for fit in fits]
    uses = {"best": single[0]}
    is_exact = bool(np.isfinite(found.unique["loo"].iloc[0]))
    if is_exact:
        uses["draws"] = fits[0].predict_by_draws(configs)
        if nuts:
            uses["nuts"] = predict_by_nuts(found, configs)
    if is_exact and len(fits) > 1:
        densities = np.column_stack([fit.leave_one_out() for fit in fits])
        uses["stacked"] = _mixture(stacking_weights(densities), single)
    if len(fits) > 1:
        laplace = found.unique.set_index("expression")["laplace"][found.top(top)].to_numpy(dtype=np.float64)
        uses["averaged"] = _mixture(np.exp(laplace - logsumexp(laplace)), single)
    return uses


def _mixture(weights: np.ndarray, single: Sequence[Predictive]) -> Predictive:
    means = np.vstack([predictive.mean for predictive in single])
    return Predictive(weights, means, np.vstack([predictive.sd for predictive in single]))
