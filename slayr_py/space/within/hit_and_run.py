"""Draw points of a polytope by hit and run (Smith 1984, Oper. Res. 32), many chains side by side.

A chain moves along a random line to a uniform point of the part inside the polytope. If a point is outside of further
constraints, the part shrinks to the present point and another one is drawn, as in slice sampling (Neal 2003, Ann. Stat.
31): the uniform distribution stays invariant. Chains first move without the further constraints, so that they hit the
region nearly independently of their start. After the first third of the later steps, which is extended while too few
chains have a point inside, chains without one go on from those of others, and directions follow the covariance of the
chains, so that long and thin regions are crossed in a few steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slayr_py.space.dimension import FloatArray
from slayr_py.space.within.polytope import Polytope

_STEPS = 30  # of a chain, plus some for each coordinate; chosen by hand
_STEPS_PER_COORDINATE = 6  # steps change one direction at a time
_LONGER = 4  # times as many steps at most, until enough chains are inside: later thin regions have many copies of few
_LONGEST = 10  # the same if each chain inside is joined by less than ten, as of less than 200 chains; chosen by hand
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
    dimension = polytope.basis.shape[1]
    chains = _Chains(polytope, start, np.zeros((count, dimension)), np.full(count, inside is None), np.eye(dimension))
    if not dimension:
        return chains.place(chains.points)
    steps = _STEPS + _STEPS_PER_COORDINATE * dimension
    third = steps // 3
    if inside is not None:
        for _ in range(third):
            chains.move(rng, None, log_density)
        chains.within = inside(chains.place(chains.points), np.arange(count))
    for step in range(steps):
        if step == third:
            chains.search(rng, inside, log_density, steps)
        if third <= step <= 2 * third:
            chains.join(rng)
        if step in (0, third):
            chains.reshape()
        chains.within = chains.within | chains.move(rng, inside, log_density)
    return chains.place(chains.points)


@dataclass
class _Chains:
    """The present points of all chains.

    Attributes
    ----------
    polytope : Polytope
    start : (d,) float64
        The point with the coordinates 0.
    points : (count, k) float64
        Coordinates in the basis of the polytope.
    within : (count,) bool
        Chains that have a point inside the further constraints.
    shape : (k, k) float64
        Square root of the covariance of directions.
    """

    polytope: Polytope
    start: FloatArray
    points: FloatArray
    within: NDArray[np.bool_]
    shape: FloatArray

    def __post_init__(self) -> None:
        self._normals = self.polytope.inequalities @ self.polytope.basis
        self._room = self.polytope.limits - self.polytope.inequalities @ self.start

    def place(self, coordinates: FloatArray) -> FloatArray:
        """Return the points (n, d) with coordinates (n, k)."""
        return np.asarray(self.start + coordinates @ self.polytope.basis.T)

    @property
    def enough(self) -> float:
        """Least number of chains inside for others to join them."""
        count = len(self.points)
        return max(min(_HITS, count // 2), _HIT_SHARE * count)

    def search(
        self,
        rng: np.random.Generator,
        inside: Inside | None,
        log_density: Callable[[FloatArray], FloatArray] | None,
        steps: int,
    ) -> None:
        """Move all chains until enough are inside, or too few would be inside after some times ``steps``."""
        most = steps * (_LONGEST if len(self.points) < 10 * self.enough else _LONGER)
        for k in range(most):
            hits = np.count_nonzero(self.within)
            if hits >= self.enough or (k >= steps and 2 * hits * most < self.enough * k):
                return
            self.within = self.within | self.move(rng, inside, log_density)

    def join(self, rng: np.random.Generator) -> None:
        """Replace the points of chains that have none inside by those of other chains, if enough have one."""
        count = len(self.points)
        inside = np.count_nonzero(self.within)
        if self.within.all() or inside < self.enough:
            return
        self.points[~self.within] = self.points[rng.choice(np.flatnonzero(self.within), count - inside)]
        self.within[:] = True

    def reshape(self) -> None:
        """Let directions follow the covariance of the points, if there are enough of them."""
        count, dimension = self.points.shape
        if count <= 2 * dimension:
            return
        covariance = np.cov(self.points.T).reshape(dimension, dimension)
        if np.any(covariance):  # a region without a volume lets no chain move
            self.shape = np.linalg.cholesky(covariance + 1e-12 * np.trace(covariance) * np.eye(dimension))

    def move(
        self,
        rng: np.random.Generator,
        inside: Inside | None,
        log_density: Callable[[FloatArray], FloatArray] | None,
    ) -> NDArray[np.bool_]:
        """Move every chain along a random line; return the chains (count,) that moved to a point inside."""
        count, dimension = self.points.shape
        directions = rng.standard_normal((count, dimension)) @ self.shape.T
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        lower, upper = _chord(self._room - self.points @ self._normals.T, directions @ self._normals.T)
        moved = lower + rng.random(count) * (upper - lower)
        lines = _Lines(directions, lower, upper, moved, self.points + moved[:, None] * directions)
        good = np.ones(count, dtype=np.bool_) if inside is None else self.shrink(lines, rng, inside)
        accept = good | ~self.within
        if log_density is not None:
            gain = log_density(self.place(lines.proposals)) - log_density(self.place(self.points))
            accept &= np.log(rng.random(count)) < gain
        self.points[accept] = lines.proposals[accept]
        return good & accept

    def shrink(self, lines: _Lines, rng: np.random.Generator, inside: Inside) -> NDArray[np.bool_]:
        """Draw proposals outside again, from lines that shrink to the present points; return those (count,) inside.

        Chains without a point inside keep their first proposals.
        """
        good = inside(self.place(lines.proposals), np.arange(len(lines.proposals)))
        retry = np.flatnonzero(self.within & ~good)
        directions, lower, upper, moved, proposals = lines
        for _ in range(_SHRINKAGES):
            if not len(retry):
                break
            lower[retry] = np.where(moved[retry] < 0, moved[retry], lower[retry])
            upper[retry] = np.where(moved[retry] > 0, moved[retry], upper[retry])
            moved[retry] = lower[retry] + rng.random(len(retry)) * (upper[retry] - lower[retry])
            proposals[retry] = self.points[retry] + moved[retry, None] * directions[retry]
            good[retry] = inside(self.place(proposals[retry]), retry)
            retry = retry[~good[retry]]
        return good


class _Lines(NamedTuple):
    """A line of each chain, and the point proposed on it."""

    directions: FloatArray
    """Unit vectors (count, k)."""

    lower: FloatArray
    """Smallest distance (count,) along the direction from the present point."""

    upper: FloatArray
    """Largest distance."""

    moved: FloatArray
    """Distance of the proposal."""

    proposals: FloatArray
    """Coordinates (count, k)."""


def _chord(room: FloatArray, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the parts of lines that are inside, from the room to each face and its slope, (k, rows)."""
    crossing = np.maximum(room, 0.0) / np.where(np.abs(slopes) > _PARALLEL, slopes, np.inf)
    upper = np.min(np.where(slopes > _PARALLEL, crossing, np.inf), axis=1)
    lower = np.max(np.where(slopes < -_PARALLEL, crossing, -np.inf), axis=1)
    return lower, upper
