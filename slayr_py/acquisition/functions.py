"""Acquisition functions of arrays, for minimisation; larger is better.

``mean`` and ``sd`` describe the latent function at m points: (m,) for one setting of the hyperparameters, or (s, m)
for s posterior draws. Improvement is averaged over draws; the bound uses the mean and standard deviation of their
mixture. z = (best - mean) / sd.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from slayr_py.arguments import check_probability
from slayr_py.errors import DataError
from slayr_py.inference import expected_positive_part, log_h, log_sum_exp, mixture_moments, scaled
from slayr_py.space import FloatArray

SMALLEST_VARIANCE = 1e-20  # for targets with variance 1; keeps the logarithm finite at observed points


def expected_improvement(mean: ArrayLike, sd: ArrayLike, best: ArrayLike) -> FloatArray:
    """Return the expected improvement (best - mean) Phi(z) + sd phi(z) (Jones, Schonlau & Welch 1998, eq. 15).

    Parameters
    ----------
    mean, sd : (m,) or (s, m) array_like
    best : float or (s, 1) array_like
        Smallest value so far, in the same units; of each draw, if the draws believe different values at configurations
        that are still being evaluated.

    Returns
    -------
    (m,) float64

    Raises
    ------
    DataError
        If sd is negative, shapes differ or a value is NaN.
    """
    return _average(expected_positive_part(*_gap(mean, sd, best)))


def log_expected_improvement(mean: ArrayLike, sd: ArrayLike, best: ArrayLike) -> FloatArray:
    """Return the logarithm of the expected improvement, accurate where EI underflows (Ament et al. 2023).

    With draws it is the logarithm of their mean, by log-mean-exp. Parameters, shapes and errors as
    :func:`expected_improvement`.
    """
    gap, deviation = _gap(mean, sd, best)
    counts, z = scaled(gap, deviation)
    with np.errstate(divide="ignore"):
        value = np.where(counts, np.log(np.where(counts, deviation, 1.0)) + log_h(z), np.log(np.maximum(gap, 0.0)))
    return log_mean_exp(value) if value.ndim > 1 else np.asarray(value)


def probability_of_improvement(mean: ArrayLike, sd: ArrayLike, best: ArrayLike) -> FloatArray:
    """Return the probability Phi(z) of a value below ``best`` (Kushner 1964); shapes as in expected_improvement."""
    gap, deviation = _gap(mean, sd, best)
    counts, z = scaled(gap, deviation)
    return _average(np.where(counts, ndtr(z), (gap > 0).astype(np.float64)))


def lower_confidence_bound(mean: ArrayLike, sd: ArrayLike, beta: float) -> FloatArray:
    """Return the negative lower confidence bound -(mean - sqrt(beta) sd).

    Source: Srinivas et al. 2010; slayR notes, "LCB_delta".

    Parameters
    ----------
    mean, sd : (m,) or (s, m) array_like
        Draws are combined into the mean and standard deviation of their mixture.
    beta : float
        Weight of the variance, >= 0; see :func:`beta_schedule`.

    Returns
    -------
    (m,) float64

    Raises
    ------
    DataError
        If beta or sd is negative, beta is not finite, shapes differ or a value is NaN.
    """
    mean, sd = _moments(mean, sd)
    if not (np.isfinite(beta) and beta >= 0):
        raise DataError(f"beta must be finite and >= 0, got {beta!r}")
    if mean.ndim > 1:
        mean, sd = mixture_moments(mean, sd)
    return np.asarray(-(mean - np.sqrt(beta) * sd))


def beta_schedule(t: int, dimension: float, delta: float) -> float:
    """Return the weight beta_t = 2 log(D t^2 pi^2 / (6 delta)) of iteration t.

    Parameters
    ----------
    t : int
        Iteration, from 1.
    dimension : float
        D >= 1: the dimensionality in the slayR notes; the number of candidate points in the theorem that they cite
        (Srinivas et al. 2010, theorem 1).
    delta : float
        Probability in (0, 1) with which the regret bound may fail.

    Returns
    -------
    float
        Always positive: pi^2 / 6 > 1 > delta.

    Raises
    ------
    DataError
        If an argument is out of range.
    """
    check_probability("delta", delta)
    if not t >= 1:
        raise DataError(f"t counts iterations from 1, got {t!r}")
    if not isinstance(dimension, int | float | np.number) or not dimension >= 1:
        raise DataError(f"dimension must be at least 1, got {dimension!r}")
    return float(2 * (np.log(dimension) + 2 * np.log(t) + np.log(np.pi**2 / 6) - np.log(delta)))


def _moments(mean: ArrayLike, sd: ArrayLike) -> tuple[FloatArray, FloatArray]:
    m = np.asarray(mean, dtype=np.float64)
    s = np.asarray(sd, dtype=np.float64)
    try:
        m, s = np.broadcast_arrays(m, s)
    except ValueError as error:
        raise DataError(f"mean has shape {m.shape} and sd {s.shape}; they must agree") from error
    if np.any(s < 0) or np.any(np.isnan(s)) or np.any(np.isnan(m)):
        raise DataError("mean must not be NaN, and sd must not be NaN or negative")
    return m, s


def _gap(mean: ArrayLike, sd: ArrayLike, best: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return best - mean, and sd in its shape."""
    m, s = _moments(mean, sd)
    if np.any(np.isnan(best)):
        raise DataError("best is NaN; it must be the smallest value observed so far")
    try:
        gap = np.broadcast_to(np.asarray(best, dtype=np.float64), m.shape) - m
    except ValueError as error:
        raise DataError(f"best has shape {np.shape(best)} and mean {m.shape}; they must agree") from error
    return gap, s


def _average(value: FloatArray) -> FloatArray:
    return np.asarray(value.mean(axis=0) if value.ndim > 1 else value)


def log_mean_exp(terms: FloatArray) -> FloatArray:
    """Return the logarithm of the mean over draws, (m,), from logarithms (s, m)."""
    return np.asarray(log_sum_exp(terms) - np.log(len(terms)))
