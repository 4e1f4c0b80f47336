"""Probability that a configuration is feasible, under models of failures and of constraints."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from slayr_py.acquisition.functions import SMALLEST_VARIANCE, log_mean_exp
from slayr_py.inference import Moments, Posterior, Predictor, hazard, log_cdf, log_interval, log_phi, log_sum_exp
from slayr_py.space import Encoded, FloatArray

WANTED_SUCCESS = 0.5  # measured in docs/decisions/failures.md
"""Probability of success below which a failure weighs more than in the product with the acquisition. Without the extra
weight, most evaluations fail if the largest improvement is beyond a border of failures."""

_STEEPNESS = 20.0  # additional weight of the log probability below `WANTED_SUCCESS`; chosen by hand
_BLOCK = 64  # configurations
_PROBIT_DRAWS = 64  # expectation propagation for each draw costs as much as the rest of a search


class Law(ABC):
    """Probability of feasibility under each of s draws."""

    predictor: Predictor

    @abstractmethod
    def given(self, predictor: Predictor) -> Law:
        """Return the same law of another predictor."""

    @abstractmethod
    def log_terms(self, encoded: Encoded) -> FloatArray:
        """Return the log probabilities (s, k) at k configurations."""

    @abstractmethod
    def log_terms_with_gradient(self, encoded: Encoded) -> tuple[FloatArray, FloatArray]:
        """Return the log probabilities (s, k) and their derivatives by the real inputs, (s, k, D_real)."""


@dataclass(frozen=True)
class Success(Law):
    """Success of an evaluation, by a model with a probit likelihood."""

    predictor: Predictor

    @override
    def given(self, predictor: Predictor) -> Success:
        return Success(predictor)

    @override
    def log_terms(self, encoded: Encoded) -> FloatArray:
        return self.predictor.log_success(encoded)

    @override
    def log_terms_with_gradient(self, encoded: Encoded) -> tuple[FloatArray, FloatArray]:
        return self.predictor.log_success_with_gradient(encoded)


@dataclass(frozen=True)
class Below(Law):
    """A constraint: Phi(u) with u = (threshold - m) / sqrt(v), for moments m, v of its function.

    Attributes
    ----------
    predictor : Predictor
    threshold : float
        On the standardised scale.
    """

    predictor: Predictor
    threshold: float

    @override
    def given(self, predictor: Predictor) -> Below:
        return Below(predictor, self.threshold)

    @override
    def log_terms(self, encoded: Encoded) -> FloatArray:
        return log_cdf(self._standardise(*self.predictor.moments(encoded))[0])

    @override
    def log_terms_with_gradient(self, encoded: Encoded) -> tuple[FloatArray, FloatArray]:
        moments = self.predictor.moments_with_gradient(encoded)
        u, spread = self._standardise(moments.mean, moments.variance)
        by_u = hazard(u)
        by_mean = -by_u / spread
        by_variance = -by_u * u / (2 * np.square(spread))
        return log_cdf(u), _chained(moments, by_mean, by_variance)

    def _standardise(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return u and its denominator."""
        spread = _spread(variance)
        return (self.threshold - mean) / spread, spread


