r"""Transformation of the targets that compresses large values: the NumPy twin of ``stan/functions/warp.stan``.

    T(y) = log(1 + a y) / a   for y >= 0,       T(y) = (1 - exp(-a y)) / a   for y < 0,       a > 0

T maps the real line onto itself with T(0) = 0 and T'(0) = 1, and tends to the identity as a tends to 0. Its inverse is
T^-1(t) = -T(-t). Predictions far above the data grow exponentially and have finite moments.

Symbols
-------
a : the hyperparameter ``warp``; arrays are broadcast against the values.
"""

from __future__ import annotations

import numpy as np

from slayr_py.space import FloatArray

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def warped(y: FloatArray, a: FloatArray) -> FloatArray:
    """Return T(y)."""
    with np.errstate(over="ignore"):
        return np.asarray((np.log1p(a * np.maximum(y, 0.0)) - np.expm1(-a * np.minimum(y, 0.0))) / a)


def unwarped(t: FloatArray, a: FloatArray) -> FloatArray:
    """Return T^-1(t)."""
    return -warped(-t, a)


def log_slope(y: FloatArray, a: FloatArray) -> FloatArray:
    """Return log T'(y)."""
    return np.asarray(-a * np.minimum(y, 0.0) - np.log1p(a * np.maximum(y, 0.0)))


def unwarped_moments(mean: FloatArray, sd: FloatArray, a: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of T^-1(t) for normal t, by Gauss-Hermite quadrature with 32 nodes."""
    pivot = unwarped(mean, a)
    first = np.zeros(pivot.shape)
    second = np.zeros(pivot.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            deviation = unwarped(mean + sd * node, a) - pivot
            first += weight * deviation
            second += weight * np.square(deviation)
        return pivot + first, np.sqrt(np.maximum(second - np.square(first), 0.0))
