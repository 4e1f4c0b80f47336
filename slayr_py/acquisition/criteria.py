"""Acquisition functions with gradients, for the maximiser.

Symbols
-------
mean, variance (s, m), and their gradients (s, m, d) : the latent function under s draws at m points, ``Moments``.

The maximiser uses log EI and log PI, which have the same maxima as EI and PI and do not underflow.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np
from typing_extensions import override

from slayr_py.acquisition.functions import (
    SMALLEST_VARIANCE,
    beta_schedule,
    expected_improvement,
    log_expected_improvement,
    log_mean_exp,
    lower_confidence_bound,
    probability_of_improvement,
)
from slayr_py.acquisition.warped_improvement import log_improvement_above_pivot, log_warped_improvement
from slayr_py.errors import DataError, did_you_mean
from slayr_py.inference import (
    Chains,
    Moments,
    hazard,
    log_cdf,
    log_h,
    log_h_over_phi,
    log_mills,
    log_sum_exp,
    standard_error,
)
from slayr_py.space import FloatArray

# Standard deviations of the targets are multiplied by `State.scale` in each of these.
_SMOOTHED = 1e-3  # standard deviations of the targets

_NEGLIGIBLE = 1e-3  # expected improvement in standard deviations of the targets, or probability of improvement

LEAST = 1e-8
"""Expected improvement in standard deviations of the targets, or probability of improvement, below which the order of
configurations is noise: it depends on the far tails of normal distributions."""

LEAST_OF_MEANS = 1e-100
"""The same for improvements of posterior means: tiny ones still tell which of a few well-known levels it is most useful
to evaluate again."""

_BY_NAME: dict[str, type[Acquisition]] = {}


class State(NamedTuple):
    """State of the loop, and the warp of the draws whose moments a criterion gets.

    Attributes
    ----------
    best : float or (s, 1) float64
        Smallest value so far, for standardised targets; of each draw, if values of pending configurations are believed.
    t : int
        Iteration, from 1.
    dimension : int
        Dimensionality of the space.
    warp : (s, 1) float64, optional
        Parameter of the warp of each draw; None without a warp. The moments are then those of `Predictor.linearised`.
    pivot : float, optional
        Pivot of the warp, if it has one.
    is_tangent : bool
        Whether the moments are those of the tangents of different warps. Where values are bad, also known ones, the
        means of the draws then differ the more, the worse the values are: this difference is no uncertainty.
    scale : float
        `Predictor.improvement_scale`.
    """

    best: float | FloatArray
    t: int
    dimension: int
    warp: FloatArray | None = None
    pivot: float | None = None
    is_tangent: bool = False
    scale: float = 1.0

    @property
    def smallest_variance(self) -> float:
        """Return the variance that replaces smaller ones."""
        return SMALLEST_VARIANCE * self.scale**2

    @property
    def is_linear(self) -> bool:
        """Return whether the function is linear in the normal variable below the value to improve on."""
        return self.warp is None or (self.pivot is not None and bool(np.all(self.best <= self.pivot)))

    def at_one_point(self) -> State:
        """Return the state that broadcasts against moments (s,) at one point."""
        return self._replace(best=np.ravel(self.best))


@dataclass(frozen=True)
class Acquisition(ABC):
    """A criterion whose maximum is the next configuration.

    A subclass with a ``name`` is registered under it. The fields of a subclass are its options: numbers or None, which
    studies store.

    Attributes
    ----------
    name : str
    negligible : float
        Below this maximum, the relative error does not matter: more draws would not find a useful improvement.
    least : float
        Below this maximum, the criterion does not tell configurations apart: the search explores instead. Like
        ``negligible`` it is for improvements of scale 1, see `at_scale`.
    is_logarithm : bool
        Whether `transformed` is a logarithm, to which those of factors can be added.
    is_of_means : bool
        Whether, for a noisy objective, the variance is that of the change of the posterior mean by an evaluation,
        relative to the recommended configuration (`Predictor.compared`), instead of that of the function. A subclass
        has this from its base class.
    least_of_means : float
        The same in that case; a belief about the optimum is left out below ``least`` all the same.
    """

    name: ClassVar[str]
    negligible: ClassVar[float] = -np.inf
    least: ClassVar[float] = -np.inf
    is_logarithm: ClassVar[bool] = False
    is_of_means: ClassVar[bool] = False
    least_of_means: ClassVar[float] = -np.inf

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "name" in vars(cls):
            _BY_NAME[cls.name] = cls

    @abstractmethod
    def value(self, mean: FloatArray, sd: FloatArray, state: State) -> FloatArray:
        """Return the criterion at m points, (m,), from moments (s, m)."""

    def transformed(self, mean: FloatArray, variance: FloatArray, state: State) -> FloatArray:
        """Return an increasing function of the criterion that is easier to maximise, (m,): the criterion by default."""
        return self.value(mean, np.sqrt(variance), state)

    @abstractmethod
    def transformed_with_gradient(self, moments: Moments, state: State) -> tuple[FloatArray, FloatArray]:
        """Return `transformed`, (m,), and its gradient (m, d)."""

    def error(self, mean: FloatArray, sd: FloatArray, state: State, chains: Sequence[Chains]) -> float:
        """Return the Monte Carlo standard error of the criterion at one point, from moments (s,).

        The error of a mean over draws is relative to the criterion. The error of the bound is in standard deviations of
        the targets times ``state.scale``.
        """
        return error_of_mean(self.value(mean[None], sd[None], state.at_one_point()), chains)

    def gain(self, value: float) -> float | None:
        """Return the expected improvement where the criterion has this value; None if it does not determine it."""
        return None

    def at_scale(self, threshold: float, scale: float) -> float:
        """Return a threshold of the criterion, where improvements have this `State.scale`: the same by default."""
        return threshold

    def logarithmic(self) -> Acquisition:
        """Return the same criterion with a logarithm as `transformed`, to which logarithms of factors can be added.

        Raises
        ------
        DataError
            If the criterion has none.
        """
        raise DataError(
            f"acquisition {self.name!r} is not supported with prior=, which multiplies a positive criterion; use 'ei', "
            "or define its method logarithmic()"
        )

    def options(self) -> dict[str, Any]:
        """Return the options of `from_name` for an equal criterion, as plain JSON."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def error_of_mean(terms: FloatArray, chains: Sequence[Chains]) -> float:
    """Return the Monte Carlo standard error of the mean of terms (s,); NaN if none of the chains has enough draws.

    Groups of chains are strata: their errors are independent, and differences between groups do not count as error. A
    group with fewer than four draws in a chain has a negligible share and is left out.
    """
    errors = [group.share * standard_error(terms[group.rows]) for group in chains]
    known = [error for error in errors if not math.isnan(error)]
    return math.hypot(*known) if known else float("nan")


