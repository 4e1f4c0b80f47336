r"""Transformations of the targets that compress large values: the NumPy twin of ``stan/functions/warp.stan``.

Without a pivot:

    T(y) = log(1 + a y) / a   for y >= 0,       T(y) = (1 - exp(-a y)) / a   for y < 0,       a > 0

T'(0) = 1, and the inverse is T^-1(t) = -T(-t). With the pivot b <= 0:

    T(y) = S (g(a (y - b)) - log(1 - a b)),   g(v) = log(1 + v) for v >= 0,  g(v) = v for v < 0,   S = 4 / log(1 + 4 a)

Both map the real line onto itself with T(0) = 0, and tend to the identity as a tends to 0. Predictions far above the
data grow exponentially and have finite moments.

Symbols
-------
a : the hyperparameter ``warp``; arrays are broadcast against the values.
b : the pivot, in practice the best target; None for the transformation without one.
x = t / S + log(1 - a b) : normal form of t = T(y) with a pivot, y = b + g^-1(x) / a.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from scipy.special import ndtr

from slayr_py.inference.normal import log_phi
from slayr_py.space import FloatArray

RANGE = 4.0
"""Distance from the pivot that keeps its length; standardised targets have about this range."""


def pivot_of(data: Mapping[str, Any]) -> float | None:
    """Return the pivot in a program's data."""
    return float(np.asarray(data["warp_pivot"])[0]) if data["n_pivot"] else None


def warp_range(a: FloatArray) -> FloatArray:
    """Return S."""
    return np.asarray(RANGE / np.log1p(RANGE * a))


def normal_form(t: FloatArray, a: FloatArray, pivot: float) -> FloatArray:
    """Return x."""
    return np.asarray(t / warp_range(a) + np.log1p(-a * pivot))


def warped(y: FloatArray, a: FloatArray, pivot: float | None = None) -> FloatArray:
    """Return T(y)."""
    if pivot is not None:
        v = a * (y - pivot)
        return np.asarray(warp_range(a) * (np.log1p(np.maximum(v, 0.0)) + np.minimum(v, 0.0) - np.log1p(-a * pivot)))
    with np.errstate(over="ignore"):
        return np.asarray((np.log1p(a * np.maximum(y, 0.0)) - np.expm1(-a * np.minimum(y, 0.0))) / a)


def unwarped(t: FloatArray, a: FloatArray, pivot: float | None = None) -> FloatArray:
    """Return T^-1(t)."""
    if pivot is not None:
        return np.asarray(pivot + _linear_below(normal_form(t, a, pivot)) / a)
    return -warped(-t, a)


def _linear_below(x: FloatArray) -> FloatArray:
    """Return g^-1(x)."""
    with np.errstate(over="ignore"):
        return np.asarray(np.expm1(np.maximum(x, 0.0)) + np.minimum(x, 0.0))


def log_slope(y: FloatArray, a: FloatArray, pivot: float | None = None) -> FloatArray:
    """Return log T'(y)."""
    if pivot is not None:
        return np.asarray(np.log(warp_range(a) * a) - np.log1p(a * np.maximum(y - pivot, 0.0)))
    return np.asarray(-a * np.minimum(y, 0.0) - np.log1p(a * np.maximum(y, 0.0)))


def counts_in_jacobian(y: FloatArray, pivot: float | None = None) -> FloatArray:
    """Return the number of times, 1 or 0, that log T'(y) counts in the logarithm of the Jacobian of targets (..., n).

    Of targets that equal the pivot only the first counts. T' = S a grows with a there, and equal targets say nothing
    more about the scale of values near the best one.
    """
    at_pivot = np.zeros(y.shape, dtype=np.bool_) if pivot is None else y == pivot
    return np.where(at_pivot & (np.cumsum(at_pivot, axis=-1) > 1), 0.0, 1.0)


def slopes_by_log_warp(y: FloatArray, a: FloatArray, pivot: float | None = None) -> tuple[FloatArray, FloatArray]:
    """Return the derivatives of T(y) and of log T'(y) by log a."""
    if pivot is not None:
        v = a * (y - pivot)
        above = np.maximum(v, 0.0) / (1 + np.maximum(v, 0.0))
        by_range = -RANGE * a / ((1 + RANGE * a) * np.log1p(RANGE * a))  # of log S
        inner = above + np.minimum(v, 0.0) + a * pivot / (1 - a * pivot)
        return warped(y, a, pivot) * by_range + warp_range(a) * inner, 1 + by_range - above
    above = np.maximum(y, 0.0) / (1 + a * np.maximum(y, 0.0))
    below = np.minimum(y, 0.0)
    return above + below * np.exp(-a * below) - warped(y, a), -a * (below + above)


_TOGETHER = 2**12  # doubles in an array of several nodes; a call of NumPy costs as much as a few hundred exponentials


