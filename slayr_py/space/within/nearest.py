"""Nearest points to given ones in polytopes: in one polytope, and in one for each point.

Symbols
-------
n, C, s, E, G : as in :mod:`slayr_py.space.within.projection`. K : constraints.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import nnls

from slayr_py.space.dimension import FloatArray
from slayr_py.space.rules import BoolArray

_INSIDE = 1e-15  # of a coordinate in [0, 1]
_EMPTY = 1e-12  # a smaller distance of a target from the cone of the faces means that there is no point


def nearest(
    s: FloatArray, equalities: FloatArray, differences: FloatArray, inequalities: FloatArray, excess: FloatArray
) -> FloatArray:
    """Return the nearest points (n, C) to s with E s' = E s - difference, G s' <= G s - excess and 0 <= s' <= 1.

    The null space removes the equalities. The rest is least distance programming, which non-negative least squares
    solve (Lawson & Hanson 1974, chapter 23). Rows are NaN if there is no such point.

    Parameters
    ----------
    s : (n, C) float64
    equalities, inequalities : (p, C) and (q, C) float64
        E and G.
    differences, excess : (n, p) and (n, q) float64
    """
    width = s.shape[1]
    rows, differences = _normalised(equalities, differences)
    faces, excess = _normalised(inequalities, excess)
    identity = np.eye(width)
    start = s - differences @ np.linalg.pinv(rows).T if len(rows) else s.copy()
    faces = np.vstack([faces, identity, -identity])
    excess = np.hstack([excess + (start - s) @ faces[: excess.shape[1]].T, start - 1.0, -start])
    outside = np.flatnonzero((excess > _INSIDE).any(axis=1))
    if not len(outside):
        return start
    basis = null_space(rows) if len(rows) else identity
    system = np.vstack([-(faces @ basis).T, np.zeros((1, len(faces)))])
    target = np.zeros(len(system))
    target[-1] = 1.0
    for row in outside:
        system[-1] = excess[row]
        weights, distance = nnls(system, target)
        residual = system @ weights - target
        if distance < _EMPTY or residual[-1] > -(_EMPTY**2):
            start[row] = np.nan
        else:
            start[row] += basis @ (-residual[:-1] / residual[-1])
    return start


def nearest_each(
    s: FloatArray, rows: FloatArray, right: FloatArray, is_equality: BoolArray, near: BoolArray
) -> FloatArray:
    """Return the nearest points (n, C) as :func:`nearest` does, for n points with constraints of their own.

    The constraints that a point violates are taken as equalities for all points at once, and bounds beyond which a
    coordinate moves are added. Where multipliers and slacks show that this is not the nearest point, it is searched.
    If there is none, the point moves towards the constraints up to the bounds. Rows with gradients that are not finite
    are NaN.

    Parameters
    ----------
    s : (n, C) float64
    rows, right : (n, K, C) and (n, K) float64
        Gradients, and differences of equalities or excess of inequalities.
    is_equality : (K,) bool
    near : (n, K) bool
        Constraints that are used.
    """
    moved = np.full(s.shape, np.nan)
    finite = np.flatnonzero(np.isfinite(rows).all(axis=(1, 2)) & np.isfinite(right).all(axis=1))
    s, rows, right, near = s[finite], rows[finite], right[finite], near[finite]
    largest = np.abs(rows).max(axis=2, initial=0.0)
    near = near & (largest > 0)
    largest = np.where(near, largest, 1.0)
    rows = np.where(near[:, :, None], rows / largest[:, :, None], 0.0)  # first, since squares of gradients may overflow
    lengths = np.where(near, np.linalg.norm(rows, axis=2), 1.0)
    rows = rows / lengths[:, :, None]
    right = np.where(near, right / largest / lengths, 0.0)
    working = near & (is_equality | (right > 0))
    active = rows * working[:, :, None]
    step = np.zeros(s.shape)
    free = np.ones(s.shape, dtype=np.bool_)
    for _ in range(s.shape[1] + 1):
        inverse = np.linalg.pinv(active * free[:, None, :])
        left = right * working + np.einsum("nkc,nc->nk", active, np.where(free, 0.0, step))
        step = np.where(free, -np.einsum("nck,nk->nc", inverse, left), step)
        beyond = free & ((s + step < 0) | (s + step > 1))
        if not beyond.any():
            break
        step = np.where(beyond, np.clip(s + step, 0.0, 1.0) - s, step)
        free &= ~beyond
    # Conditions of Karush, Kuhn and Tucker, with multipliers m of constraints and b of bounds: step + A'm + b = 0
    inverse = np.linalg.pinv(active * free[:, None, :])
    multipliers = -np.einsum("nck,nc->nk", inverse, np.where(free, step, 0.0))
    of_bounds = np.where(free, 0.0, -step - np.einsum("nkc,nk->nc", active, multipliers))
    outwards = np.where(s + step > 0.5, of_bounds, -of_bounds)
    excess = right + np.einsum("nkc,nc->nk", rows, step)
    optimal = (outwards >= -_EMPTY).all(axis=1) & (multipliers >= -_EMPTY)[:, ~is_equality].all(axis=1)
    optimal &= (np.where(is_equality, np.abs(excess), excess) <= _EMPTY).all(axis=1)
    moved[finite[optimal]] = (s + step)[optimal]
    for row in np.flatnonzero(~optimal):
        equal, below = near[row] & is_equality, near[row] & ~is_equality
        point = nearest(s[[row]], rows[row, equal], right[[row]][:, equal], rows[row, below], right[[row]][:, below])
        # Without such a point, go as far as the bounds let: the tangents there may have one.
        moved[finite[row]] = point[0] if np.isfinite(point).all() else np.clip(s[row] + step[row], 0.0, 1.0)
    return moved


def _normalised(rows: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    lengths = np.linalg.norm(rows, axis=1)
    kept = lengths > 0
    return rows[kept] / lengths[kept, None], right[:, kept] / lengths[kept]
