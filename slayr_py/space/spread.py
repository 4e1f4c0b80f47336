"""Choose a few points that represent many."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from slayr_py.space.dimension import FloatArray
from slayr_py.space.encoded import Encoded

_NUMBERS = 0.5  # weight of the numbers alone
_BLOCK = 256  # rows of distances in memory at a time


def spread(encoded: Encoded, n: int) -> NDArray[np.intp]:
    """Return the rows of ``n`` of the configurations that represent all of them, the most representative first.

    Each has the smallest energy distance of those so far from all, one at a time: kernel herding with the kernel -d
    (Mak & Joseph 2018, Ann. Stat. 46). A longer choice starts with a shorter one. With the distance z between numbers,
    d = z / 2 + sqrt(z^2 + s^2 l^2), where l is the distance of one-hot levels and s the root mean square of z: numbers
    repel each other at different levels too, in narrow regions as in wide ones.
    """
    is_level = encoded.encoder.is_level
    numbers = encoded.columns[:, ~is_level]
    scale = np.sqrt(2 * numbers.var(axis=0).sum()) or 1.0
    both = np.hstack([numbers, scale * encoded.columns[:, is_level]])

    def distances(rows: slice | list[int]) -> FloatArray:
        sums: FloatArray = _NUMBERS * cdist(numbers[rows], numbers) + cdist(both[rows], both)
        return sums

    starts = range(0, len(both), _BLOCK)
    to_all = np.concatenate([distances(slice(start, start + _BLOCK)).mean(axis=1) for start in starts])
    to_chosen = np.zeros(len(both))
    chosen: list[int] = []
    for size in range(1, n + 1):
        gain = to_chosen / size - to_all
        gain[chosen] = -np.inf
        chosen.append(int(np.argmax(gain)))
        to_chosen += distances([chosen[-1]])[0]
    return np.array(chosen, dtype=np.intp)
