"""Draw configurations that satisfy constraints on inputs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from slayr_py.space.dimension import FloatArray
from slayr_py.space.rules import BoolArray
from slayr_py.space.within.hit_and_run import Inside, hit_and_run
from slayr_py.space.within.polytope import Polytope
from slayr_py.space.within.projection import groups, linearise, repair
from slayr_py.space.within.region import Region

_MOST_ROUNDED = 200  # rows whose integers are rounded one by one
_HALF = 0.499  # of an integer's step, by which it may exceed its bounds before it is rounded
_REPAIRED = 20  # configurations that are moved to find out whether a constraint can hold


def draw(
    region: Region, numbers: FloatArray, active: BoolArray, movable: BoolArray, rng: np.random.Generator
) -> FloatArray:
    """Return numbers (n, D) whose movable parameters are drawn from a region, given the others.

    They are uniform in unit values. Integers are drawn as numbers and rounded. Rows for which no point exists stay
    outside, and so do some rows if functions or equalities that are not linear are among the constraints.
    """
    region = region.comparisons
    drawn = numbers.copy()
    for together, columns in groups(region, active, movable, np.arange(len(numbers))):
        others = np.setdiff1d(np.flatnonzero(region.read), columns)
        _, known = np.unique(numbers[np.ix_(together, others)], axis=0, return_inverse=True)
        for number in range(int(known.max(initial=-1)) + 1):
            rows = together[known.ravel() == number]
            # Draws are uniform in unit values, in which chains mix best unless a linear constraint is curved there.
            curved = region.logs_of(columns, linear=False) & ~region.logs_of(columns, linear=True)
            found = _polytope(region, numbers[rows[:1]], active[rows[:1]], columns, curved).interior
            if found is None:
                continue
            inside = _inside(region, numbers[rows], active[rows], columns, curved)
            points = hit_and_run(*found, len(rows), rng, inside, _log_density(region, columns, curved))
            drawn[np.ix_(rows, columns)] = region.unscaled(points, columns, curved)
    return _rounded(region, drawn, active, movable, rng)


def integer_exchanges(region: Region) -> list[tuple[list[int], FloatArray]]:
    """Return the steps of two integers that keep a linear equality: their columns, and the changes of unit values."""
    region = region.comparisons
    middle = np.array([[0.5 * (d.lower + d.upper) for d in region.dimensions]])
    everything = np.ones(middle.shape, dtype=np.bool_)
    normals = linearise(region, middle, everything, np.arange(middle.shape[1]))[1][0] / region.width
    found = []
    for constraint, row in zip(region.constraints, normals, strict=True):
        whole = [j for j, d in enumerate(region.dimensions) if d.kind == "integer" and d.is_linear and row[j] != 0]
        for j, k in permutations(whole, 2):
            step = -row[j] / row[k]
            if constraint.is_linear and constraint.is_equality and abs(step - round(step)) < 1e-9:
                changes = np.array([1.0, round(step)]) / region.width[[j, k]]
                found += [([j, k], changes), ([j, k], -changes)]
    return found


def why_empty(region: Region, numbers: FloatArray, active: BoolArray, free: BoolArray) -> str:
    """Describe why no configuration (n, D) of many satisfies the constraints: which of them cannot hold.

    The ``free`` parameters, (D,), are those with neither a fixed value nor one of a list.
    """
    never = np.flatnonzero(region.violated(numbers, active).all(axis=0)).tolist()
    some = slice(_REPAIRED)
    for k in never:
        alone = region.only([k])
        constraint = region.constraints[k]
        if constraint.has_slopes:
            movable = active[some] & region.real & alone.read & free
            excludes_all = not alone.holds(repair(alone, numbers[some], active[some], movable), active[some]).any()
        else:  # it was called only where the comparisons hold
            excludes_all = bool(region.comparisons.holds(numbers, active).any())
        if excludes_all:
            bounds = ", ".join(region.bounds_text(name) for name in constraint.names)
            return f"{_none(alone)} {constraint.text!r}{f' with {bounds}' * bool(bounds)}; loosen it"
    texts = region.texts
    loosen = region.constraints[never[0]].text if never else texts[0]
    together = " together" * (len(texts) > 1)
    return f"{_none(region)} {' and '.join(map(repr, texts))}{together}; loosen {loosen!r}"


def _none(region: Region) -> str:
    """Return the start of a message: functions might allow a configuration that no draw has met."""
    return "no configuration was found that satisfies" if region.functions.constraints else "no configuration satisfies"


def _polytope(
    region: Region, numbers: FloatArray, active: BoolArray, columns: NDArray[np.intp], curved: BoolArray
) -> Polytope:
    """Return the polytope of the linear constraints in s, given the other numbers of a configuration (1, D).

    No linear constraint reads the ``curved`` columns (C,), which have unit values instead.
    """
    values, normals = linearise(region, numbers, active, columns)
    s = region.scaled(numbers, columns, curved)[0]
    right = normals[0] @ s - values[0]
    applies = region.applies(active)[0]
    linear = np.array([c.is_linear for c in region.constraints]) & applies
    equal = np.array([c.is_equality for c in region.constraints])
    whole = np.array([region.dimensions[j].kind == "integer" for j in columns])
    beyond = np.where(whole, _HALF / region.width[columns], 0.0)
    bounds = np.column_stack([-beyond, 1 + beyond])
    return Polytope.of(
        normals[0, linear & equal], right[linear & equal], normals[0, linear & ~equal], right[linear & ~equal], bounds
    )


def _inside(
    region: Region, numbers: FloatArray, active: BoolArray, columns: NDArray[np.intp], curved: BoolArray
) -> Inside | None:
    """Return the function of points that tells whether inequalities that are not linear hold; None without any."""
    bent = [k for k, c in enumerate(region.constraints) if not c.is_equality and not c.is_linear]
    if not bent:
        return None
    applies = region.applies(active)

    def inside(points: FloatArray, chains: NDArray[np.intp]) -> BoolArray:
        full = numbers[chains]
        full[:, columns] = region.unscaled(points, columns, curved)
        good = np.ones(len(points), dtype=np.bool_)
        for k in bent:
            value = region.evaluate(region.constraints[k], full, active[chains])[0]
            good &= (value <= 0) | ~applies[chains, k]
        return good

    return inside


def _log_density(
    region: Region, columns: NDArray[np.intp], curved: BoolArray
) -> Callable[[FloatArray], FloatArray] | None:
    """Return the log density in s of points that are uniform in unit values; None if it is constant."""
    dimensions = [region.dimensions[j] for j in columns]
    log = np.array([d.is_real and not d.is_linear for d in dimensions]) & ~curved
    if not log.any():
        return None
    shifts = np.array([d.shift for d in dimensions])
    return lambda points: -np.log((region.unscaled(points, columns) + shifts)[:, log]).sum(axis=1)


def _rounded(
    region: Region, drawn: FloatArray, active: BoolArray, movable: BoolArray, rng: np.random.Generator
) -> FloatArray:
    """Round integers; where the floats cannot make up for it, round one after the other and move the rest."""
    whole = np.array([d.kind == "integer" for d in region.dimensions]) & region.read
    if not whole.any():
        return drawn
    rounded = np.where(whole, np.rint(drawn), drawn)
    outside = ~region.holds(repair(region, rounded, active, movable & ~whole), active)
    rows = np.flatnonzero(outside)[:_MOST_ROUNDED]
    at = drawn[rows]
    free = movable[rows].copy()
    for j in rng.permutation(np.flatnonzero(whole)):
        at[:, j] = np.rint(at[:, j])
        free[:, j] = False
        at = repair(region, at, active[rows], free)
    rounded[rows] = np.where(whole, np.rint(at), at)
    return rounded
