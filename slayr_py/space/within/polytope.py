"""Polytopes and their interior.

Symbols
-------
d : number of coordinates, each between bounds. E x = e : equalities. G x <= h : inequalities, bounds among them.
Z (d, k) : orthonormal basis of the null space of E.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import linprog

from slayr_py.space.dimension import FloatArray

_FLAT = 1e-9  # slacks below count as 0


@dataclass(frozen=True)
class Polytope:
    """The points x (d,) with E x = e and G x <= h, bounds included; rows of E and G have length 1."""

    equalities: FloatArray
    levels: FloatArray
    inequalities: FloatArray
    limits: FloatArray

    @classmethod
    def of(
        cls,
        equalities: FloatArray,
        levels: FloatArray,
        inequalities: FloatArray,
        limits: FloatArray,
        bounds: FloatArray,
    ) -> Polytope:
        """Return a polytope, with the bounds (d, 2) as inequalities; rows of zeros are left out."""
        identity = np.eye(len(bounds))
        rows, right = _normalised(equalities, levels)
        below, most = _normalised(
            np.vstack([inequalities, identity, -identity]), np.concatenate([limits, bounds[:, 1], -bounds[:, 0]])
        )
        return cls(rows, right, below, most)

    @cached_property
    def basis(self) -> FloatArray:
        """Z, (d, k)."""
        if not len(self.equalities):
            return np.eye(self.inequalities.shape[1])
        return np.asarray(null_space(self.equalities))

    @cached_property
    def _normals(self) -> FloatArray:
        return self.inequalities @ self.basis

    @cached_property
    def interior(self) -> tuple[Polytope, FloatArray] | None:
        """The polytope with all its equalities, and a point with the largest slack; None if it is empty.

        Inequalities that hold with equality in the whole polytope, such as two opposite ones, become equalities.
        """
        lengths = np.linalg.norm(self._normals, axis=1)
        found = self._largest_slack(np.where(lengths > _FLAT, lengths, 0.0))
        if found is None:
            return None
        point, slack = found
        if slack > _FLAT or not self.basis.shape[1]:
            return self, point
        tight = [row for row in range(len(self.limits)) if lengths[row] > _FLAT and self._slack_of(row) <= _FLAT]
        if not tight:
            return self, point
        loose = np.setdiff1d(np.arange(len(self.limits)), tight)
        flat = Polytope(
            np.vstack([self.equalities, self.inequalities[tight]]),
            np.concatenate([self.levels, self.limits[tight]]),
            self.inequalities[loose],
            self.limits[loose],
        )
        return flat.interior

    def _largest_slack(self, weights: FloatArray) -> tuple[FloatArray, float] | None:
        cost = np.zeros(self.inequalities.shape[1] + 1)
        cost[-1] = -1.0
        solved = linprog(
            cost,
            A_ub=np.column_stack([self.inequalities, weights]),
            b_ub=self.limits,
            A_eq=np.column_stack([self.equalities, np.zeros(len(self.levels))]) if len(self.levels) else None,
            b_eq=self.levels if len(self.levels) else None,
            bounds=[(None, None)] * (len(cost) - 1) + [(0.0, 1.0)],
        )
        return (solved.x[:-1], float(solved.x[-1])) if solved.status == 0 else None

    def _slack_of(self, row: int) -> float:
        solved = linprog(
            self.inequalities[row],
            A_ub=self.inequalities,
            b_ub=self.limits,
            A_eq=self.equalities if len(self.levels) else None,
            b_eq=self.levels if len(self.levels) else None,
            bounds=(None, None),
        )
        return float(self.limits[row] - solved.fun) if solved.status == 0 else 0.0


def _normalised(rows: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Scale rows to length 1, and drop rows of zeros."""
    lengths = np.linalg.norm(rows, axis=1)
    keep = lengths > 0
    return rows[keep] / lengths[keep, None], right[keep] / lengths[keep]