def gradient_by_inputs(moments: Moments, by_mean: FloatArray, by_variance: FloatArray) -> FloatArray:
    """Return the gradient (m, d) of a function of the moments from its derivatives by mean and variance (s, m)."""
    gradient = np.einsum("sm,smd->md", by_mean, moments.mean_gradient)
    gradient += np.einsum("sm,smd->md", by_variance, moments.variance_gradient)
    return np.asarray(gradient)


class NoCriterion(Acquisition):
    """The constant 0, for a search that maximises the probability of feasibility alone."""

    @override
    def logarithmic(self) -> Acquisition:
        return self

    @override
    def value(self, mean: FloatArray, sd: FloatArray, state: State) -> FloatArray:
        return np.zeros(mean.shape[1])

    @override
    def transformed_with_gradient(self, moments: Moments, state: State) -> tuple[FloatArray, FloatArray]:
        return np.zeros(moments.mean.shape[1]), np.zeros(moments.mean_gradient.shape[1:])

    @override
    def error(self, mean: FloatArray, sd: FloatArray, state: State, chains: Sequence[Chains]) -> float:
        return float("nan")


class Uncertainty(Acquisition):
    """Logarithm of the root mean square of the draws' standard deviations, for a search that explores."""

    @override
    def value(self, mean: FloatArray, sd: FloatArray, state: State) -> FloatArray:
        return np.log(np.maximum(_root_mean_square(sd), np.sqrt(state.smallest_variance)))

    @override
    def transformed_with_gradient(self, moments: Moments, state: State) -> tuple[FloatArray, FloatArray]:
        mixture = _DrawMixture.of(moments, state, with_means=False)
        return 0.5 * np.log(mixture.variance), 0.5 * mixture.variance_slope / mixture.variance[:, None]


def _root_mean_square(sd: FloatArray) -> FloatArray:
    """Return the root mean square over draws (m,) of standard deviations (s, m)."""
    return np.asarray(np.sqrt(np.mean(np.square(sd), axis=0)))


class _DrawMixture(NamedTuple):
    """Mean and variance (m,) of the mixture over draws, and their gradients (m, d)."""

    mean: FloatArray
    variance: FloatArray
    mean_slope: FloatArray
    variance_slope: FloatArray

    @classmethod
    def of(cls, moments: Moments, state: State, *, with_means: bool) -> _DrawMixture:
        """Return the moments, with the differences between the means of the draws or without them."""
        mean, variance, mean_gradient, variance_gradient = moments
        centre = mean.mean(axis=0)
        slope = mean_gradient.mean(axis=0)
        deviation = mean - centre if with_means else np.zeros_like(mean)
        total = np.maximum(np.mean(variance + np.square(deviation), axis=0), state.smallest_variance)
        total_slope = variance_gradient.mean(axis=0)
        total_slope += 2 * np.einsum("sm,smd->md", deviation, mean_gradient - slope) / len(mean)
        return cls(centre, total, slope, total_slope)


