r"""Values that are far worse than all others, such as penalties and losses of diverged runs.

A penalty of 1e6 among values around 1 decides the scale of the targets. The other values are then equal up to a
millionth of it, and a model sees no difference between them. With b the best value, d = |y - b|, and l the largest
distance of the near values, far values count as if they had the distance

    d' = l (2 - l / d),   d > l,

so that they stay in their order, at most twice as far as the near ones. Values are far if there is a gap below them:
each of their distances is more than 100 times as large as those of all others. Where an objective is continuous, that
is seldom so (docs/decisions/far-values.md).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slayr_py.acquisition import non_dominated
from slayr_py.space import FloatArray

GAP = 100.0
"""Ratio of distances from the best value above which values are far; measured in docs/decisions/far-values.md."""

_FEWEST_NEAR = 3  # values; the distances of fewer are no scale


class Compressed(NamedTuple):
    """Values of one objective, of which far ones are compressed."""

    values: FloatArray
    """Shape (n,)."""

    slopes: FloatArray
    """Shape (n,): dd' / dd, (l / d)^2 for far values and 1 for the others, by which known errors shrink."""

    far: NDArray[np.bool_]
    """Shape (n,): which values are far."""


def compress_far(values: FloatArray, number: int = 0) -> Compressed:
    """Compress the far values of one objective.

    At least half of the values are near. There may be fewer, but at least three, if all far values are equal, as
    constant penalties are. With several objectives, the values of non-dominated points are near.

    Parameters
    ----------
    values : (n, p) float64
        Finite values of p objectives, of which smaller ones are better.
    number : int
        The objective.
    """
    y = values[:, number]
    best = y.min(initial=np.inf)
    with np.errstate(over="ignore"):
        distances = np.minimum(y - best, np.finfo(float).max)
    far = _are_far(distances, distances[non_dominated(values)].max(initial=0.0))
    if not far.any():
        return Compressed(y, np.ones(len(y)), far)
    limit = distances[~far].max()
    shares = limit / np.maximum(distances, limit)
    return Compressed(np.where(far, best + limit * (2 - shares), y), np.square(shares), far)


def _are_far(distances: FloatArray, near: float) -> NDArray[np.bool_]:
    """Return which of n distances are far; those up to ``near`` are not."""
    n = len(distances)
    d = np.sort(distances)
    for k in range(_FEWEST_NEAR, n):
        if max(near, GAP * d[k - 1]) < d[k] and d[k - 1] > 0 and (2 * k >= n or d[k] == d[-1]):
            return np.asarray(distances >= d[k])
    return np.zeros(n, dtype=np.bool_)
