"""The standard normal density phi and distribution function Phi, and h(z) = phi(z) + z Phi(z), to rounding in tails."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr, ndtr

from slayr_py.space import FloatArray

SQRT_2PI = np.sqrt(2 * np.pi)  # 1 / phi(0)
NARROW = 1e-5  # width of intervals whose density is the exponential of a straight line to 1e-11
TAIL = -50.0  # for smaller z the asymptotic series of h / phi is exact to rounding


def log_phi(z: FloatArray) -> FloatArray:
    """Return the logarithm of the standard normal density."""
    return np.asarray(-0.5 * np.square(z) - 0.5 * np.log(2 * np.pi))


def log_cdf(z: FloatArray) -> FloatArray:
    """Return the logarithm of the standard normal distribution function."""
    return np.asarray(log_ndtr(z))


def log_interval(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return log(Phi(high) - Phi(low)) of intervals, low < high, to rounding in tails and of narrow ones."""
    width = high - low
    a = np.where(low > 0, -high, low)  # by symmetry not in the upper tail, where Phi is 1
    b = np.where(low > 0, -low, high)
    upper = log_cdf(b)
    wide = upper + _log_1m_exp(np.minimum(log_cdf(a) - upper, -np.finfo(np.float64).tiny))
    middle = 0.5 * a + 0.5 * b
    small = np.minimum(width, NARROW)
    narrow = log_phi(middle) + np.log(small) + _log_sinhc(np.abs(middle) * small / 2)
    return np.where(width < NARROW, narrow, wide)


def _log_1m_exp(x: FloatArray) -> FloatArray:
    """Return log(1 - exp(x)) of x < 0."""
    near, far = np.maximum(x, -np.log(2)), np.minimum(x, -np.log(2))
    return np.asarray(np.where(x > -np.log(2), np.log(-np.expm1(near)), np.log1p(-np.exp(far))))


def _log_sinhc(x: FloatArray) -> FloatArray:
    """Return log(sinh(x) / x) of x >= 0."""
    small = np.minimum(x, 1e-2)
    large = np.maximum(x, 1e-2)
    series = np.log1p(np.square(small) / 6 * (1 + np.square(small) / 20))
    return np.where(x < 1e-2, series, large + np.log1p(-np.exp(-2 * large)) - np.log(2 * large))


def log_h(z: FloatArray) -> FloatArray:
    """Return log(phi(z) + z Phi(z)) without cancellation (Ament et al. 2023, eq. 9)."""
    z = np.asarray(z, dtype=np.float64)
    top = np.maximum(z, -1.0)
    value = np.log(np.exp(log_phi(top)) + top * ndtr(top))
    return np.where(z > -1.0, value, log_phi(z) + _log_bracket(z))


def expected_positive_part(mean: FloatArray, sd: FloatArray) -> FloatArray:
    """Return E max(0, X) of normal X, sd h(mean / sd); where sd does not count, see :func:`scaled`, max(0, mean)."""
    counts, z = scaled(mean, sd)
    # mean Phi + sd phi cancels in the lower tail; sd exp(log h) does not.
    return np.where(counts, sd * np.exp(log_h(z)), np.maximum(mean, 0.0))


def scaled(gap: FloatArray, sd: FloatArray) -> tuple[NDArray[np.bool_], FloatArray]:
    """Return where a standard deviation counts, and gap / sd there, 0 elsewhere.

    One that is 0, or so small that the square of gap / sd overflows, does not count.
    """
    with np.errstate(over="ignore"):
        z = np.divide(gap, sd, out=np.full_like(gap, np.inf), where=sd > 0)
        counts = ~np.isinf(np.square(z))
    return counts, np.where(counts, z, 0.0)


def log_h_over_phi(z: FloatArray) -> FloatArray:
    """Return log(h(z) / phi(z)); in the lower tail log h - log phi would lose digits, so it is computed directly."""
    return np.where(z > -1.0, log_h(z) - log_phi(z), _log_bracket(z))


def log_mills(z: FloatArray) -> FloatArray:
    """Return log(Phi(z) / phi(z)), the logarithm of Mills' ratio at -z, accurate in the lower tail."""
    return np.where(z > -1.0, log_cdf(z) - log_phi(z), np.log(mills(np.minimum(z, -1.0))))


def hazard(z: FloatArray) -> FloatArray:
    """Return phi(z) / Phi(z), the derivative of log Phi, accurate in the lower tail."""
    return np.asarray(np.sqrt(2 / np.pi) / erfcx(-z / np.sqrt(2)))


def mills(z: FloatArray) -> FloatArray:
    """Return Phi(z) / phi(z) for z <= 0; its value at 0 above."""
    return np.asarray(0.5 * SQRT_2PI * erfcx(-np.minimum(z, 0.0) / np.sqrt(2)))


def _log_bracket(z: FloatArray) -> FloatArray:
    """Return the logarithm of 1 + z Phi / phi at z <= -1; below TAIL the sum cancels."""
    middle = np.clip(z, TAIL, -1.0)
    return np.asarray(np.log(np.where(z < TAIL, bracket_series(z), 1 + middle * mills(middle))))


def bracket_series(z: FloatArray) -> FloatArray:
    """Return 1 + z Phi / phi at z <= TAIL: u (1 - 3u + 15u^2 - 105u^3 + 945u^4), u = 1/z^2; the value at TAIL above."""
    u = 1 / np.square(np.minimum(z, TAIL))
    return np.asarray(u * (1 - u * (3 - u * (15 - u * (105 - u * 945)))))
