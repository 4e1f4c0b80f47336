r"""Expected improvement of a function T^-1(t), where t is normal and T is a warp (`slayr_py.inference.warp`).

Symbols
-------
b : value to improve on, on the standardised scale.
mean, sd, z : moments of the tangent of T^-1 at T(b), as of `Predictor.linearised`, and z = (b - mean) / sd.
u = sd v : improvement b - tangent, where v ~ Normal(z, 1).
I(u) : improvement b - T^-1(t) of the function itself, where the tangent improves by u. It is smaller, because T^-1
    is flatter below T(b): I(u) = T(u) for b <= 0 without a pivot, and I(u) = u for b at or below a pivot.

    EI = integral of I(sd v) phi(v - z) over v > 0

by quadrature. The relative error is below 3e-4 for b <= 0 and with a pivot. For b > 0 without a pivot it grows with the
warp and with the standard deviation of t: it is below 3e-4 where both are at most 3, and at most 1.3e-3 where both are
at most 10, which a warp exceeds with prior probability 5e-4.
"""

from __future__ import annotations

import numpy as np

from slayr_py.inference import HalfLine, log_cdf, log_h, log_phi
from slayr_py.space import FloatArray

# For b <= 0, 12 nodes have the error of the truncation at `drop`, 2e-4; 10 have 3e-3, and 16 gain nothing.
_RULE = HalfLine(nodes=12, power=1.5, drop=11.0)


def log_warped_improvement(
    z: FloatArray, sd: FloatArray, warp: FloatArray, best: float | FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return log EI and its derivatives by mean and standard deviation of the tangent, (s, m).

    Parameters
    ----------
    z, sd : (s, m) float64
    warp : (s, 1) float64
        Parameter of T under each draw.
    best : float or (s, 1) float64
        b.
    """
    total = np.zeros(z.shape)
    by_mean = np.zeros(z.shape)
    by_sd = np.zeros(z.shape)
    for v, weight in _RULE.points(z):
        value, slope = _improvement(sd * v, warp, best)
        slope *= weight
        value *= weight
        by_node = slope * (v - z)
        # One by one, so that the sum for a point does not depend on the number of points.
        for node in range(len(v)):
            total += value[node]
            by_mean -= slope[node]
            by_sd += by_node[node]
    return np.log(total) + _RULE.log_scale(z), by_mean / total, by_sd / total


def _improvement(u: FloatArray, a: FloatArray, best: float | FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return I(u) and its derivative."""
    if np.all(np.asarray(best) <= 0):
        return np.log1p(a * u) / a, 1 / (1 + a * u)
    # T^-1 is an exponential between 0 and T(best), and a logarithm below 0, where I depends on u alone.
    start = np.maximum(best, 0.0)
    slope = 1 + a * start
    t = np.log1p(a * start) / a - u / slope
    exponential = np.exp(a * np.maximum(t, 0.0))
    linear = 1 - a * np.minimum(t, 0.0)
    return start - (np.expm1(a * np.maximum(t, 0.0)) - np.log(linear)) / a, exponential / (linear * slope)


def log_improvement_above_pivot(
    z: FloatArray, sd: FloatArray, a: FloatArray, distance: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return log EI and its derivatives as `log_warped_improvement`, for b at a ``distance`` (s, 1) above the pivot.

    T^-1 is an exponential down to the pivot, which the tangent passes at v = ``end``, and linear below it. The part
    beyond ``end`` has a closed form.
    """
    top = 1 + a * distance  # of the slopes of T^-1 at b and at the pivot
    end = top * np.log(top) / (a * sd)
    scale = _RULE.log_scale(z)
    beyond = z - end
    probability = np.exp(log_cdf(beyond) - scale)
    total = distance * probability + sd / top * np.exp(log_h(beyond) - scale)
    by_mean = -probability / top
    by_sd = np.exp(log_phi(beyond) - scale) / top
    for v, weight in _RULE.points(z, end):
        fall = a * sd * v / top
        value = -weight * top * np.expm1(-fall) / a
        slope = weight * np.exp(-fall)
        by_node = slope * (v - z)
        for node in range(len(v)):
            total += value[node]
            by_mean -= slope[node]
            by_sd += by_node[node]
    return np.log(total) + scale, by_mean / total, by_sd / total
