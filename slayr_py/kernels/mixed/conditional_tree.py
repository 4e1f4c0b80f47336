"""Dimensions of a conditional space, and distances between configurations along each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slayr_py.kernels.hyperparameters import Draws
from slayr_py.space import Encoded, FloatArray, Layout


@dataclass(frozen=True)
class Separation:
    """Squared scaled distances of one dimension, (s, n_a, n_b), and their derivatives by a real input of a."""

    squared: FloatArray
    gradient: FloatArray | None


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
        lineage = lineage.reshape(len(names), -1)
        return cls(encoder, names, weight_names, dimension, weight_dimension, lineage, levels, positions)

    def inputs(self, points: Encoded) -> FloatArray:
        """Return unit values, with the ranks of ordinals scaled to [0, 1], (n_points, n)."""
        dimensions = [self.encoder.dimensions[i] for i in self.positions]
        widths = np.array([max(len(d.levels) - 1, 1) if d.kind == "ordinal" else 1 for d in dimensions])
        return np.ascontiguousarray(points.unit_values[:, self.positions] / widths)

    def activity(self, points: Encoded) -> FloatArray:
        """Return 1 where a dimension is active, else 0, (n_points, n)."""
        return np.ascontiguousarray(points.active[:, self.positions], dtype=np.float64)

    def separations(self, a: Encoded, b: Encoded, draws: Draws, gradient: bool = False) -> Iterator[Separation]:
        """Yield squared distance over squared length-scale for each dimension."""
        omega = np.prod(np.where(self.lineage > 0, draws["gamma"][:, None, :], 1.0), axis=-1)
        scale = np.square(omega / draws["lengthscale"])
        x_a = self.inputs(a)
        x_b = self.inputs(b)
        on_a = self.activity(a)
        on_b = self.activity(b)
        for i, m in enumerate(self.levels):
            rho = draws["rho"][:, i]
            weight = scale[:, i, None, None]
            single = np.abs(on_a[:, None, i] - on_b[None, :, i])
            if m:
                different = on_a[:, None, i] * on_b[None, :, i] * (x_a[:, None, i] != x_b[None, :, i])
                jump = 2 * np.square(rho) / (1 + (m - 1) * np.square(1 - rho))
                yield Separation(weight * (single + jump[:, None, None] * different), None)
                continue
            # Half angles, 0 where inactive. Unlike 1 - cos, the product is exact up to rounding at small differences
            # and needs no trigonometric function of a pair.
            sin_a, cos_a = _half_angles(rho, x_a[:, i], on_a[:, i])
            sin_b, cos_b = _half_angles(rho, x_b[:, i], on_b[:, i])
            sine = sin_a[:, :, None] * cos_b[:, None, :] - cos_a[:, :, None] * sin_b[:, None, :]
            by_x = None
            if gradient and self.encoder.dimensions[self.positions[i]].is_real:
                cosine = cos_a[:, :, None] * cos_b[:, None, :] + sin_a[:, :, None] * sin_b[:, None, :]
                by_x = 4 * np.pi * (weight * rho[:, None, None]) * sine * cosine
            yield Separation(weight * (single + 4 * np.square(sine)), by_x)


def _half_angles(rho: FloatArray, x: FloatArray, active: FloatArray) -> tuple[FloatArray, FloatArray]:
    angle = 0.5 * np.pi * rho[:, None] * x
    return np.sin(angle) * active, np.cos(angle) * active


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
