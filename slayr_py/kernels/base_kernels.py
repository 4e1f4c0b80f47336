"""Stationary kernels of one squared distance, the NumPy twins of ``stan/functions/base_kernels.stan``.

With h the squared distance over the squared length-scale: ``se`` is exp(-h/2); ``rq`` is (1 + h/(2 alpha))^-alpha;
``matern`` is M_p(sqrt((2p + 1) h)), see :mod:`slayr_py.kernels.matern`. The functions return the correlation and its
derivative by h, both of the shape of h.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from slayr_py.kernels.matern import matern, matern_slope
from slayr_py.space.dimension import FloatArray

Base = Literal["se", "rq", "matern"]


def correlation(h: FloatArray, base: Base, p: int, rq_alpha: FloatArray | None) -> FloatArray:
    """Return the correlations at squared distances (s, ...); ``rq_alpha`` broadcasts against h."""
    if base == "se":
        return np.exp(-0.5 * h)
    if base == "rq":
        assert rq_alpha is not None
        return np.exp(-rq_alpha * np.log1p(h / (2 * rq_alpha)))
    return matern(np.sqrt((2 * p + 1) * h), p)


def slope(h: FloatArray, base: Base, p: int, rq_alpha: FloatArray | None) -> FloatArray:
    """Return the derivative of :func:`correlation` by h."""
    if base == "se":
        return -0.5 * np.exp(-0.5 * h)
    if base == "rq":
        assert rq_alpha is not None
        return -0.5 * np.exp(-(rq_alpha + 1) * np.log1p(h / (2 * rq_alpha)))
    return (2 * p + 1) * matern_slope(np.sqrt((2 * p + 1) * h), p)