class _Improvement(Acquisition):
    """Criteria that are the mean over draws of a function of z; their transform is the logarithm."""

    is_logarithm: ClassVar[bool] = True

    @override
    def logarithmic(self) -> Acquisition:
        return self

    @abstractmethod
    def _log_terms(self, z: FloatArray, sd: FloatArray, state: State) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the logarithm of each draw's criterion and its derivatives by mean and standard deviation, (s, m)."""

    @override
    def error(self, mean: FloatArray, sd: FloatArray, state: State, chains: Sequence[Chains]) -> float:
        sd = np.maximum(sd, np.sqrt(state.smallest_variance))[:, None]
        log_terms = self._log_terms((state.best - mean[:, None]) / sd, sd, state)[0][:, 0]
        terms = np.exp(log_terms - log_terms.max())
        return error_of_mean(terms, chains) / float(terms.mean())

    @override
    def transformed(self, mean: FloatArray, variance: FloatArray, state: State) -> FloatArray:
        sd = np.sqrt(np.maximum(variance, state.smallest_variance))
        return log_mean_exp(self._log_terms((state.best - mean) / sd, sd, state)[0])

    @override
    def transformed_with_gradient(self, moments: Moments, state: State) -> tuple[FloatArray, FloatArray]:
        sd = np.sqrt(np.maximum(moments.variance, state.smallest_variance))
        log_terms, by_mean, by_sd = self._log_terms((state.best - moments.mean) / sd, sd, state)
        total = log_sum_exp(log_terms)
        share = np.exp(log_terms - total)
        gradient = gradient_by_inputs(moments, share * by_mean, share * by_sd / (2 * sd))
        return np.asarray(total - np.log(len(share))), gradient


class ExpectedImprovement(_Improvement):
    """Expected improvement over the smallest value, averaged over draws."""

    name: ClassVar[str] = "ei"
    is_of_means: ClassVar[bool] = True
    negligible: ClassVar[float] = _NEGLIGIBLE
    least: ClassVar[float] = LEAST
    least_of_means: ClassVar[float] = LEAST_OF_MEANS

    @override
    def value(self, mean: FloatArray, sd: FloatArray, state: State) -> FloatArray:
        if not state.is_linear:
            return np.exp(self.transformed(mean, np.square(sd), state))
        return expected_improvement(mean, sd, state.best)

    @override
    def gain(self, value: float) -> float | None:
        return value

    @override
    def at_scale(self, threshold: float, scale: float) -> float:
        return threshold * scale

    @override
    def _log_terms(self, z: FloatArray, sd: FloatArray, state: State) -> tuple[FloatArray, FloatArray, FloatArray]:
        if state.warp is not None and not state.is_linear:
            if state.pivot is not None:
                distance = np.maximum(state.best - state.pivot, 0.0)
                return log_improvement_above_pivot(z, sd, state.warp, distance)
            return log_warped_improvement(z, sd, state.warp, state.best)
        # dEI/dmean = -Phi(z) and dEI/dsd = phi(z), both over EI = sd h(z).
        relative = log_h_over_phi(z)
        return np.log(sd) + log_h(z), -np.exp(log_mills(z) - relative) / sd, np.exp(-relative) / sd


class LogExpectedImprovement(ExpectedImprovement):
    """Logarithm of the expected improvement: suggests the same points as EI and does not underflow."""

    name: ClassVar[str] = "log_ei"
    negligible: ClassVar[float] = float(np.log(_NEGLIGIBLE))
    least: ClassVar[float] = float(np.log(LEAST))
    least_of_means: ClassVar[float] = float(np.log(LEAST_OF_MEANS))

    @override
    def value(self, mean: FloatArray, sd: FloatArray, state: State) -> FloatArray:
        if not state.is_linear:
            return self.transformed(mean, np.square(sd), state)
        return log_expected_improvement(mean, sd, state.best)

    @override
    def gain(self, value: float) -> float | None:
        return math.exp(value)

    @override
    def at_scale(self, threshold: float, scale: float) -> float:
        return threshold + math.log(scale)


class ProbabilityOfImprovement(_Improvement):
    """Probability of a smaller value, averaged over draws."""

    name: ClassVar[str] = "pi"
    negligible: ClassVar[float] = _NEGLIGIBLE
    least: ClassVar[float] = LEAST

    @override
    def value(self, mean: FloatArray, sd: FloatArray, state: State) -> FloatArray:
        return probability_of_improvement(mean, sd, state.best)

    @override
    def _log_terms(self, z: FloatArray, sd: FloatArray, state: State) -> tuple[FloatArray, FloatArray, FloatArray]:
        by_z = hazard(z)
        return log_cdf(z), -by_z / sd, -by_z * z / sd