@dataclass(frozen=True)
class Between(Law):
    """A constraint with two limits: Phi(b) - Phi(a), a = (low - m) / sqrt(v) and b = (high - m) / sqrt(v).

    A standard normal variable t between a and b has the moments E t = (phi(a) - phi(b)) / P and
    E t^2 = 1 - (b phi(b) - a phi(a)) / P of its truncated distribution, and d log P / dm = E t / sqrt(v),
    d log P / dv = (E t^2 - 1) / (2 v).

    Attributes
    ----------
    predictor : Predictor
    low, high : float
        On the standardised scale.
    """

    predictor: Predictor
    low: float
    high: float

    @override
    def given(self, predictor: Predictor) -> Between:
        return replace(self, predictor=predictor)

    @override
    def log_terms(self, encoded: Encoded) -> FloatArray:
        mean, variance = self.predictor.moments(encoded)
        a, b, _ = self._standardise(mean, variance)
        return log_interval(a, b)

    @override
    def log_terms_with_gradient(self, encoded: Encoded) -> tuple[FloatArray, FloatArray]:
        moments = self.predictor.moments_with_gradient(encoded)
        a, b, spread = self._standardise(moments.mean, moments.variance)
        log_p = log_interval(a, b)
        at_a, at_b = np.exp(log_phi(a) - log_p), np.exp(log_phi(b) - log_p)
        # In a narrow band the differences cancel; the moments are between those of its ends.
        first = np.clip(at_a - at_b, a, b)
        nearest = np.clip(0.0, a, b)
        second = np.clip(1 - (b * at_b - a * at_a), np.square(nearest), np.maximum(np.square(a), np.square(b)))
        by_mean = first / spread
        by_variance = (second - 1) / (2 * np.square(spread))
        return log_p, _chained(moments, by_mean, by_variance)

    def _standardise(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return a, b and their denominator."""
        spread = _spread(variance)
        return (self.low - mean) / spread, (self.high - mean) / spread, spread


def _spread(variance: FloatArray) -> FloatArray:
    return np.sqrt(np.maximum(variance, SMALLEST_VARIANCE))


def _chained(moments: Moments, by_mean: FloatArray, by_variance: FloatArray) -> FloatArray:
    """Return derivatives by the real inputs, (s, k, D_real), of those by the moments, (s, k)."""
    return by_mean[..., None] * moments.mean_gradient + by_variance[..., None] * moments.variance_gradient


@dataclass(frozen=True)
class Feasibility:
    """Probability that one model predicts feasibility, averaged over s draws.

    Attributes
    ----------
    law : Law
    n_chains : int
        Number of chains of its draws.
    wanted : float
        Below this probability the log probability counts 1 + `_STEEPNESS` times as much; 0 turns this off.
    """

    law: Law
    n_chains: int
    wanted: float = 0.0

    @classmethod
    def of(cls, posterior: Posterior, pending: Encoded, n_draws: int) -> Feasibility:
        """Return the feasibility by a model, conditioned on pending configurations.

        A probit likelihood models success or failure, and feasible means success. A Gaussian likelihood models the
        value of a constraint, and feasible means that it is within the limits, by default that it is not positive.
        """
        if _is_of_success(posterior):
            predictor = posterior.predictor(min(n_draws, _PROBIT_DRAWS)).with_pending(pending)
            return cls(Success(predictor), posterior.n_chains, WANTED_SUCCESS)
        predictor = posterior.predictor(n_draws).with_pending(pending)
        low, high = ((limit - posterior.y_mean) / posterior.y_sd for limit in posterior.limits)
        if low == -np.inf:
            return cls(Below(predictor.linearised(high), high), posterior.n_chains)
        return cls(Between(predictor, low, high), posterior.n_chains)

    def subset(self, n_draws: int) -> Feasibility:
        """Return the feasibility under at most ``n_draws`` of the draws."""
        return replace(self, law=self.law.given(self.law.predictor.subset(self.n_chains, n_draws)))

    def cautious(self) -> Feasibility:
        """Return the same feasibility with the extra weight below `WANTED_SUCCESS`, also for a constraint."""
        return replace(self, wanted=WANTED_SUCCESS)

    def log_probability(self, encoded: Encoded) -> FloatArray:
        """Return the log probability (k,) at k configurations."""
        return log_mean_exp(self.law.log_terms(encoded))

    def values(self, encoded: Encoded) -> FloatArray:
        """Return the summand of the landscape, (k,): the log probability, steeper below the wanted probability."""
        value = self.log_probability(encoded)
        return value + _STEEPNESS * np.minimum(value - self._log_wanted, 0.0)

    def values_and_gradients(self, encoded: Encoded) -> tuple[FloatArray, FloatArray]:
        """Return the summand (k,) and its derivatives by the real inputs, (k, D_real)."""
        log_terms, slopes = self.law.log_terms_with_gradient(encoded)
        total = log_sum_exp(log_terms)
        gradient = np.einsum("sk,skd->kd", np.exp(log_terms - total), slopes)
        value = total - np.log(len(log_terms))
        excess = value - self._log_wanted
        weight = np.where(excess < 0, 1 + _STEEPNESS, 1.0)
        return value + _STEEPNESS * np.minimum(excess, 0.0), weight[:, None] * gradient

    @property
    def _log_wanted(self) -> float:
        return float(np.log(self.wanted)) if self.wanted else -np.inf


def log_probability_feasible(
    posteriors: Sequence[Posterior], encoded: Encoded, n_draws: int | None = None
) -> FloatArray:
    """Return the log probability (m,) that all models, which are independent, predict feasibility.

    At most ``n_draws`` draws of each are used, by default all.
    """
    models = [Feasibility.of(each, encoded[:0], n_draws or each.n_draws) for each in posteriors]
    return log_probability_of(models, encoded)


def log_probability_of(models: Iterable[Feasibility], encoded: Encoded) -> FloatArray:
    """Return the log probability (m,) that all of some models predict feasibility, in blocks of configurations."""
    total = np.zeros(len(encoded))
    for model in models:
        total += np.concatenate([model.log_probability(block) for block in blocks_of(encoded)] or [total])
    return total


def blocks_of(encoded: Encoded) -> list[Encoded]:
    """Return configurations in blocks whose covariances with the observations fit into a processor's cache."""
    return [encoded[first : first + _BLOCK] for first in range(0, len(encoded), _BLOCK)]


def infeasible(posterior: Posterior, values: FloatArray) -> NDArray[np.bool_]:
    """Return where functions drawn from a model, with these values, are infeasible."""
    if _is_of_success(posterior):
        return np.asarray(values < 0)
    low, high = posterior.limits
    return np.asarray((values < low) | (values > high))


def _is_of_success(posterior: Posterior) -> bool:
    return posterior.model.likelihood == "probit"
