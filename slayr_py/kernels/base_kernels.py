"""Stationary kernels of one squared distance, the NumPy twins of ``stan/functions/base_kernels.stan``.

With h the squared distance over the squared length-scale: ``se`` is exp(-h/2); ``rq`` is (1 + h/(2 alpha))^-alpha;
``matern`` is M_p(sqrt((2p + 1) h)). The functions return the correlation and its derivative by h, both of the shape
of h.

The Matérn correlation of order nu = p + 1/2 at d = sqrt(2 nu h) is

    M_p(d) = exp(-d) p!/(2p)! sum_{k=0..p} (p + k)! / (k! (p - k)!) (2d)^(p - k)

(Rasmussen & Williams 2006, eq. 4.16), for instance exp(-d), (1 + d) exp(-d), (1 + d + d^2/3) exp(-d).
Its derivative is M_p'(d) = -d M_{p-1}(d) / (2p - 1) for p >= 1, so that in terms of the squared distance

    dM_p / d(d^2) = -M_{p-1}(d) / (2 (2p - 1)),

which is finite at coinciding points.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from slayr_py.arguments import check_integer
from slayr_py.errors import DataError
from slayr_py.space import FloatArray

Base = Literal["se", "rq", "matern"]

BASES = {"se": 1, "rq": 2, "matern": 3}
"""Codes of the kernels in the programs."""

SMALLEST_FACTOR = np.finfo(np.float64).tiny
"""A product of correlations with a smaller factor counts as 0."""

DEFAULT_ORDER = 2
_LARGEST_ORDER = 1000  # nearly a squared exponential; prevents sums of millions of terms


def correlation(h: FloatArray, base: Base, p: int, rq_alpha: FloatArray | None) -> FloatArray:
    """Return the correlations at squared distances (s, ...); ``rq_alpha`` broadcasts against h."""
    if base == "se":
        return np.exp(-0.5 * h)
    if base == "rq":
        assert rq_alpha is not None
        return np.exp(-rq_alpha * np.log1p(h / (2 * rq_alpha)))
    return matern_correlation(np.sqrt((2 * p + 1) * h), p)


def slope(h: FloatArray, base: Base, p: int, rq_alpha: FloatArray | None) -> FloatArray:
    """Return the derivative of :func:`correlation` by h."""
    if base == "se":
        return -0.5 * np.exp(-0.5 * h)
    if base == "rq":
        assert rq_alpha is not None
        return -0.5 * np.exp(-(rq_alpha + 1) * np.log1p(h / (2 * rq_alpha)))
    return (2 * p + 1) * matern_slope(np.sqrt((2 * p + 1) * h), p)


def by_rq_alpha(h: FloatArray, rq_alpha: FloatArray) -> FloatArray:
    """Return the derivative of the logarithm of the rational quadratic correlation by its exponent."""
    scaled = h / (2 * rq_alpha)
    return np.asarray(scaled / (1 + scaled) - np.log1p(scaled))


def squared_differences(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return (a_id - b_jd)^2 of inputs (n_a, D) and (n_b, D), (D, n_a, n_b)."""
    # With the inputs of a dimension side by side, this takes a third to a seventh of the time.
    a, b = np.ascontiguousarray(a.T), np.ascontiguousarray(b.T)
    squares = a[:, :, None] - b[:, None, :]
    squares *= squares
    return squares


def differences(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return a_id - b_jd of inputs (n_a, D) and (n_b, D), (n_a, D, n_b).

    Gradients are computed in this order: a short last axis would take several times as long.
    """
    return a[:, :, None] - np.ascontiguousarray(b.T)


def matern_correlation(d: FloatArray, p: int, e: FloatArray | None = None) -> FloatArray:
    """Return M_p(d) element by element, by the nested sum of the Stan function; d = sqrt(2 nu) r >= 0.

    ``e`` is exp(-d), if it is known.
    """
    if e is None:
        e = np.negative(d)
        np.exp(e, out=e)
    k = e
    for j in range(p - 1, -1, -1):
        step = (2.0 * (p - j) / ((2 * p - j) * (j + 1))) * d
        step *= k
        step += e
        k = step
    return k


def matern_with_slope(d: FloatArray, p: int) -> tuple[FloatArray, FloatArray]:
    """Return M_p(d) and its derivative by d^2 from the same exponentials."""
    e = np.exp(-d)
    return matern_correlation(d, p, e), matern_slope(d, p, e)


def matern_slope(d: FloatArray, p: int, e: FloatArray | None = None) -> FloatArray:
    """Return the derivative of M_p by d^2; at the kink of the exponential kernel 0, the mean of both slopes."""
    if p:
        return matern_correlation(d, p - 1, e) / (-2 * (2 * p - 1))
    return np.where(d > 0, -np.exp(-d) / (2 * np.where(d > 0, d, 1.0)), 0.0)


def checked_order(p: int) -> int:
    """Return the order of a Matérn kernel; ``DataError`` unless it is an integer from 0 to 1000."""
    return check_integer("the Matérn order p", p, 0, _LARGEST_ORDER)


def order_of_base(base: str, p: int) -> int:
    """Return the order of a base kernel; ``DataError`` also for an order of a kernel other than Matérn's."""
    order = checked_order(p)
    if order != DEFAULT_ORDER and base != "matern":
        raise DataError(f"p is {p}, but the base kernel {base!r} has no order; leave p out, or use base='matern'")
    return order
