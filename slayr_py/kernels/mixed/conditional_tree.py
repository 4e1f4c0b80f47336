"""Dimensions of a conditional space, and distances between configurations along each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from slayr_py.kernels.hyperparameters import Draws
from slayr_py.space import Encoded, FloatArray, Layout


@dataclass(frozen=True)
class DistanceBlock:
    """Squared scaled distances along a real dimension, of the configurations in which it is active.

    Attributes
    ----------
    rows, columns : (k,), (l,) int
        The configurations of a and of b.
    squared : (s, k, l) float64
    gradient : (s, k, l) float64, optional
        Derivatives by the inputs of a; None unless they were wanted and the parameter is a float or an integer.
    """

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    squared: FloatArray
    gradient: FloatArray | None

    @property
    def where(self) -> tuple[slice, NDArray[np.intp], NDArray[np.intp]]:
        """Its place in an array (s, n_a, n_b)."""
        return slice(None), self.rows[:, None], self.columns


@dataclass(frozen=True)
class Distances:
    """Squared scaled distances between configurations a and b along each of n dimensions.

    Most pairs in a conditional space have no real dimension that is active in both. The distance along a dimension is
    then 0 or one of two numbers. Which of them depends on levels and activity alone, and these have few combinations.

    Attributes
    ----------
    once, different : (s, n) float64
        Squared distance of a dimension that is active in one configuration, and for different levels.
    is_once, is_different : (n, u_a, u_b) float64
        1 where the combination of a and that of b have this distance, else 0.
    of_a, of_b : (n_a,), (n_b,) int
        Combination of each configuration.
    blocks : iterator of DistanceBlock
        Of the real dimensions, in order.
    """

    once: FloatArray
    different: FloatArray
    is_once: FloatArray
    is_different: FloatArray
    of_a: NDArray[np.intp]
    of_b: NDArray[np.intp]
    blocks: Iterator[DistanceBlock]

    def sums(self, term: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Return sums over the dimensions of a function of the squared distances, (s, n_a, n_b), without the blocks.

        The function is 0 at 0.
        """
        total = np.tensordot(term(self.once), self.is_once, axes=1)
        total += np.tensordot(term(self.different), self.is_different, axes=1)
        return np.asarray(total[:, self.of_a[:, None], self.of_b])


