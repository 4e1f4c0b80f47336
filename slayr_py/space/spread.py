"""Choose a few points that represent many."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slayr_py.space.dimension import FloatArray


def spread(points: FloatArray, n: int) -> NDArray[np.intp]:
    """Return the rows of ``n`` of the points (m, d) that represent all of them, the most representative first.

    Each point has the smallest energy distance of the points so far from all points, one at a time: kernel herding with
    the kernel -||x - x'|| (Mak & Joseph 2018, Ann. Stat. 46). A longer choice starts with a shorter one.
    """
    squares = np.square(points).sum(axis=1)
    to_all = np.zeros(len(points))
    for start in range(0, len(points), 256):
        block = points[start : start + 256]
        distances = np.sqrt(np.maximum(squares[start : start + 256, None] + squares - 2 * block @ points.T, 0.0))
        to_all[start : start + 256] = distances.mean(axis=1)
    to_chosen = np.zeros(len(points))
    chosen: list[int] = []
    for size in range(1, n + 1):
        gain = to_chosen / size - to_all
        gain[chosen] = -np.inf
        chosen.append(int(np.argmax(gain)))
        to_chosen += np.linalg.norm(points - points[chosen[-1]], axis=1)
    return np.array(chosen, dtype=np.intp)
