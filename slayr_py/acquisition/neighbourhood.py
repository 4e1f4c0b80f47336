"""Discrete steps between levels and between integers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slayr_py.space import Encoder, FloatArray, adjacency

_ROWS = 64  # nearest rows of a list to which a configuration steps
_ROUNDING = 1e-9  # by which a unit value may leave [0, 1] after a step; far smaller than any step


class Neighbourhood:
    """Unit values and genotypes one discrete step away from others.

    A parameter with levels steps along the edges of its graph (in a complete graph to every other level), an integer to
    the adjacent integers. A float has no discrete steps. Two integers in an equality among the constraints on inputs
    also step together, so that the equality still holds. The parameters of a list step to its nearest other rows.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.dimensions = encoder.dimensions
        self._exchanges = encoder.exchanges
        self._choices = encoder.choices
        self._listed = encoder.listed
        # The vertices of a graph are in the order of the levels.
        self._edges = {
            j: [np.flatnonzero(row).astype(np.float64) for row in adjacency(encoder.graphs[d.name])]
            for j, d in enumerate(encoder.dimensions)
            if not d.is_real
        }

    def neighbours(self, dimension: int, unit_value: float) -> FloatArray:
        """Return the unit values one step from this one."""
        if dimension in self._edges:
            return self._edges[dimension][round(unit_value)]
        return self.dimensions[dimension].neighbours(unit_value)

    def of(self, genotypes: FloatArray, movable: NDArray[np.bool_]) -> tuple[NDArray[np.intp], FloatArray]:
        """Return all genotypes that differ by one step in one movable parameter, or in some that step together.

        Parameters
        ----------
        genotypes : (m, D) float64
        movable : (m, D) bool

        Returns
        -------
        owners : (k,) int
            Row of the genotype from which each neighbour is one step away.
        neighbours : (k, D) float64
        """
        alone = movable & ~self._listed
        steps = [
            (i, j, unit_value)
            for i, j in zip(*np.nonzero(alone), strict=True)
            for unit_value in self.neighbours(j, genotypes[i, j])
        ]
        owners = np.array([i for i, _, _ in steps], dtype=np.intp)
        neighbours = genotypes[owners]
        for row, (_, j, unit_value) in enumerate(steps):
            neighbours[row, j] = unit_value
        for columns, changes in self._exchanges:
            rows = np.flatnonzero(alone[:, columns].all(axis=1))
            stepped = genotypes[rows]
            stepped[:, columns] += changes
            inside = np.all((stepped[:, columns] > -_ROUNDING) & (stepped[:, columns] < 1 + _ROUNDING), axis=1)
            owners = np.concatenate([owners, rows[inside]])
            neighbours = np.vstack([neighbours, np.clip(stepped[inside], 0.0, None)])
        for choice in self._choices:
            rows = np.flatnonzero(movable[:, choice.columns].any(axis=1))
            near = choice.nearest(genotypes[np.ix_(rows, choice.columns)], count=_ROWS + 1)[:, 1:]
            stepped = np.repeat(genotypes[rows], near.shape[1], axis=0)
            stepped[:, choice.columns] = choice.unit_values[near.ravel()]
            owners = np.concatenate([owners, np.repeat(rows, near.shape[1])])
            neighbours = np.vstack([neighbours, stepped])
        return owners, neighbours