@dataclass(frozen=True, eq=False)
class Tree:
    """Dimensions of a space along which distances are computed, and their weights.

    Attributes
    ----------
    names : tuple of str
        The n dimensions.
    weight_names : tuple of str
        Dimensions that have a gamma: those in ``names`` and their ancestors.
    dimension, weight_dimension : str
        Names of the dimensions ``names`` and ``weight_names`` in arrays of draws.
    lineage : (n, len(weight_names)) float64
        1 where a weight belongs to the dimension or to an ancestor, else 0.
    levels : (n,) int64
        Number of levels; 0 for dimensions that count as real.
    positions : (n,) int64
        Positions of the dimensions in ``encoder.names``.
    """

    encoder: Layout
    names: tuple[str, ...]
    weight_names: tuple[str, ...]
    dimension: str
    weight_dimension: str
    lineage: FloatArray
    levels: NDArray[np.int64]
    positions: NDArray[np.int64]

    @classmethod
    @lru_cache(maxsize=8)
    def of(cls, encoder: Layout, real_only: bool = False) -> Tree:
        """Return the tree of all dimensions of a space, or of the real ones."""
        names = encoder.real_names if real_only else encoder.names
        lines = [{name, *encoder.ancestors[name]} for name in names]
        weight_names = tuple(name for name in encoder.names if any(name in line for line in lines))
        lineage = np.array([[float(w in line) for w in weight_names] for line in lines])
        positions = np.array([encoder.names.index(name) for name in names], dtype=np.int64)
        dimensions = [encoder.dimensions[i] for i in positions]
        levels = np.array([len(d.levels) if d.kind == "categorical" else 0 for d in dimensions], dtype=np.int64)
        dimension, weight_dimension = ("real", "weight") if real_only else ("parameter", "parameter")
        lineage = lineage.reshape(len(names), len(weight_names))
        return cls(encoder, names, weight_names, dimension, weight_dimension, lineage, levels, positions)

    def inputs(self, points: Encoded) -> FloatArray:
        """Return unit values, with the ranks of ordinals scaled to [0, 1], (n_points, n)."""
        dimensions = [self.encoder.dimensions[i] for i in self.positions]
        widths = np.array([d.width if d.kind == "ordinal" else 1 for d in dimensions])
        return np.ascontiguousarray(points.unit_values[:, self.positions] / widths)

    def activity(self, points: Encoded) -> FloatArray:
        """Return 1 where a dimension is active, else 0, (n_points, n)."""
        return np.ascontiguousarray(points.active[:, self.positions], dtype=np.float64)

    def distances(self, a: Encoded, b: Encoded, draws: Draws, gradient: bool = False) -> Distances:
        """Return squared distances over squared length-scales."""
        omega = np.prod(np.where(self.lineage > 0, draws["gamma"][:, None, :], 1.0), axis=-1)
        scale = np.square(omega / draws["lengthscale"])
        rho = draws["rho"]
        jump = np.where(
            self.levels > 0, 2 * np.square(rho) / (1 + np.maximum(self.levels - 1, 0) * np.square(1 - rho)), 0.0
        )
        of_a, levels_a, on_a = self._combinations(a)
        of_b, levels_b, on_b = self._combinations(b)
        on_a, on_b = on_a.T[:, :, None], on_b.T[:, None, :]
        differ = levels_a.T[:, :, None] != levels_b.T[:, None, :]
        return Distances(
            scale,
            scale * jump,
            (on_a != on_b).astype(np.float64),
            (on_a & on_b & differ).astype(np.float64),
            of_a,
            of_b,
            self._blocks(a, b, rho, scale, gradient),
        )

    def _combinations(self, points: Encoded) -> tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.bool_]]:
        """Return the combination of each configuration, and the levels (u, n) and activity (u, n) of combinations."""
        on = points.active[:, self.positions]
        levels = np.where(on & (self.levels > 0), points.unit_values[:, self.positions], 0.0).astype(np.int64, "C")
        # The column of zeros makes the keys of a tree without dimensions equal; without it they would not exist.
        keys = np.hstack([np.zeros((len(on), 1), np.uint8), np.packbits(on, axis=1), levels.view(np.uint8)])
        _, first, of = np.unique(keys.view((np.void, keys.shape[1])), return_index=True, return_inverse=True)
        return of.ravel(), levels[first], on[first]

    def _blocks(
        self, a: Encoded, b: Encoded, rho: FloatArray, scale: FloatArray, gradient: bool
    ) -> Iterator[DistanceBlock]:
        inputs_a, inputs_b = self.inputs(a), self.inputs(b)
        for i in np.flatnonzero(self.levels == 0):
            position = self.positions[i]
            rows, columns = (np.flatnonzero(points.active[:, position]) for points in (a, b))
            # Half angles: unlike 1 - cos, the product is exact up to rounding at small differences and needs no
            # trigonometric function of a pair.
            angle = 0.5 * np.pi * rho[:, i, None]
            angle_a, angle_b = angle * inputs_a[rows, i], angle * inputs_b[columns, i]
            sin_a, cos_a = np.sin(angle_a)[:, :, None], np.cos(angle_a)[:, :, None]
            sin_b, cos_b = np.sin(angle_b)[:, None, :], np.cos(angle_b)[:, None, :]
            sine = sin_a * cos_b - cos_a * sin_b
            weight = 4 * scale[:, i, None, None]
            by_x = None
            if gradient and self.encoder.dimensions[position].is_real:
                by_x = np.pi * weight * rho[:, i, None, None] * sine * (cos_a * cos_b + sin_a * sin_b)
            yield DistanceBlock(rows, columns, weight * np.square(sine), by_x)


def product_and_others(factors: list[FloatArray], shape: tuple[int, ...]) -> tuple[FloatArray, list[FloatArray]]:
    """Return the product of all factors, and for each factor the product of the others; any factor may be 0."""
    before = [np.ones(shape)]
    for factor in factors:
        before.append(before[-1] * factor)
    after = np.ones(shape)
    others = []
    for i in range(len(factors) - 1, -1, -1):
        others.append(before[i] * after)
        after = after * factors[i]
    return before[-1], others[::-1]