@dataclass(frozen=True)
class LowerConfidenceBound(Acquisition):
    """Lower confidence bound of the mixture with the cooling schedule of the slayR notes.

    Under a warp the standard deviation is the root mean square of those of the draws, see `State.is_tangent`. The
    search maximises the bound in units of `State.scale`, so that steps and factors weigh the same under every warp.

    Parameters
    ----------
    delta : float
        Probability in (0, 1) with which the regret bound may fail.
    dimension : float, optional
        D of the schedule; by default the dimensionality of the space. The schedule of the theorem has the number of
        candidate points instead.
    """

    name: ClassVar[str] = "lcb"
    delta: float = 0.1
    dimension: float | None = None

    def __post_init__(self) -> None:
        self._beta(State(0.0, 1, 1))  # raises if an option is out of range

    @override
    def value(self, mean: FloatArray, sd: FloatArray, state: State) -> FloatArray:
        if state.is_tangent:
            mean, sd = mean.mean(axis=0), _root_mean_square(sd)
        return lower_confidence_bound(mean, sd, self._beta(state))

    @override
    def error(self, mean: FloatArray, sd: FloatArray, state: State, chains: Sequence[Chains]) -> float:
        return super().error(mean, sd, state, chains) / state.scale

    @override
    def transformed(self, mean: FloatArray, variance: FloatArray, state: State) -> FloatArray:
        return super().transformed(mean, variance, state) / state.scale

    @override
    def transformed_with_gradient(self, moments: Moments, state: State) -> tuple[FloatArray, FloatArray]:
        mixture = _DrawMixture.of(moments, state, with_means=not state.is_tangent)
        root = np.sqrt(mixture.variance)
        weight = np.sqrt(self._beta(state))
        slope = weight * mixture.variance_slope / (2 * root[:, None]) - mixture.mean_slope
        return (weight * root - mixture.mean) / state.scale, slope / state.scale

    @override
    def logarithmic(self) -> Acquisition:
        return _LogOptimisticImprovement(self.delta, self.dimension)

    def _beta(self, state: State) -> float:
        return beta_schedule(state.t, self.dimension if self.dimension is not None else state.dimension, self.delta)


class _LogOptimisticImprovement(LowerConfidenceBound):
    """The confidence bound with the logarithm of the improvement that it promises on the best value.

    A factor needs a positive criterion. The positive part of the improvement (as in SMAC3, for piBO) has no slope where
    it is 0, so that a smooth function replaces it: (d + sqrt(d^2 + s^2)) / 2 with s = `_SMOOTHED`.
    """

    is_logarithm: ClassVar[bool] = True

    @override
    def transformed_with_gradient(self, moments: Moments, state: State) -> tuple[FloatArray, FloatArray]:
        negative_bound, slope = super().transformed_with_gradient(moments, state)
        promised, by_bound = _log_positive_part(np.mean(state.best) / state.scale + negative_bound)
        return promised, by_bound[:, None] * slope

    @override
    def transformed(self, mean: FloatArray, variance: FloatArray, state: State) -> FloatArray:
        return _log_positive_part(np.mean(state.best) / state.scale + super().transformed(mean, variance, state))[0]


def _log_positive_part(d: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log((d + sqrt(d^2 + s^2)) / 2) and its derivative, accurate also for negative d."""
    root = np.sqrt(np.square(d) + _SMOOTHED**2)
    smooth = np.where(d > 0, 0.5 * (d + root), 0.5 * _SMOOTHED**2 / np.where(d > 0, 1.0, root - d))
    return np.log(smooth), 1 / root


def names() -> tuple[str, ...]:
    """Return the names that :func:`from_name` accepts."""
    return tuple(_BY_NAME)


def from_name(name: str | Acquisition, **options: Any) -> Acquisition:
    """Return a criterion by name: "ei", "log_ei", "pi" or "lcb"; return an existing criterion unchanged.

    Raises
    ------
    DataError
        For an unknown name (the nearest known one is suggested) or option, or an option out of range.
    """
    if isinstance(name, Acquisition):
        if options:
            raise DataError(f"options {sorted(options)} cannot be added to {name!r}; pass them to its class")
        return name
    if not isinstance(name, str) or name not in _BY_NAME:
        raise DataError(f"unknown acquisition {name!r}{did_you_mean(name, names())}")
    try:
        return _BY_NAME[name](**options)
    except TypeError as error:
        raise DataError(f"acquisition {name!r} does not take {sorted(options)}") from error
