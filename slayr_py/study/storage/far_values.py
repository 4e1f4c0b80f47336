r"""Values that are far worse than all others, such as penalties and losses of diverged runs.

A penalty of 1e6 among values around 1 decides the scale of the targets. The other values are then equal up to a
millionth of it, and a model sees no difference between them. With b the best value, d = |y - b|, and l the largest
distance of the near values, far values that do not count as failures count as if they had the distance

    d' = l (2 - l / d),   d > l,

so that they stay in their order up to rounding, at most twice as far as the near ones. Values are far if there is a gap
below them: each of their distances is more than 100 times as large as those of all others. Where an objective is
continuous, that is seldom so.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slayr_py.space import FloatArray
from slayr_py.threads import ignoring_underflow

GAP = 100.0  # measured in docs/decisions/far-values.md
"""Ratio of distances from the best value above which values are far."""

_FEWEST_NEAR = 3  # values; the distances of fewer are no scale
_FEWEST_OF_DESIGN = 2  # near values that were not searched
_ERRORS = 3.0  # known standard deviations by which a far value may be smaller than it is
_ROUNDING = 1e-12  # of the best value; smaller distances are no scale


class Compressed(NamedTuple):
    """Values of one objective, of which far ones are compressed."""

    values: FloatArray
    """Shape (n,)."""

    errors: FloatArray
    """Shape (n,): known standard deviations of the errors. That of a far value shrinks by dd' / dd = (l / d)^2."""

    far: NDArray[np.bool_]
    """Shape (n,): which values are far."""


@ignoring_underflow
def has_gap(y: FloatArray) -> bool:
    """Return whether some of the values (n,) may be far, since there is a gap below a distance from the best one.

    What else far values need is not asked.
    """
    with np.errstate(over="ignore"):
        distances = np.sort(np.minimum(y - y.min(initial=np.inf), np.finfo(float).max))
    return bool(np.any(distances[_FEWEST_NEAR - 1 : -1] < distances[_FEWEST_NEAR:] / GAP))


@ignoring_underflow
def compress_far(
    y: FloatArray,
    near: NDArray[np.bool_],
    searched: NDArray[np.bool_],
    errors: FloatArray | None = None,
    forecast: NDArray[np.bool_] | None = None,
) -> Compressed:
    """Compress the far values of one objective.

    At least half of the values are near, and two of these were not searched: the values of a study that has found the
    minimum are far from those of its design. Neither is asked, but at least three values are near, if all far values
    are equal, as constant penalties are.

    Parameters
    ----------
    y : (n,) float64
        Finite values, of which smaller ones are better.
    near : (n,) bool
        Values that others are compared with. Neither they nor better ones are far.
    searched : (n,) bool
        Values of configurations that a model has chosen.
    errors : (n,) float64, optional
        Known standard deviations of the errors of the values. A value that may be near is not far.
    forecast : (n,) bool, optional
        Values that are forecasts. Their errors may be larger than they are, which is no reason to believe that a
        diverged curve may be near. If such a value is far, its error is half the length of its interval of one standard
        deviation after the compression.
    """
    errors = np.zeros(len(y)) if errors is None else errors
    forecast = np.zeros(len(y), dtype=np.bool_) if forecast is None else forecast
    best = y.min(initial=np.inf)
    with np.errstate(over="ignore"):
        distances = np.minimum(y - best, np.finfo(float).max)
        smallest = distances - _ERRORS * np.where(forecast, 0.0, errors)
    far = _are_far(distances, near, searched, smallest, _ROUNDING * abs(best))
    if not far.any():
        return Compressed(y, errors, far)
    limit = distances[~far].max()

    def compressed(distances: FloatArray) -> FloatArray:
        return np.where(distances > limit, limit * (2 - limit / np.maximum(distances, limit)), distances)

    slopes = np.square(limit / np.maximum(distances, limit))
    with np.errstate(over="ignore"):
        ends = compressed(np.maximum(distances + [-errors, errors], 0.0))
    of_far = np.where(forecast, (ends[1] - ends[0]) / 2, errors * slopes)
    return Compressed(np.where(far, best + compressed(distances), y), np.where(far, of_far, errors), far)


def _are_far(
    distances: FloatArray,
    near: NDArray[np.bool_],
    searched: NDArray[np.bool_],
    smallest: FloatArray,
    rounding: float,
) -> NDArray[np.bool_]:
    """Return which of n distances are far; ``smallest`` are those that they may be in truth."""
    n = len(distances)
    order = np.argsort(distances, kind="stable")
    d = distances[order]
    above = np.minimum.accumulate(smallest[order][::-1])[::-1]  # smallest of a distance and all larger ones
    furthest = distances[near].max(initial=0.0)
    for k in range(_FEWEST_NEAR, n):
        is_gap = rounding < d[k - 1] < above[k] / GAP and furthest < d[k]
        if is_gap and (d[k] == d[-1] or (2 * k >= n and np.sum(~searched[order[:k]]) >= _FEWEST_OF_DESIGN)):
            return np.asarray(distances >= d[k])
    return np.zeros(n, dtype=np.bool_)
