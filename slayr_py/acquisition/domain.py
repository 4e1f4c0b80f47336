"""The domain of the search: the genotypes of a space, and those that satisfy its constraints on inputs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from slayr_py.acquisition.ascent import Box
from slayr_py.acquisition.landscape import Landscape
from slayr_py.space import FloatArray


def domain_of(landscape: Landscape) -> Box:
    """Return the domain of the genotypes of a landscape."""
    upper = np.array([1.0 if d.is_real else d.upper for d in landscape.encoder.dimensions])
    return Box(upper) if landscape.encoder.region is None else Inside(upper, landscape)


class Inside(Box):
    """The genotypes in a box whose configurations satisfy the constraints on inputs of a landscape."""

    def __init__(self, upper: FloatArray, landscape: Landscape) -> None:
        super().__init__(upper)
        self._landscape = landscape

    def nearest(self, points: FloatArray) -> FloatArray:
        """Return the nearest points in the domain; a point without one stays outside, where the value is -infinity."""
        clipped = super().nearest(points)
        encoded, _ = self._landscape.place(clipped)
        moving = encoded.active & self._landscape.continuous & self._landscape.free
        return np.where(moving, encoded.unit_values, clipped)

    def along(self, points: FloatArray, gradients: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return the projection of vectors (k, d) on the face of each point at which its gradient pushes."""
        encoded, _ = self._landscape.place(points)
        projectors = self._landscape.encoder.along(encoded, gradients)
        in_box = super().along(points, gradients)
        return lambda vectors: np.einsum("kij,kj->ki", projectors, in_box(vectors))