class HalfLine:
    """Gauss-Legendre quadrature of g(v) phi(v - z) over v > 0, for smooth functions g.

    Parameters
    ----------
    nodes : int
    power : float
        Exponent of the map from [0, 1] to the range of v; larger exponents put more nodes near 0.
    drop : float
        The range ends where the logarithm of exp(-(v - z)^2 / 2) is this much below its maximum.
    """

    def __init__(self, nodes: int, power: float, drop: float) -> None:
        places, weights = np.polynomial.legendre.leggauss(nodes)
        places = 0.5 * (places + 1)
        self._places = places**power
        self._weights = 0.5 * weights * power * places ** (power - 1)
        self._drop = 2 * drop

    def log_scale(self, z: FloatArray) -> FloatArray:
        """Return the logarithm by which :meth:`points` divides, so that no weight underflows for large -z."""
        return log_phi(np.minimum(z, 0.0))

    def points(self, z: FloatArray, end: float | FloatArray = np.inf) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield v and weights: the integral over 0 < v < end is exp(log_scale) times the sum of weight g(v).

        The first axis of v and weights has some of the nodes, as many as fit into the cache; the others are those of z.
        """
        below = np.minimum(z, 0.0)
        root = np.sqrt(np.square(below) + self._drop)
        lower = np.maximum(z - np.sqrt(self._drop), 0.0)
        width = np.maximum(np.minimum(np.where(z < 0, self._drop / (root - below), z + root), end) - lower, 0.0)
        shift = 0.5 * np.square(below)
        nodes = max(1, _TOGETHER // max(1, z.size))
        for i in range(0, len(self._places), nodes):
            axes = (-1, *[1] * z.ndim)
            v = lower + self._places[i : i + nodes].reshape(axes) * width
            weights = self._weights[i : i + nodes].reshape(axes) * width
            yield v, weights * np.exp(shift - 0.5 * np.square(v - z))


# Errors for means up to 4, and a and sd up to 3: below 1e-5 sd; 16 nodes have 6e-3.
_MOMENTS = HalfLine(nodes=24, power=2.0, drop=20.0)
_FAR = 50.0  # standard deviations beyond which the other side of 0 has no probability
_LARGE = 1.0  # standard deviation of a t above which the exponential part of T^-1 has its moments in closed form


def unwarped_moments(
    mean: FloatArray, sd: FloatArray, a: FloatArray, pivot: float | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of T^-1(t) for normal t; infinite above the largest double."""
    if pivot is None:
        return _moments(mean, sd, a, unwarped(mean, a), np.log1p)
    x = normal_form(mean, a, pivot)
    centre, spread = _moments(x, sd / warp_range(a), np.ones(()), _linear_below(x), lambda size: size)
    with np.errstate(over="ignore"):
        return pivot + centre / a, spread / a


def _moments(
    mean: FloatArray, sd: FloatArray, a: FloatArray, pivot: FloatArray, below: Callable[[FloatArray], FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of h(t) / a for h(t) = exp(a t) - 1 if t > 0, else -below(-a t).

    The deviations are from ``pivot``, the value at the mean.

    Quadrature integrates the logarithmic part of T^-1, t < 0, and the exponential part, t > 0. If the exponential part
    dominates, its moments are those of a log-normal variable above a threshold, in closed form.
    """
    mean, sd, a, pivot = np.broadcast_arrays(mean, sd, a, pivot)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        low = _one_side(-1.0, mean, sd, a, pivot, below)
        above = _one_side(1.0, mean, sd, a, pivot, np.expm1)
        large = a * sd > _LARGE
        if np.any(large):
            above = np.where(large, _above_a_threshold(mean, sd, a, pivot), above)
        first, second = low + above
        spread = np.sqrt(np.maximum(second - np.square(first), 0.0))
        centre = pivot + first
    return np.where(np.isnan(centre), np.inf, centre), np.where(np.isnan(spread), np.inf, spread)


def _one_side(
    side: float,
    mean: FloatArray,
    sd: FloatArray,
    a: FloatArray,
    pivot: FloatArray,
    growth: Callable[[FloatArray], FloatArray],
) -> FloatArray:
    """Return E[d; side t > 0] and E[d^2; side t > 0] for d = side growth(a |t|) / a - pivot, (2, ...)."""
    z = np.clip(np.where(sd > 0, side * mean / sd, side * np.copysign(_FAR, mean)), -_FAR, _FAR)
    moments = np.zeros((2, *pivot.shape))
    for v, weight in _MOMENTS.points(z):
        # t = side sd v, without rounding errors for small sd
        size = a * np.maximum(side * mean + sd * (v - z), 0.0)
        deviation = side * growth(size) / a - pivot
        first = weight * deviation
        second = first * deviation
        for node in range(len(v)):  # one by one, so that the sum for a point does not depend on the number of points
            moments[0] += first[node]
            moments[1] += second[node]
    return np.asarray(np.exp(_MOMENTS.log_scale(z)) * moments)


def _above_a_threshold(mean: FloatArray, sd: FloatArray, a: FloatArray, pivot: FloatArray) -> FloatArray:
    """Return E[d; t > 0] and E[d^2; t > 0] for d = (exp(a t) - 1) / a - pivot, from E[exp(k a t); t > 0]."""
    zero, one, two = (
        np.exp(k * a * mean + 0.5 * np.square(k * a * sd)) * ndtr(mean / sd + k * a * sd) for k in range(3)
    )
    shift = 1 + a * pivot
    return np.stack([(one - shift * zero) / a, (two - 2 * shift * one + np.square(shift) * zero) / np.square(a)])
