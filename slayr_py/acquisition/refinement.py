"""Local maximisation from many configurations at once, by gradient steps and discrete steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slayr_py.acquisition.ascent import Ascent
from slayr_py.acquisition.domain import domain_of
from slayr_py.acquisition.landscape import Landscape
from slayr_py.acquisition.neighbourhood import Neighbourhood
from slayr_py.space import FloatArray

_ROUNDS = 1000  # only ends a search that does not converge
_SMALL = 0.01  # of the range of an integer: steps below it are doubled
_ROUNDING = 1e-9  # of the number of steps to a bound


class Reached(NamedTuple):
    """Local maxima.

    Attributes
    ----------
    genotypes : (m, D) float64
    values : (m,) float64
        Never smaller than the value at the start.
    curvature : (m, D, D) float64
        Estimates of minus the inverse Hessians.
    """

    genotypes: FloatArray
    values: FloatArray
    curvature: FloatArray


def refine(landscape: Landscape, starts: FloatArray, gain: float, curvature: FloatArray | None = None) -> Reached:
    """Maximise a landscape from genotypes (m, D) until no step improves it.

    Integers move continuously first. If the result of a start has a lower value after rounding them, the start replaces
    it. Then all continue with discrete steps.

    Parameters
    ----------
    landscape : Landscape
    starts : (m, D) float64
    gain : float
        Least gain of the value in a step to continue.
    curvature : (m, D, D) float64, optional
        Of an earlier search that ended at these starts, under other draws.
    """
    relaxed = landscape.relax()
    if np.any(relaxed.continuous != landscape.continuous):
        between = _alternate(relaxed, starts, gain, curvature).genotypes
        better = landscape.values(between) >= landscape.values(starts)
        starts = np.where(better[:, None], between, starts)
    return _alternate(landscape, starts, gain, curvature)


def _alternate(landscape: Landscape, starts: FloatArray, gain: float, curvature: FloatArray | None) -> Reached:
    """Take quasi-Newton steps while they improve a start, then a discrete step, and repeat.

    A discrete step evaluates every neighbour, hundreds of them if categories have many levels, so it is taken only
    after the continuous steps have converged.
    """
    neighbourhood = Neighbourhood(landscape.encoder)
    ascent = Ascent(landscape.values_and_gradients, starts, domain_of(landscape), gain, curvature)
    moving = np.arange(len(starts))
    for _ in range(_ROUNDS):
        arrived = moving[ascent.advance(moving)]
        before = ascent.values[arrived]
        _hop(landscape, neighbourhood, ascent, arrived, gain)
        moving = np.setdiff1d(moving, arrived[~(ascent.values[arrived] > before + gain)])
        if not len(moving):
            break
    return Reached(ascent.points, ascent.values, ascent.curvature)


def _hop(
    landscape: Landscape, neighbourhood: Neighbourhood, ascent: Ascent, rows: NDArray[np.intp], gain: float
) -> None:
    """Move each of these climbers to its best discrete neighbour, if it has a larger value."""
    if landscape.continuous.all() or not len(rows):
        return
    encoded, _ = landscape.place(ascent.points[rows])
    owners, neighbours = neighbourhood.of(ascent.points[rows], encoded.active & landscape.free & ~landscape.continuous)
    values = landscape.values(neighbours)
    owners, best = _best(owners, values)
    better = values[best] > ascent.values[rows[owners]] + gain
    owners, best = owners[better], best[better]
    reached = _stride(landscape, ascent.points[rows[owners]], neighbours[best], values[best])
    ascent.put(rows[owners], reached)


def _stride(landscape: Landscape, points: FloatArray, neighbours: FloatArray, values: FloatArray) -> FloatArray:
    """Return the best points (k, D) at 1, 2, 4, ... times the step from each point to its neighbour.

    The values (k,) are those of the neighbours. Only integers of many values have longer steps: where a border stops
    the continuous search, they may be thousands of steps from their best value.
    """
    steps = neighbours - points
    encoder = landscape.encoder
    integer = ~np.any(steps[:, [not d.is_real for d in encoder.dimensions] | encoder.listed], axis=1)
    long = integer & (np.abs(steps).max(axis=1) < _SMALL)
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.min(np.where(steps == 0, np.inf, np.where(steps > 0, 1 - points, -points) / steps), axis=1)
    doublings = np.where(long, np.log2(np.maximum(room + _ROUNDING, 1.0)), 0.0).astype(np.intp)
    rows = np.repeat(np.arange(len(points)), doublings)
    if not len(rows):
        return neighbours
    powers = np.arange(len(rows)) - np.repeat(np.cumsum(doublings) - doublings, doublings) + 1
    encoded, _ = landscape.place(points[rows] + 2.0 ** powers[:, None] * steps[rows])
    farther = np.where(steps[rows] != 0, encoded.unit_values, points[rows])
    _, best = _best(np.append(np.arange(len(points)), rows), np.append(values, landscape.values(farther)))
    return np.concatenate([neighbours, farther])[best]


def _best(owners: NDArray[np.intp], values: FloatArray) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the owners of values (n,), each once, and the first row with the largest value of each."""
    order = np.argsort(-values, kind="stable")
    found, first = np.unique(owners[order], return_index=True)
    return found, order[first]
