r"""The non-dominated region of several objectives as disjoint boxes, and hypervolumes.

All objectives are minimised. A point is dominated if another one is at least as good in all objectives and better in
one. The non-dominated region is what lies below the reference point and is dominated by no point of the front. It is
cut into slices at the values of the last objective. In a slice, the points whose last value is not above it decide, by
their other objectives: its region is that of one objective less. A box that is the same in consecutive slices is one
box, so that two objectives have at most n + 1 boxes for n points, and the number grows about like n for three
objectives and n^2 for four (a simple variant of the sweep of Lacour, Klamroth & Fonseca 2017, *Computers & Operations
Research* 79).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slayr_py.space import FloatArray

MOST_OBJECTIVES = 4
"""Number of objectives above which the number of boxes would be too large."""

_BLOCK = 256  # points whose dominance is found together

_Box = tuple[tuple[float, ...], tuple[float, ...]]  # lower and upper corner


class Boxes(NamedTuple):
    """Disjoint boxes.

    Attributes
    ----------
    lower, upper : (k, p) float64
        Corners of k boxes in p objectives; a lower edge may be minus infinity.
    """

    lower: FloatArray
    upper: FloatArray


def non_dominated(values: FloatArray) -> NDArray[np.bool_]:
    """Return which of n points (n, p) no other one dominates, (n,); equal points do not dominate each other."""
    kept = np.zeros(len(values), dtype=np.bool_)
    left = np.lexsort(values.T)  # a point comes after those that dominate it
    if values.shape[1] == 2 and len(left):
        ordered = values[left]
        least = np.minimum.accumulate(ordered[:, 0])
        better = np.append(True, least[1:] < least[:-1])  # not differences: values may be infinite
        last = np.maximum.accumulate(np.where(better, np.arange(len(left)), 0))
        kept[left] = np.all(ordered == ordered[last], axis=1)
        return kept
    front = np.empty(0, dtype=np.intp)
    for i in range(0, len(left), _BLOCK):
        block = left[i : i + _BLOCK]
        block = block[~_dominates(values[front], values[block]).any(axis=0)]
        front = np.concatenate([front, block[~_dominates(values[block], values[block]).any(axis=0)]])
    kept[front] = True
    return kept


def _dominates(a: FloatArray, b: FloatArray) -> NDArray[np.bool_]:
    """Return which of k points (k, p) dominate which of m points (m, p), (k, m)."""
    nowhere_worse = np.ones((len(a), len(b)), dtype=np.bool_)
    somewhere_better = np.zeros((len(a), len(b)), dtype=np.bool_)
    for first, second in zip(a.T, b.T, strict=True):
        nowhere_worse &= first[:, None] <= second
        somewhere_better |= first[:, None] < second
    return nowhere_worse & somewhere_better


def non_dominated_boxes(front: FloatArray, reference: FloatArray) -> Boxes:
    """Cut the non-dominated region of points (n, p) below a reference point (p,) into boxes.

    Points that are not below the reference point in all objectives dominate nothing of the region.
    """
    inside = front[np.all(front < reference, axis=1)]
    lower, upper = zip(*_partition(inside[non_dominated(inside)], tuple(reference)), strict=True)
    return Boxes(np.array(lower, dtype=np.float64), np.array(upper, dtype=np.float64))


def hypervolume(front: FloatArray, reference: FloatArray) -> float:
    """Return the volume that points (n, p) dominate below a reference point (p,)."""
    inside = front[np.all(front < reference, axis=1)]
    return _volume(inside[non_dominated(inside)], reference)


def _volume(points: FloatArray, reference: FloatArray) -> float:
    """Return the volume that points (n, p) below the reference point dominate: a sum over slices as for the boxes."""
    if not len(points):
        return 0.0
    if len(reference) == 1:
        return float(reference[0] - points.min())
    if len(reference) == 2:
        first, second = points[np.argsort(points[:, 0])].T
        heights = reference[1] - np.minimum.accumulate(second)
        return float(np.diff(first, append=reference[0]) @ heights)
    if len(reference) == 3:
        return _volume_of_three(points[np.argsort(points[:, 2], kind="stable")], reference)
    starts = np.unique(points[:, -1])
    ends = [*starts[1:], reference[-1]]
    slices = (points[points[:, -1] <= start, :-1] for start in starts)
    pairs = zip(slices, starts, ends, strict=True)
    return sum(float(end - start) * _volume(below, reference[:-1]) for below, start, end in pairs)


def _volume_of_three(points: FloatArray, reference: FloatArray) -> float:
    """Return the volume that points, in the order of the last objective, dominate below the reference point.

    A sweep along the last objective: each point adds a part to the area that those before it dominate, whose border is
    a staircase (Beume, Fonseca, Lopez-Ibanez, Paquete & Vahrenhold 2009, IEEE Trans. Evol. Comput. 13:5).
    """
    first, second, last = reference.tolist()
    xs: list[float] = []  # ascending corners of the staircase
    ys: list[float] = []  # descending
    area = volume = 0.0
    start = last
    for x, y, z in points.tolist():
        volume += area * (z - start)
        start = z
        i = bisect_right(xs, x)
        height = ys[i - 1] if i else second
        if height <= y:
            continue
        left = x
        end = i
        while end < len(xs) and ys[end] >= y:
            area += (xs[end] - left) * (height - y)
            left, height = xs[end], ys[end]
            end += 1
        area += ((xs[end] if end < len(xs) else first) - left) * (height - y)
        xs[i:end] = [x]
        ys[i:end] = [y]
    return float(volume + area * (last - start))


def _partition(points: FloatArray, reference: Sequence[float]) -> Iterator[_Box]:
    """Yield the boxes of the region below the reference point that points (n, p) do not dominate."""
    if len(reference) == 1:
        yield (-np.inf,), (float(np.min(points, initial=reference[0])),)
        return
    if len(reference) == 2:
        yield from _steps(points, reference)
        return
    open_boxes: dict[_Box, float] = {}  # boxes of the last slice and where they start
    start = -np.inf
    for end in [*np.unique(points[:, -1]).tolist(), float(reference[-1])]:
        slice_boxes = set(_partition(points[points[:, -1] <= start, :-1], reference[:-1]))
        ended = [box for box in open_boxes if box not in slice_boxes]
        for box in ended:
            yield _extended(box, open_boxes.pop(box), start)
        for box in sorted(slice_boxes):
            open_boxes.setdefault(box, start)
        start = end
    for box, first in open_boxes.items():
        yield _extended(box, first, start)


def _steps(points: FloatArray, reference: Sequence[float]) -> Iterator[_Box]:
    """Yield the boxes of two objectives, between consecutive values of the second one."""
    sorted_points = points[np.lexsort(points.T)]
    best = np.minimum.accumulate(sorted_points[:, 0])
    corners = sorted_points[np.diff(best, prepend=np.inf) < 0]
    first = [float(reference[0]), *corners[:, 0].tolist()]
    second = [-np.inf, *corners[:, 1].tolist(), float(reference[1])]
    for x, low, high in zip(first, second[:-1], second[1:], strict=True):
        yield (-np.inf, low), (x, high)


def _extended(box: _Box, lower: float, upper: float) -> _Box:
    return (*box[0], lower), (*box[1], upper)
