"""Probability that a configuration is feasible, under the posteriors of failures and of constraints."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from slayr_py.acquisition.functions import log_cdf, log_mills
from slayr_py.inference import Posterior, Predictor
from slayr_py.space import Encoded, FloatArray

_SMALLEST_VARIANCE = 1e-20

WANTED_SUCCESS = 0.9
"""Probability of success below which a failure weighs more than in the product with the acquisition. The product is
largest where the improvement is, and if that is on the far side of a border of failures, most evaluations fail."""

_STEEPNESS = 20.0
_PROBIT_DRAWS = 64  # expectation propagation for each draw costs as much as the rest of a search


@dataclass(frozen=True)
class Gate:
    """Probability of one condition, averaged over s draws: mean(Phi(u)), u = sign (m - threshold) / sqrt(v + noise).

    Attributes
    ----------
    predictor : Predictor
        Moments m, v (s, k) of the function that decides.
    sign : float
        1 if the condition is a value above the threshold, -1 if below.
    threshold : float
        On the standardised scale.
    noise : float
        Variance that is added: 1 for a probit likelihood.
    wanted : float
        Below this probability the log probability counts 1 + `_STEEPNESS` times as much; 0: nowhere.
    """

    predictor: Predictor
    sign: float
    threshold: float
    noise: float
    wanted: float = 0.0

    @classmethod
    def of(cls, posterior: Posterior, pending: Encoded, n_draws: int) -> Gate:
        """Return the gate of a posterior, conditioned on pending configurations.

        A probit model of success or failure has to succeed; the value of a constraint, modelled by a Gaussian
        likelihood, must not be positive.
        """
        if posterior.model.likelihood == "probit":
            predictor = posterior.predictor(min(n_draws, _PROBIT_DRAWS)).with_pending(pending)
            return cls(predictor, 1.0, 0.0, 1.0, WANTED_SUCCESS)
        predictor = posterior.predictor(n_draws).with_pending(pending)
        threshold = (0.0 - posterior.y_mean) / posterior.y_sd
        return cls(predictor.linearised(threshold), -1.0, threshold, 0.0)

    def subset(self, n_chains: int, n_draws: int) -> Gate:
        """Return the gate under at most ``n_draws`` of its draws."""
        return replace(self, predictor=self.predictor.subset(n_chains, n_draws))

    def log_probability(self, encoded: Encoded) -> FloatArray:
        """Return the log probability (k,) at k configurations."""
        mean, variance = self.predictor.moments(encoded)
        u, _ = self._scores(mean, variance)
        return np.asarray(logsumexp(log_cdf(u), axis=0) - np.log(len(u)))

    def score(self, encoded: Encoded) -> FloatArray:
        """Return what is added to the log of the acquisition, (k,)."""
        value = self.log_probability(encoded)
        return value + _STEEPNESS * np.minimum(value - self._log_wanted, 0.0)

    def score_and_gradient(self, encoded: Encoded) -> tuple[FloatArray, FloatArray]:
        """Return the score (k,) and its derivatives by the real inputs, (k, D_real)."""
        value, gradient = self._log_probability_and_gradient(encoded)
        excess = value - self._log_wanted
        weight = np.where(excess < 0, 1 + _STEEPNESS, 1.0)
        return value + _STEEPNESS * np.minimum(excess, 0.0), weight[:, None] * gradient

    @property
    def _log_wanted(self) -> float:
        return float(np.log(self.wanted)) if self.wanted else -np.inf

    def _log_probability_and_gradient(self, encoded: Encoded) -> tuple[FloatArray, FloatArray]:
        moments = self.predictor.moments_with_gradient(encoded)
        u, spread = self._scores(moments.mean, moments.variance)
        log_terms = log_cdf(u)
        total = logsumexp(log_terms, axis=0)
        by_u = np.exp(log_terms - total - log_mills(u))
        gradient = np.einsum("sm,smd->md", by_u * self.sign / spread, moments.mean_gradient)
        gradient -= np.einsum("sm,smd->md", by_u * u / (2 * np.square(spread)), moments.variance_gradient)
        return np.asarray(total - np.log(len(u))), gradient

    def _scores(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        spread = np.sqrt(np.maximum(variance, _SMALLEST_VARIANCE) + self.noise)
        return self.sign * (mean - self.threshold) / spread, spread
