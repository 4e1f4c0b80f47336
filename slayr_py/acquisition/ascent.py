"""Maximise a function in a box or a part of it from many starts at once, with a projected quasi-Newton method.

Symbols
-------
m, d : number of climbers (one per start), and of variables, each between 0 and its upper bound.
x, g : a climber's point and its gradient; H : a positive definite estimate of minus the inverse Hessian there.
blocked : variables at a bound whose gradient points outwards, and variables with zero slope.

A step searches along the projection of x + a H g on the box, without the rows and columns of H for blocked variables:
this increases the function for small a (Bertsekas 1982, prop. 1). A domain of another form (:class:`Box`) removes the
directions that leave it in the same way: g and H g are projected on the face at which the gradient pushes. H is updated
only with variables that moved (BFGS; Nocedal & Wright 2006, eq. 6.17), so that it describes the face of the box on
which the climber is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from slayr_py.space import FloatArray

Function = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Values (k,) and gradients (k, d) at points (k, d); minus infinity at forbidden points."""

_FIRST_STEP = 0.1  # length of a step while the curvature is unknown
_ARMIJO = 1e-4  # a step is accepted if it gains this share of the linear prediction
_TRIALS = 12  # step lengths tried; each is a tenth to a half of the previous one
_NO_SLOPE = 1e-100  # smaller derivatives count as 0: their squares would underflow
_FLAT = 1e-10  # if the cosine of step and gradient change is below, the function counts as flat


