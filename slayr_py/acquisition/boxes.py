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

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slayr_py.space import FloatArray

MOST_OBJECTIVES = 4
"""Number of objectives above which the number of boxes would be too large."""

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
    at_least = np.all(values[:, None] <= values, axis=2)
    better = np.any(values[:, None] < values, axis=2)
    return np.asarray(~np.any(at_least & better, axis=0))


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
    if not len(inside):
        return 0.0
    ideal = inside.min(axis=0)
    lower, upper = non_dominated_boxes(inside, reference)
    left = np.maximum(upper - np.maximum(lower, ideal), 0.0)
    return float(np.prod(reference - ideal) - np.prod(left, axis=1).sum())


def _partition(points: FloatArray, reference: Sequence[float]) -> Iterator[_Box]:
    """Yield the boxes of the region below the reference point that points (n, p) do not dominate."""
    if len(reference) == 1:
        yield (-np.inf,), (float(np.min(points, initial=reference[0])),)
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


def _extended(box: _Box, lower: float, upper: float) -> _Box:
    return (*box[0], lower), (*box[1], upper)
