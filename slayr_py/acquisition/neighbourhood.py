"""Steps between levels and integers, which have no gradient."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slayr_py.space import Encoder
from slayr_py.space.dimension import FloatArray
from slayr_py.space.graphs import adjacency


class Neighbourhood:
    """Which coordinates lie one step beside another.

    A parameter with levels steps along the edges of its graph, on a complete one to every other level; an integer to
    the numbers beside it; a float nowhere.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.dimensions = encoder.dimensions
        # The vertices of a graph are in the order of the levels.
        self._edges = {
            j: [np.flatnonzero(row).astype(np.float64) for row in adjacency(encoder.graphs[d.name])]
            for j, d in enumerate(encoder.dimensions)
            if not d.is_real
        }

    def beside(self, dimension: int, coordinate: float) -> FloatArray:
        """Coordinates one step from this one."""
        if dimension in self._edges:
            return self._edges[dimension][round(coordinate)]
        return self.dimensions[dimension].neighbours(coordinate)

    def of(self, genotypes: FloatArray, movable: NDArray[np.bool_]) -> tuple[NDArray[np.intp], FloatArray]:
        """All genotypes that differ by one step in one movable coordinate.

        Parameters
        ----------
        genotypes : (m, D) float64
        movable : (m, D) bool

        Returns
        -------
        owners : (k,) int
            Row of the genotype beside which each of them lies.
        neighbours : (k, D) float64
        """
        steps = [
            (i, j, coordinate)
            for i, j in zip(*np.nonzero(movable), strict=True)
            for coordinate in self.beside(j, genotypes[i, j])
        ]
        owners = np.array([i for i, _, _ in steps], dtype=np.intp)
        neighbours = genotypes[owners]
        for row, (_, j, coordinate) in enumerate(steps):
            neighbours[row, j] = coordinate
        return owners, neighbours
