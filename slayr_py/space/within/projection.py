"""Move configurations into constraints on inputs, and find the moves that stay inside.

Symbols
-------
n, D, K, numbers, s : as in :mod:`slayr_py.space.within.region`.
C : parameters that move. E (p, C), G (q, C) : gradients of equalities and of inequalities by s.
curved (C,) : logarithmic parameters that have their unit values instead of s.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from slayr_py.space.dimension import FloatArray
from slayr_py.space.rules import BoolArray
from slayr_py.space.within.nearest import nearest, nearest_each
from slayr_py.space.within.region import TOLERANCE, Region

_LINEAR_STEPS = 2  # the second one mends rounding errors of the first
_NEWTON_STEPS = 100  # an exponential function needs one for each unit of its argument
_NO_ROOM = 1e-6  # of the scale of a constraint: violations that margins may cause
_PROGRESS = 0.7  # factor below which a step reduces the violation enough
_PATIENCE = 4  # steps without enough progress until a row is given up
_FAR = 1e-3  # of the scale of a constraint: slack from which the tangent of a constraint is ignored
_AT_BOUND = 1e-6  # unit values that close to a bound count as there: margins keep a corner from being reached exactly
_NEAR = 100  # tolerances or margins within which an inequality counts as active


def repair(region: Region, numbers: FloatArray, active: BoolArray, movable: BoolArray) -> FloatArray:
    """Return numbers (n, D) in which the comparisons hold, the nearest ones in s if all of them are linear.

    Rows that satisfy the comparisons do not change. A row that cannot be repaired stays outside. Comparisons that are
    not linear are replaced by their tangents, again at each new point (Newton's method). Functions are not called.

    Parameters
    ----------
    movable : (n, D) bool
        Parameters that may change, all of them real and active.
    """
    region = region.comparisons
    repaired = numbers.copy()
    outside = _move(region, repaired, active, movable, np.flatnonzero(~region.holds(numbers, active)), 1.0)
    # Opposite constraints or bounds may leave no room for margins.
    close = outside[_violation(region, repaired[outside], active[outside]) < _NO_ROOM]
    _move(region, repaired, active, movable, close, 0.0)
    return repaired


def _move(
    region: Region,
    repaired: FloatArray,
    active: BoolArray,
    movable: BoolArray,
    outside: NDArray[np.intp],
    margin: float,
) -> NDArray[np.intp]:
    """Change the rows ``outside`` as `repair` does, in place, and return those that are still outside.

    ``margin`` is a factor on the margins to the borders of inequalities.
    """
    given_up: list[NDArray[np.intp]] = []
    least = np.full(len(repaired), np.inf)
    stalled = np.zeros(len(repaired), dtype=np.intp)
    straight = all(c.is_linear for c in region.constraints)
    for _ in range(_LINEAR_STEPS if straight else _NEWTON_STEPS):
        if not len(outside):
            break
        for rows, columns in groups(region, active, movable, outside):
            moved = _step(region, repaired[rows], active[rows], columns, margin)
            known = np.isfinite(moved).all(axis=1)
            repaired[np.ix_(rows[known], columns)] = moved[known]
        outside = outside[~region.holds(repaired[outside], active[outside])]
        violation = _violation(region, repaired[outside], active[outside])
        stalled[outside] = np.where(violation < _PROGRESS * least[outside], 0, stalled[outside] + 1)
        least[outside] = np.minimum(least[outside], violation)
        given_up.append(outside[stalled[outside] >= _PATIENCE])
        outside = outside[stalled[outside] < _PATIENCE]
    return np.concatenate([*given_up, outside])


def _violation(region: Region, numbers: FloatArray, active: BoolArray) -> FloatArray:
    """Return the largest violation of a comparison on its scale, (n,)."""
    return np.asarray((region.excess(numbers, active) / region.scales).max(axis=1, initial=0.0))


def groups(
    region: Region, active: BoolArray, movable: BoolArray, rows: NDArray[np.intp]
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield rows with the same constraints and moving columns, and these columns."""
    applies = region.applies(active[rows])
    moving = movable[rows] & (applies[:, :, None] & region.readers).any(axis=1)
    _, group = np.unique(np.column_stack([applies, moving]), axis=0, return_inverse=True)
    for number in range(int(group.max(initial=-1)) + 1):
        chosen = np.flatnonzero(group.ravel() == number)
        columns = np.flatnonzero(moving[chosen[0]])
        if len(columns):
            yield rows[chosen], columns


def _step(
    region: Region, numbers: FloatArray, active: BoolArray, columns: NDArray[np.intp], margin: float
) -> FloatArray:
    """Return the nearest numbers (n, C) in the linear constraints and the tangents of the others; NaN if unknown.

    All rows have the same constraints. The gradients of linear ones are the same too, so they are moved together.
    """
    applies = region.applies(active[:1])[0]
    used = np.flatnonzero(applies)
    if all(region.constraints[k].is_linear for k in used):
        values, normals = linearise(region, numbers, active, columns)
        is_equality = np.array([region.constraints[k].is_equality for k in used], dtype=np.bool_)
        equal, below = used[is_equality], used[~is_equality]
        s = region.scaled(numbers, columns)
        margins = margin * _margins(region, numbers, normals, columns)[:, below]
        moved = nearest(s, normals[0, equal], values[:, equal], normals[0, below], values[:, below] + margins)
        # Bounds may leave no room for a margin.
        rows = np.flatnonzero(np.isnan(moved).any(axis=1) & margins.any(axis=1))
        left = values[rows]
        moved[rows] = nearest(s[rows], normals[0, equal], left[:, equal], normals[0, below], left[:, below])
        return region.unscaled(np.clip(moved, 0.0, 1.0), columns)
    straight = np.zeros(len(columns), dtype=np.bool_)
    moved = _tangent_step(region, numbers, active, columns, used, straight, margin)
    curved = region.logs_of(columns, linear=False)
    if not curved.any():
        return moved
    # A logarithm is straight in unit values, a product in s: take the better step, at a tie the former.
    other = _tangent_step(region, numbers, active, columns, used, curved, margin)
    left, left_by_other = (_violation_after(region, numbers, active, columns, each) for each in (moved, other))
    better = np.flatnonzero(left_by_other <= left)
    moved[better] = other[better]
    return moved


def _violation_after(
    region: Region, numbers: FloatArray, active: BoolArray, columns: NDArray[np.intp], moved: FloatArray
) -> FloatArray:
    """Return the violation (n,) after a step; infinite without a step."""
    known = np.asarray(np.isfinite(moved).all(axis=1))
    after = numbers.copy()
    after[:, columns] = np.where(known[:, None], moved, after[:, columns])
    return np.where(known, _violation(region, after, active), np.inf)


def _tangent_step(
    region: Region,
    numbers: FloatArray,
    active: BoolArray,
    columns: NDArray[np.intp],
    used: NDArray[np.intp],
    curved: BoolArray,
    margin: float,
) -> FloatArray:
    """Return the nearest numbers (n, C) in the tangents of constraints by s, of ``curved`` columns by unit values."""
    values, normals = linearise(region, numbers, active, columns)
    margins = _margins(region, numbers, normals, columns)
    slopes = region.unit_steps(numbers)[:, columns] / region.width[columns]
    with np.errstate(over="ignore", invalid="ignore"):
        normals *= np.where(curved, slopes, 1.0)[:, None, :]
    names = {region.dimensions[j].name for j in columns[curved]}
    straight = np.array([c.is_linear and not names.intersection(c.names) for c in region.constraints])
    is_equality = np.array([c.is_equality for c in region.constraints])
    margins = np.maximum(margins, np.where(straight, 0.0, 0.5 * TOLERANCE))
    right = values + np.where(is_equality, 0.0, margin * margins)
    near = is_equality | straight | (values > -_FAR * region.scales)
    s = region.scaled(numbers, columns, curved)
    moved = nearest_each(s, normals[:, used], right[:, used], is_equality[used], near[:, used])
    return region.unscaled(np.clip(moved, 0.0, 1.0), columns, curved)


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
        if not len(rows):
            continue
        values[rows, k], slopes = region.evaluate(constraint, numbers[rows], active[rows])
        for name, slope in slopes.items():
            j = region.position.get(name)
            if j in place:
                with np.errstate(over="ignore"):
                    normals[rows, k, place[j]] = slope * region.width[j]
    return values, normals


def _margins(region: Region, numbers: FloatArray, normals: FloatArray, columns: NDArray[np.intp]) -> FloatArray:
    """Return the slack (n, K) with which inequalities survive the rounding of numbers; 0 below the tolerance.

    Parameters
    ----------
    normals : (n, K, C) float64
        Gradients by s of the columns, which are rounded.
    """
    steps = region.rounding(numbers)[:, columns] / region.width[columns]
    with np.errstate(over="ignore"):
        errors = np.einsum("nkc,nc->nk", np.abs(normals), steps)
    return np.where(errors > TOLERANCE, errors, 0.0)


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
    region = region.comparisons
    width = gradients.shape[1]
    values, normals = linearise(region, numbers, active, np.arange(width))
    margins = _margins(region, numbers, normals, np.arange(width))
    normals *= (region.unit_steps(numbers) / region.width)[:, None, :]
    equal = np.array([c.is_equality for c in region.constraints], dtype=np.bool_)
    near = values > -_NEAR * np.maximum(margins, TOLERANCE)
    projectors = np.zeros((len(units), width, width))
    for row, gradient in enumerate(gradients):
        moving = np.flatnonzero(gradient != 0)
        at = units[row, moving]
        low, high = at <= _AT_BOUND, at >= 1 - _AT_BOUND
        ends = np.diag(np.where(low, -1.0, 1.0))[low | high]
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