class Box:
    """Points (k, d) whose variables lie between 0 and upper bounds (d,)."""

    def __init__(self, upper: FloatArray) -> None:
        self.upper = upper

    def nearest(self, points: FloatArray) -> FloatArray:
        """Return the nearest points in the domain."""
        return np.clip(points, 0.0, self.upper)

    def along(self, points: FloatArray, gradients: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return the projection of vectors (k, d) on the face of each point at which its gradient pushes."""
        blocked = (
            (np.abs(gradients) < _NO_SLOPE)
            | ((points <= 0) & (gradients < 0))
            | ((points >= self.upper) & (gradients > 0))
        )
        return lambda vectors: np.where(blocked, 0.0, vectors)


class Ascent:
    """Maximise a function in a domain from m starts.

    Parameters
    ----------
    function : callable
        Returns values and gradients of several points; the result for a point must not depend on the others.
    points : (m, d) float64
        Starts.
    domain : Box
    gain : float
        A climber has arrived if a step gains at most this. A step, or a shorter one in its place, is not tried if its
        linear prediction gains less; 0 tries all.
    curvature : (m, d, d) float64, optional
        First estimates of minus the inverse Hessians; zeros where nothing is known.

    Attributes
    ----------
    points, gradients : (m, d) float64
    values : (m,) float64
        Steps never decrease them.
    curvature : (m, d, d) float64
    """

    def __init__(
        self,
        function: Function,
        points: FloatArray,
        domain: Box,
        gain: float = 0.0,
        curvature: FloatArray | None = None,
    ) -> None:
        m, d = points.shape
        self.function = function
        self.domain = domain
        self.gain = gain
        self.points = domain.nearest(points)
        (self.values, self.gradients) = function(self.points)
        self.curvature = np.zeros((m, d, d)) if curvature is None else curvature.copy()
        self._has_curvature = np.any(self.curvature != 0, axis=(1, 2))
        self._directions = np.zeros((m, d))
        self._tries = np.zeros(m, dtype=np.intp)  # points evaluated since the last step

    def put(self, rows: NDArray[np.intp], points: FloatArray) -> None:
        """Move these climbers to other points; keep their curvature estimates as first guesses there."""
        self.points[rows] = self.domain.nearest(points)
        self.values[rows], self.gradients[rows] = self.function(self.points[rows])
        self._tries[rows] = 0

    def advance(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Evaluate one point for each of these climbers, which moves there if the point is better.

        Climbers do not wait for each other: one may try a shorter step while another begins the next.

        Returns
        -------
        (k,) bool
            Climbers that have arrived: their last step gained at most ``gain``, or no step from their point is better.
        """
        fresh = rows[self._tries[rows] == 0]
        self._directions[fresh] = self._uphill(fresh)
        stays = np.asarray(np.all(self._directions[rows] == 0, axis=1))
        arrived = stays | ~self._is_worthwhile(rows)
        self._tries[rows[arrived]] = 0
        trying = np.flatnonzero(~arrived)
        if len(trying):
            arrived[trying] = self._try(rows[trying])
        return arrived

    def _try(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        x = self.points[rows]
        value = self.values[rows]
        trials = self.domain.nearest(x + self._directions[rows])
        values, gradients = self.function(trials)
        # On a bent path the slope to its end may be negative; the value must not decrease then either.
        slopes = np.maximum(np.sum(self.gradients[rows] * (trials - x), axis=1), 0.0)
        good = values >= value + _ARMIJO * slopes
        self._accept(rows[good], trials[good], values[good], gradients[good])
        self._tries[rows[good]] = 0
        rest = ~good
        # Maximum of the parabola through both values and the slope.
        shorter = np.clip(0.5 * slopes[rest] / (value + slopes - values)[rest], 0.1, 0.5)
        self._directions[rows[rest]] *= shorter[:, None]
        self._tries[rows[rest]] = (self._tries[rows[rest]] + 1) % _TRIALS
        return np.where(good, values <= value + self.gain, self._tries[rows] == 0)

    def _is_worthwhile(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return whether the linear prediction of each step gains at least ``gain``."""
        return np.asarray(np.sum(self.gradients[rows] * self._directions[rows], axis=1) >= self.gain) | (self.gain == 0)

    def _uphill(self, rows: NDArray[np.intp]) -> FloatArray:
        x = self.points[rows]
        g = self.gradients[rows]
        along = self.domain.along(x, g)
        uphill = along(g)
        new = ~self._has_curvature[rows]
        length = np.linalg.norm(uphill[new], axis=1)
        scale = _FIRST_STEP / np.where(length > 0, length, 1.0)
        self.curvature[rows[new]] = scale[:, None, None] * np.eye(x.shape[1])
        return along(np.einsum("kij,kj->ki", self.curvature[rows], uphill))

    def _accept(self, rows: NDArray[np.intp], points: FloatArray, values: FloatArray, gradients: FloatArray) -> None:
        moved = points - self.points[rows]
        slopes = np.sum(moved * self.gradients[rows], axis=1)
        change = np.where(moved != 0, self.gradients[rows] - gradients, 0.0)
        scale = np.linalg.norm(moved, axis=1) * np.linalg.norm(change, axis=1)
        curved = np.sum(moved * change, axis=1) > _FLAT * scale
        self.points[rows] = points
        self.values[rows] = values
        self.gradients[rows] = gradients

        self._update(rows[curved], moved[curved], change[curved])
        # Where the function is not concave, change H so that it maps g to twice the last step.
        flat = ~curved & (slopes > 0)
        self.curvature[rows[flat]] += _outer(moved[flat], moved[flat] / slopes[flat, None])
        self._has_curvature[rows[curved | flat]] = True

    def _update(self, rows: NDArray[np.intp], moved: FloatArray, change: FloatArray) -> None:
        identity = np.eye(moved.shape[1])
        curvature = np.sum(moved * change, axis=1)[:, None]
        # Scale the initial estimate with the first step (Nocedal & Wright 2006, eq. 6.20).
        first = ~self._has_curvature[rows]
        scale = curvature[first] / np.sum(np.square(change[first]), axis=1, keepdims=True)
        self.curvature[rows[first]] = scale[..., None] * identity
        left = identity - _outer(moved, change / curvature)
        self.curvature[rows] = left @ self.curvature[rows] @ left.transpose(0, 2, 1) + _outer(moved, moved / curvature)


def _outer(a: FloatArray, b: FloatArray) -> FloatArray:
    return a[:, :, None] * b[:, None, :]
