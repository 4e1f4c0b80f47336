r"""Sobol indices of functions on a search space by Monte Carlo.

With two independent samples a and b, and c_i = a except for the i-th parameter, which is that of b, the indices are

    T_i = E (f(a) - f(c_i))^2 / (2 var f),    S_i = E f(b) (f(c_i) - f(a)) / var f

(Jansen 1999, Computer Physics Communications 117; Saltelli et al. 2010, ibid. 181). The variance of each index is that
of the two values whose dependence it describes, f(a) and f(c_i) or f(b) and f(c_i), with their common mean m:

    var f ~ mean (x - y)^2 / 4 + mean ((x + y) / 2 - m)^2.

1 - T_i is then the correlation of Janon et al. (2014, ESAIM: Probability and Statistics 18), and T_i is at most 2,
whatever the sample. The variance of the sample (a, b) alone has no such bound: where few large values dominate, as
under a warp, they may be among the f(c_i) but not among the f(a) and f(b). The averages are over all repeats before
they are divided.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slayr_py.inference.sensitivity.inputs import resolve, sobol_points
from slayr_py.space import Encoded, Encoder, FloatArray

_LARGEST = np.finfo(np.float64).max


class Indices(NamedTuple):
    """Sobol indices of k functions of D parameters.

    Attributes
    ----------
    first, total : (k, D) float64
        First-order and total indices, 0 <= first <= total <= 1; NaN for a constant function.
    means : (2, D) float64
        Means of both over the functions that are not constant, within the same bounds; NaN if there are none. Those of
        estimates are means of what is not bounded yet: bounds cut off one side of the errors of indices near them.
    error : float
        Largest standard error of ``means`` from the Monte Carlo integration; 0 for quadrature.
    """

    first: FloatArray
    total: FloatArray
    means: FloatArray
    error: float


def bounded(first: FloatArray, total: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return estimates of first-order and total indices within their bounds, 0 <= first <= total <= 1.

    An estimate beyond a bound that the index satisfies is nearer to the index at the bound. The total index is the more
    accurate one where both are small.
    """
    total = np.clip(total, 0.0, 1.0)
    return np.clip(first, 0.0, total), total


def means_of(first: FloatArray, total: FloatArray) -> FloatArray:
    """Return the means (2, D) of estimates (k, D) over the functions, within their bounds.

    NaN is left out. The estimate of a first-order index has no lower bound; one below -1 counts as -1.
    """
    varies = np.isfinite(total).all(axis=1)
    if not varies.any():
        return np.full((2, total.shape[1]), np.nan)
    return np.stack(bounded(np.maximum(first[varies], -1.0).mean(axis=0), total[varies].mean(axis=0)))


def pick_freeze(
    values: Callable[[Encoded], FloatArray], encoder: Encoder, points: int, repeats: int, rng: np.random.Generator
) -> Indices:
    """Estimate Sobol indices of k functions.

    Parameters
    ----------
    values : callable
        Returns the values (k, m) of the functions at m configurations. Infinite ones count as the largest double.
    encoder : Encoder
    points : int
        Number of points of each of two Sobol designs, a power of 2. The functions are evaluated ``(D + 2) * points``
        times in each repeat.
    repeats : int
        Number of independent randomisations of the designs, at least 2. ``error`` is the jackknife estimate that leaves
        out each of them.
    rng : numpy.random.Generator
    """
    f = np.stack([_evaluate(values, encoder, points, rng) for _ in range(repeats)])  # (r, k, D + 2, n)
    varies = np.ptp(f, axis=(0, 2, 3)) > 0
    first, total = np.full((2, f.shape[1], len(encoder.dimensions)), np.nan)
    error = 0.0
    if len(encoder.dimensions) == 1:  # the only parameter explains all of the variance
        first[varies] = total[varies] = 1.0
    elif varies.any():
        averages = _Averages.of(_scaled(f[:, varies]))
        first[varies], total[varies] = averages.indices(np.arange(repeats))
        rest = [means_of(*averages.indices(np.delete(np.arange(repeats), r))) for r in range(repeats)]
        error = float(np.sqrt((repeats - 1) * np.var(rest, axis=0)).max())
    return Indices(*bounded(first, total), means_of(first, total), error)


def _evaluate(
    values: Callable[[Encoded], FloatArray], encoder: Encoder, points: int, rng: np.random.Generator
) -> FloatArray:
    """Return values (k, D + 2, points) of a pair of designs a and b, and of all c_i."""
    d = len(encoder.dimensions)
    both = sobol_points(2 * d, points, rng)
    a = both[:, :d]
    b = both[:, d:]
    mixed = [np.where(np.arange(d) == j, b, a) for j in range(d)]
    f = values(resolve(encoder, np.vstack([a, b, *mixed])))
    return np.clip(f, -_LARGEST, _LARGEST).reshape(len(f), d + 2, points)


def _scaled(f: FloatArray) -> FloatArray:
    """Return the values (r, k, D + 2, n) of each function minus their mean, in a unit in which squares are finite."""
    f = np.ldexp(f, -np.frexp(np.abs(f).max(axis=(0, 2, 3), keepdims=True))[1])  # exact
    return np.asarray(f - f.mean(axis=(0, 2, 3), keepdims=True))


class _Averages(NamedTuple):
    """Averages over the points of each repeat, (r, k, 1) of a and b and (r, k, D) of the c_i and of pairs."""

    a: FloatArray
    b: FloatArray
    c: FloatArray
    total: FloatArray
    """(a - c)^2 / 2."""
    first: FloatArray
    """b (c - a)."""
    without: FloatArray
    """((a + c) / 2)^2, of values that have all parameters but one in common."""
    alone: FloatArray
    """((b + c) / 2)^2, of values that have one parameter in common."""
    between: FloatArray
    """(b - c)^2 / 2."""

    @classmethod
    def of(cls, f: FloatArray) -> _Averages:
        a, b, c = f[:, :, :1], f[:, :, 1:2], f[:, :, 2:]
        halves = 0.5 * np.square(a - c), b * (c - a), np.square(0.5 * (a + c))
        return cls(*(x.mean(axis=-1) for x in (a, b, c, *halves, np.square(0.5 * (b + c)), 0.5 * np.square(b - c))))

    def indices(self, repeats: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Return estimates of first-order and total indices (k, D), not within their bounds, from some repeats."""
        mean = _Averages(*(average[repeats].mean(axis=0) for average in self))
        centre = 0.5 * (mean.b + mean.c)
        first = mean.first - centre * (mean.c - mean.a)
        of_first = _variance(mean.between, mean.alone, centre)
        of_total = _variance(mean.total, mean.without, 0.5 * (mean.a + mean.c))
        return _ratio(first, of_first), _ratio(mean.total, of_total)


def _variance(half_square: FloatArray, square_of_mean: FloatArray, centre: FloatArray) -> FloatArray:
    """Return the variance of pairs from averages of (x - y)^2 / 2 and ((x + y) / 2)^2, and their mean."""
    return 0.5 * half_square + np.maximum(square_of_mean - np.square(centre), 0.0)


def _ratio(share: FloatArray, variance: FloatArray) -> FloatArray:
    """Return the quotient, 0 where no value of the pairs differs."""
    return np.divide(share, variance, out=np.zeros_like(share), where=variance > 0)
