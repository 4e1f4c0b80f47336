"""Probability that a configuration is feasible, under models of failures and of constraints."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from slayr_py.acquisition.criteria import gradient_by_inputs
from slayr_py.acquisition.functions import log_cdf, log_mean_exp, log_mills, log_sum_exp
from slayr_py.inference import Posterior, Predictor
from slayr_py.space import Encoded, FloatArray

_SMALLEST_VARIANCE = 1e-20

WANTED_SUCCESS = 0.9
"""Probability of success below which a failure weighs more than in the product with the acquisition. Without the extra
weight, most evaluations fail if the largest improvement is beyond a border of failures."""

_STEEPNESS = 20.0
_PROBIT_DRAWS = 64  # expectation propagation for each draw costs as much as the rest of a search


@dataclass(frozen=True)
class Feasibility:
    """Probability that one model predicts feasibility, averaged over s draws.

    It is mean(Phi(u)) with u = sign (m - threshold) / sqrt(v + noise).

    Attributes
    ----------
    predictor : Predictor
        Moments m, v (s, k) of the function that is compared with the threshold.
    n_chains : int
        Number of chains of its draws.
    sign : float
        1 if values above the threshold are feasible, -1 if values below it are feasible.
    threshold : float
        On the standardised scale.
    noise : float
        Variance that is added: 1 for a probit likelihood.
    wanted : float
        Below this probability the log probability counts 1 + `_STEEPNESS` times as much; 0 turns this off.
    """

    predictor: Predictor
    n_chains: int
    sign: float
    threshold: float
    noise: float
    wanted: float = 0.0

    @classmethod
    def of(cls, posterior: Posterior, pending: Encoded, n_draws: int) -> Feasibility:
        """Return the feasibility by a model, conditioned on pending configurations.

        A probit likelihood models success or failure, and feasible means success. A Gaussian likelihood models the
        value of a constraint, and feasible means that it is not positive.
        """
        if _is_of_success(posterior):
            predictor = posterior.predictor(min(n_draws, _PROBIT_DRAWS)).with_pending(pending)
            return cls(predictor, posterior.n_chains, 1.0, 0.0, 1.0, WANTED_SUCCESS)
        predictor = posterior.predictor(n_draws).with_pending(pending)
        threshold = (0.0 - posterior.y_mean) / posterior.y_sd
        return cls(predictor.linearised(threshold), posterior.n_chains, -1.0, threshold, 0.0)

    def subset(self, n_draws: int) -> Feasibility:
        """Return the feasibility under at most ``n_draws`` of the draws."""
        return replace(self, predictor=self.predictor.subset(self.n_chains, n_draws))

    def cautious(self) -> Feasibility:
        """Return the same feasibility with the extra weight below `WANTED_SUCCESS`, also for a constraint."""
        return replace(self, wanted=WANTED_SUCCESS)

    def log_probability(self, encoded: Encoded) -> FloatArray:
        """Return the log probability (k,) at k configurations."""
        mean, variance = self.predictor.moments(encoded)
        return log_mean_exp(log_cdf(self._standardise(mean, variance)[0]))

    def values(self, encoded: Encoded) -> FloatArray:
        """Return the summand of the landscape, (k,): the log probability, steeper below the wanted probability."""
        value = self.log_probability(encoded)
        return value + _STEEPNESS * np.minimum(value - self._log_wanted, 0.0)

    def values_and_gradients(self, encoded: Encoded) -> tuple[FloatArray, FloatArray]:
        """Return the summand (k,) and its derivatives by the real inputs, (k, D_real)."""
        moments = self.predictor.moments_with_gradient(encoded)
        u, spread = self._standardise(moments.mean, moments.variance)
        log_terms = log_cdf(u)
        total = log_sum_exp(log_terms)
        by_u = np.exp(log_terms - total - log_mills(u))
        gradient = gradient_by_inputs(moments, by_u * self.sign / spread, -(by_u * u / (2 * np.square(spread))))
        value = total - np.log(len(u))
        excess = value - self._log_wanted
        weight = np.where(excess < 0, 1 + _STEEPNESS, 1.0)
        return value + _STEEPNESS * np.minimum(excess, 0.0), weight[:, None] * gradient

    @property
    def _log_wanted(self) -> float:
        return float(np.log(self.wanted)) if self.wanted else -np.inf

    def _standardise(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return u and its denominator."""
        spread = np.sqrt(np.maximum(variance, _SMALLEST_VARIANCE) + self.noise)
        return self.sign * (mean - self.threshold) / spread, spread


def infeasible(posterior: Posterior, values: FloatArray) -> NDArray[np.bool_]:
    """Return where functions drawn from a model, with these values, are infeasible."""
    return np.asarray(values < 0 if _is_of_success(posterior) else values > 0)


def _is_of_success(posterior: Posterior) -> bool:
    return posterior.model.likelihood == "probit"
