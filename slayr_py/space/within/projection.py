"""Move configurations into constraints on inputs, and find the moves that stay inside.

Symbols
-------
n, D, K, numbers, s : as in :mod:`slayr_py.space.within.region`.
C : parameters that move. E (p, C), G (q, C) : gradients of equalities and of inequalities by s.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space
from scipy.optimize import nnls

from slayr_py.space.dimension import FloatArray
from slayr_py.space.rules import BoolArray
from slayr_py.space.within.region import Region

_NEWTON_STEPS = 15
_INSIDE = 1e-15  # of a coordinate in [0, 1]
_EMPTY = 1e-12  # a smaller distance of a target from the cone of the faces means that there is no point
_FAR = 1e-3  # of the scale of a constraint: slack from which the tangent of a constraint is ignored
_NEAR = 100  # tolerances from which an inequality counts as active


def repair(region: Region, numbers: FloatArray, active: BoolArray, movable: BoolArray) -> FloatArray:
    """Return numbers (n, D) in which the constraints hold, the nearest ones in s if all of them are linear.

    Rows that satisfy the constraints do not change. A row that cannot be repaired stays outside. Constraints that are
    not linear are replaced by their tangents, again at each new point (Newton's method).

    Parameters
    ----------
    movable : (n, D) bool
        Parameters that may change, all of them real and active.
    """
    repaired = numbers.copy()
    outside = np.flatnonzero(~region.holds(numbers, active))
    for _ in range(_NEWTON_STEPS):
        for rows, columns in groups(region, repaired, active, movable, outside):
            moved = _step(region, repaired[rows], active[rows], columns)
            known = np.isfinite(moved).all(axis=1)
            repaired[np.ix_(rows[known], columns)] = region.unscaled(np.clip(moved[known], 0.0, 1.0), columns)
        holds = region.holds(repaired[outside], active[outside])
        outside = outside[~holds]
        if not len(outside) or all(c.is_linear or not c.has_slopes for c in region.constraints):
            break
    return repaired


def groups(
    region: Region, numbers: FloatArray, active: BoolArray, movable: BoolArray, rows: NDArray[np.intp]
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield rows with the same constraints and moving columns, and these columns."""
    applies = region.applies(active[rows])
    readers = np.array([[d.name in c.names for d in region.dimensions] for c in region.constraints])
    moving = movable[rows] & (applies[:, :, None] & readers).any(axis=1)
    _, group = np.unique(np.column_stack([applies, moving]), axis=0, return_inverse=True)
    for number in range(int(group.max(initial=-1)) + 1):
        chosen = np.flatnonzero(group.ravel() == number)
        columns = np.flatnonzero(moving[chosen[0]])
        if len(columns):
            yield rows[chosen], columns


def _step(region: Region, numbers: FloatArray, active: BoolArray, columns: NDArray[np.intp]) -> FloatArray:
    """Return the nearest s (n, C) in the linear constraints and the tangents of the others; NaN without any.

    All rows have the same constraints. The gradients of linear ones are the same too, so they are moved together.
    """
    values, normals = linearise(region, numbers, active, columns)
    used = [k for k, c in enumerate(region.constraints) if c.has_slopes and region.applies(active[:1])[0, k]]
    equal = [k for k in used if region.constraints[k].is_equality]
    below = [k for k in used if not region.constraints[k].is_equality]
    margin = np.array([0.0 if region.constraints[k].is_linear else 0.5 * region.tolerances[k] for k in below])
    s = region.scaled(numbers)[:, columns]
    if all(region.constraints[k].is_linear for k in used):
        return nearest(s, normals[0, equal], values[:, equal], normals[0, below], values[:, below])
    farthest = np.array([-np.inf if region.constraints[k].is_linear else -_FAR * region.scales[k] for k in below])
    moved = np.full(s.shape, np.nan)
    for row in range(len(s)):
        if np.isfinite(normals[row]).all() and np.isfinite(values[row]).all():
            near = values[row, below] > farthest
            some = np.array(below, dtype=np.intp)[near]
            excess = values[[row]][:, some] + margin[near]
            at = values[[row]][:, equal]
            moved[row] = nearest(s[[row]], normals[row, equal], at, normals[row, some], excess)[0]
    return moved


def linearise(
    region: Region, numbers: FloatArray, active: BoolArray, columns: NDArray[np.intp]
) -> tuple[FloatArray, FloatArray]:
    """Return the differences of the constraints, (n, K), and their gradients by s of some columns, (n, K, C)."""
    applies = region.applies(active)
    values = np.zeros((len(numbers), len(region.constraints)))
    normals = np.zeros((len(numbers), len(region.constraints), len(columns)))
    place = {int(j): i for i, j in enumerate(columns)}
    for k, constraint in enumerate(region.constraints):
        rows = np.flatnonzero(applies[:, k])
        if not constraint.has_slopes or not len(rows):
            continue
        values[rows, k], slopes = region.evaluate(constraint, numbers[rows], active[rows])
        for name, slope in slopes.items():
            j = region.position.get(name)
            if j in place:
                normals[rows, k, place[j]] = slope * region.width[j]
    return values, normals


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


def along_faces(
    region: Region,
    numbers: FloatArray,
    units: FloatArray,
    gradients: FloatArray,
    active: BoolArray,
) -> FloatArray:
    """Return projectors (n, D, D) on the moves of unit values that stay on the faces at which gradients push.

    Parameters
    ----------
    units : (n, D) float64
        Unit values of the numbers.
    gradients : (n, D) float64
        Of a function that is maximised, by the unit values; 0 for parameters that do not move.
    """
    width = gradients.shape[1]
    values, normals = linearise(region, numbers, active, np.arange(width))
    normals *= (region.unit_steps(numbers) / region.width)[:, None, :]
    equal = np.array([c.is_equality for c in region.constraints])
    near = values > -_NEAR * region.tolerances
    projectors = np.zeros((len(units), width, width))
    for row, gradient in enumerate(gradients):
        moving = np.flatnonzero(gradient != 0)
        at = units[row, moving]
        ends = np.diag(np.where(at <= 0, -1.0, 1.0))[(at <= 0) | (at >= 1)]
        of_row = normals[row][:, moving]
        pushing = near[row] & of_row.any(axis=1)
        active_rows = np.vstack([of_row[pushing & ~equal], ends])
        projectors[row][np.ix_(moving, moving)] = _projector(gradient[moving], of_row[pushing & equal], active_rows)
    return projectors


def _projector(gradient: FloatArray, equalities: FloatArray, active: FloatArray) -> FloatArray:
    """Return the projector (d, d) on the moves that keep equalities and active inequalities at their limits.

    An inequality is left out if the gradient points away from it (its multiplier is negative): moves may leave it.
    """
    identity = np.eye(len(gradient))
    working = list(range(len(active)))
    while True:
        rows = np.vstack([equalities, active[working]])
        if not len(rows):
            return identity
        inverse = np.linalg.pinv(rows)
        multipliers = (gradient @ inverse)[len(equalities) :]
        if not len(multipliers) or multipliers.min() >= 0:
            return np.asarray(identity - inverse @ rows)
        del working[int(np.argmin(multipliers))]


def _normalised(rows: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    lengths = np.linalg.norm(rows, axis=1)
    kept = lengths > 0
    return rows[kept] / lengths[kept, None], right[:, kept] / lengths[kept]
