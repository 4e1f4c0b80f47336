"""Draw points of a polytope by hit and run (Smith 1984, Oper. Res. 32), many chains side by side.

A chain moves along a random line to a uniform point of the part inside the polytope. If a point is outside of further
constraints, the part shrinks to the present point and another one is drawn, as in slice sampling (Neal 2003, Ann. Stat.
31): the uniform distribution stays invariant. Chains first move without the further constraints, so that they hit the
region nearly independently of their start. After the first third of the later steps, chains without a point inside go
on from those of others, and directions follow the covariance of the chains, so that long and thin regions are crossed
in a few steps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from slayr_py.space.dimension import FloatArray
from slayr_py.space.within.polytope import Polytope

_STEPS = 30  # of a chain, plus some for each coordinate; chosen by hand
_STEPS_PER_COORDINATE = 6  # steps change one direction at a time
_SHRINKAGES = 6  # of a line towards the current point, after which a chain stays where it is
_HITS = 20  # least number of chains inside for others to join them; of fewer than 40 chains, a half
_HIT_SHARE = 0.03  # and their least share: copies of fewer do not part in thin regions; both chosen by hand
_PARALLEL = 1e-12  # a line with a smaller slope to a face does not reach it

Inside = Callable[[FloatArray, NDArray[np.intp]], NDArray[np.bool_]]
"""Whether points (k, d) of the chains with these numbers (k,) satisfy the further constraints."""


def hit_and_run(
    polytope: Polytope,
    start: FloatArray,
    count: int,
    rng: np.random.Generator,
    inside: Inside | None = None,
    log_density: Callable[[FloatArray], FloatArray] | None = None,
) -> FloatArray:
    """Return ``count`` points, (count, d), one of each chain.

    Parameters
    ----------
    polytope : Polytope
    start : (d,) float64
        An interior point.
    inside : callable, optional
        A chain that has no point inside yet moves in the whole polytope, and later joins a chain that has one; if few
        have, it may end outside. The constraints must be the same for all chains.
    log_density : callable, optional
        Log density of points (k, d); by default uniform.
    """
    basis = polytope.basis
    dimension = basis.shape[1]
    normals = polytope.inequalities @ basis
    points = np.zeros((count, dimension))

    def place(coordinates: FloatArray) -> FloatArray:
        return np.asarray(start + coordinates @ basis.T)

    if not dimension:
        return place(points)
    room = polytope.limits - polytope.inequalities @ start
    everyone = np.arange(count)
    within = np.full(count, inside is None)
    enough = max(min(_HITS, count // 2), _HIT_SHARE * count)
    shape = np.eye(dimension)
    steps = _STEPS + _STEPS_PER_COORDINATE * dimension
    third = steps // 3
    for step in range(0 if inside is None else -third, steps):
        if step == 0 and inside is not None:
            within = inside(place(points), everyone)
        if third <= step <= 2 * third and not within.all() and np.count_nonzero(within) >= enough:
            points[~within] = points[rng.choice(np.flatnonzero(within), np.count_nonzero(~within))]
            within[:] = True
        if step in (0, third) and count > 2 * dimension:
            covariance = np.cov(points.T).reshape(dimension, dimension)
            if np.any(covariance):  # a region without a volume lets no chain move
                shape = np.linalg.cholesky(covariance + 1e-12 * np.trace(covariance) * np.eye(dimension))
        directions = rng.standard_normal((count, dimension)) @ shape.T
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        lower, upper = _chord(room - points @ normals.T, directions @ normals.T)
        moved = lower + rng.random(count) * (upper - lower)
        proposals = points + moved[:, None] * directions
        good = np.ones(count, dtype=np.bool_)
        if inside is not None and step >= 0:
            good = inside(place(proposals), everyone)
            retry = np.flatnonzero(within & ~good)
            for _ in range(_SHRINKAGES):
                if not len(retry):
                    break
                lower[retry] = np.where(moved[retry] < 0, moved[retry], lower[retry])
                upper[retry] = np.where(moved[retry] > 0, moved[retry], upper[retry])
                moved[retry] = lower[retry] + rng.random(len(retry)) * (upper[retry] - lower[retry])
                proposals[retry] = points[retry] + moved[retry, None] * directions[retry]
                good[retry] = inside(place(proposals[retry]), retry)
                retry = retry[~good[retry]]
        accept = good | ~within
        if log_density is not None:
            gain = log_density(place(proposals)) - log_density(place(points))
            accept &= np.log(rng.random(count)) < gain
        points[accept] = proposals[accept]
        if step >= 0:
            within = within | (good & accept)
    return place(points)


def _chord(room: FloatArray, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the parts of lines that are inside, from the room to each face and its slope, (k, rows)."""
    crossing = np.maximum(room, 0.0) / np.where(np.abs(slopes) > _PARALLEL, slopes, np.inf)
    upper = np.min(np.where(slopes > _PARALLEL, crossing, np.inf), axis=1)
    lower = np.max(np.where(slopes < -_PARALLEL, crossing, -np.inf), axis=1)
    return lower, upper
