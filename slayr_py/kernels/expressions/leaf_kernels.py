"""Leaves of composite kernels, the NumPy twins of ``stan/functions/composite.stan``.

Every leaf has mean variance 1 on the unit cube. With the differences delta_c of two points in its columns and
h = sum_c delta_c^2 / l_c^2:

* ``SE`` exp(-h/2), ``RQ`` (1 + h/(2 alpha))^-alpha; ``MAT12``, ``MAT32``, ``MAT52`` the Matérn kernels of order 0 to 2;
* ``PER`` exp(-2 sum_c sin(pi delta_c / period)^2 / l_c^2);
* ``LIN`` (1 + sum_c (x_c - m_c)(x'_c - m_c)/l_c^2) / (1 + sum_c ((1/2 - m_c)^2 + 1/12)/l_c^2), m the centre;
* ``C`` 1; a given correlation; or exp(-D / (2 feature_lengthscale^2)) of a given squared distance D.

Symbols: s draws; c columns of a leaf; D_c real parameters; "..." the shape of the pairs of points.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from typing_extensions import override

from slayr_py.kernels.base_kernels import Base, by_rq_alpha, correlation, slope
from slayr_py.kernels.expressions.leaf import LeafEvaluation, LeafKernel, Slope
from slayr_py.kernels.expressions.pairs import Pairs
from slayr_py.kernels.half_angles import sine_products
from slayr_py.kernels.hyperparameters import Draws
from slayr_py.kernels.prior import Prior
from slayr_py.kernels.priors import LogNormal, Normal, lengthscale_prior
from slayr_py.space import FloatArray


class StationaryLeaf(LeafKernel):
    """A kernel of the squared distance h.

    Attributes
    ----------
    base : {"se", "rq", "matern"}
    order : int
        Order of the Matérn kernel.
    """

    reads = "all columns"
    stationary = True
    base: ClassVar[Base]
    order: ClassVar[int] = 0

    @classmethod
    @override
    def priors(cls, n_columns: int) -> dict[str, Prior]:
        return {"lengthscale": lengthscale_prior(n_columns), **cls.defaults}

    @override
    def evaluate(self, pairs: Pairs, draws: Draws) -> LeafEvaluation:
        lengthscale = self._entries(draws, "lengthscale")
        weight = 1 / np.square(lengthscale)
        squares = pairs.squares(self.columns)
        h = np.tensordot(weight, squares, axes=(1, 0))
        alpha = _against(self._entries(draws, "rq_alpha"), h) if "rq_alpha" in self.places else None
        value = correlation(h, self.base, self.order, alpha)

        def by_inputs() -> Iterator[tuple[int, FloatArray]]:
            by_distance = slope(h, self.base, self.order, alpha)
            for position, c in self._real_inputs(pairs):
                difference = pairs.differences(self.columns)[c]
                yield position, 2 * _against(weight[:, c], h) * difference * by_distance

        def by_hyperparameters(adjoint: FloatArray) -> Iterator[Slope]:
            by_length = -2 * _total(adjoint * slope(h, self.base, self.order, alpha), squares)
            yield self._slope("lengthscale", by_length / lengthscale**3)
            if alpha is not None:
                yield self._slope("rq_alpha", _total_by_draw(adjoint * value, by_rq_alpha(h, alpha)[None]))

        return LeafEvaluation(value, by_inputs, by_hyperparameters)


class SquaredExponentialLeaf(StationaryLeaf):
    """``SE``."""

    code = 1
    base = "se"


class RationalQuadraticLeaf(StationaryLeaf):
    """``RQ``."""

    code = 2
    base = "rq"
    defaults = {"rq_alpha": LogNormal(0.0, 1.0)}


class Matern12Leaf(StationaryLeaf):
    """``MAT12``."""

    code = 5
    base = "matern"
    order = 0


class Matern32Leaf(StationaryLeaf):
    """``MAT32``."""

    code = 6
    base = "matern"
    order = 1


class Matern52Leaf(StationaryLeaf):
    """``MAT52``."""

    code = 7
    base = "matern"
    order = 2


class PeriodicLeaf(LeafKernel):
    """``PER``."""

    code = 3
    reads = "numbers"
    defaults = {"lengthscale": LogNormal(0.0, 1.0), "period": LogNormal(float(np.log(0.2)), 1.0)}

    @override
    def evaluate(self, pairs: Pairs, draws: Draws) -> LeafEvaluation:
        lengthscale = self._entries(draws, "lengthscale")
        period = self._entries(draws, "period")
        weight = 1 / np.square(lengthscale)
        differences = pairs.differences(self.columns)
        frequency = _against(np.pi / period, differences)
        # Column by column, so that what is computed of a column stays in the cache.
        sines = [sine_products(frequency * difference) for difference in differences]
        value = np.exp(-2 * sum(_against(w, square) * square for w, (square, _) in zip(weight.T, sines, strict=True)))

        def by_inputs() -> Iterator[tuple[int, FloatArray]]:
            by_phase = weight / period
            for position, c in self._real_inputs(pairs):
                yield position, -4 * np.pi * _against(by_phase[:, c], value) * value * sines[c][1]

        def by_hyperparameters(adjoint: FloatArray) -> Iterator[Slope]:
            weighted = adjoint * value
            by_weight = np.hstack([_total_by_draw(weighted, square[None]) for square, _ in sines])
            yield self._slope("lengthscale", 4 * by_weight / lengthscale**3)
            by_pair = [product * difference for (_, product), difference in zip(sines, differences, strict=True)]
            by_phase = np.hstack([_total_by_draw(weighted, terms[None]) for terms in by_pair])
            by_period = np.sum(weight * by_phase, axis=1, keepdims=True)
            yield self._slope("period", 4 * np.pi * by_period / np.square(period))

        return LeafEvaluation(value, by_inputs, by_hyperparameters)


class LinearLeaf(LeafKernel):
    """``LIN``."""

    code = 4
    reads = "numbers"
    defaults = {"lengthscale": LogNormal(0.0, 1.0), "centre": Normal(0.5, 0.5)}

    @override
    def evaluate(self, pairs: Pairs, draws: Draws) -> LeafEvaluation:
        lengthscale = self._entries(draws, "lengthscale")
        centre = self._entries(draws, "centre")
        weight = 1 / np.square(lengthscale)
        variance = np.square(0.5 - centre) + 1 / 12
        norm = 1 + np.sum(weight * variance, axis=1)
        products = pairs.products(self.columns)
        sums = pairs.sums(self.columns)
        value = np.tensordot(weight, products, axes=(1, 0))
        value -= np.tensordot(weight * centre, sums, axes=(1, 0))
        value += _against(1 + np.sum(weight * np.square(centre), axis=1), value)
        value = np.asarray(value / _against(norm, value))

        def by_inputs() -> Iterator[tuple[int, FloatArray]]:
            for position, c in self._real_inputs(pairs):
                shifted = pairs.b[..., self.columns[c]] - _against(centre[:, c], value)
                yield position, shifted * _against(weight[:, c] / norm, value)

        def by_hyperparameters(adjoint: FloatArray) -> Iterator[Slope]:
            constant = adjoint.reshape(len(adjoint), -1).sum(axis=1)[:, None]
            total = (adjoint * value).reshape(len(adjoint), -1).sum(axis=1)[:, None]
            by_sum = _total(adjoint, sums)
            shifted = _total(adjoint, products) - centre * by_sum + np.square(centre) * constant
            by_weight = (total * variance - shifted) / norm[:, None]
            yield self._slope("lengthscale", 2 * by_weight / lengthscale**3)
            by_centre = 2 * total * (0.5 - centre) - by_sum + 2 * centre * constant
            yield self._slope("centre", weight / norm[:, None] * by_centre)

        return LeafEvaluation(value, by_inputs, by_hyperparameters)


class ConstantLeaf(LeafKernel):
    """``C``."""

    code = 8

    @override
    def evaluate(self, pairs: Pairs, draws: Draws) -> LeafEvaluation:
        value = np.ones((1, *np.broadcast_shapes(pairs.a.shape, pairs.b.shape)[:-1]))
        return LeafEvaluation(value, lambda: iter(()), lambda adjoint: iter(()))


class GivenCorrelation(LeafKernel):
    """A correlation that was computed elsewhere."""

    code = 9

    @override
    def evaluate(self, pairs: Pairs, draws: Draws) -> LeafEvaluation:
        def by_inputs() -> Iterator[tuple[int, FloatArray]]:
            by_input = pairs.given_gradient[self.given][None]
            for position in range(by_input.shape[-1]):
                yield position, by_input[..., position]

        return LeafEvaluation(pairs.given[self.given][None], by_inputs, lambda adjoint: iter(()))


class GivenDistance(LeafKernel):
    """The squared exponential of a squared distance that was computed elsewhere."""

    code = 10
    defaults = {"feature_lengthscale": LogNormal(0.0, 1.0)}

    @override
    def evaluate(self, pairs: Pairs, draws: Draws) -> LeafEvaluation:
        distance = pairs.given[self.given][None]
        lengthscale = self._entries(draws, "feature_lengthscale")
        weight = -0.5 / np.square(_against(lengthscale, distance))
        value = np.exp(weight * distance)

        def by_inputs() -> Iterator[tuple[int, FloatArray]]:
            by_input = pairs.given_gradient[self.given]
            factor = weight * value
            for position in range(by_input.shape[-1]):
                yield position, factor * by_input[..., position]

        def by_hyperparameters(adjoint: FloatArray) -> Iterator[Slope]:
            yield self._slope("feature_lengthscale", _total(adjoint * value, distance) / lengthscale**3)

        return LeafEvaluation(value, by_inputs, by_hyperparameters)


LEAVES: dict[str, type[LeafKernel]] = {
    "SE": SquaredExponentialLeaf,
    "RQ": RationalQuadraticLeaf,
    "PER": PeriodicLeaf,
    "LIN": LinearLeaf,
    "MAT12": Matern12Leaf,
    "MAT32": Matern32Leaf,
    "MAT52": Matern52Leaf,
    "C": ConstantLeaf,
}
"""Leaves by their names in the language of expressions."""

GIVEN_LEAVES: dict[str, type[LeafKernel]] = {"correlation": GivenCorrelation, "squared distance": GivenDistance}
"""Leaves whose values are computed elsewhere, by `Given.kind`."""

STATIONARY = frozenset(name for name, leaf in LEAVES.items() if leaf.stationary)
"""Names of the leaves of one squared distance."""


def _against(values: FloatArray, array: FloatArray) -> FloatArray:
    """Return values (s,) with further axes of length 1, to broadcast against (s, ...)."""
    return values.reshape(-1, *[1] * (array.ndim - 1))


def _total(adjoint: FloatArray, features: FloatArray) -> FloatArray:
    """Return the sums over pairs of ``adjoint`` (s, ...) times each of the features (c, ...), as (s, c)."""
    return np.asarray(adjoint.reshape(len(adjoint), -1) @ features.reshape(len(features), -1).T)


def _total_by_draw(adjoint: FloatArray, features: FloatArray) -> FloatArray:
    """Return the sums over pairs of ``adjoint`` (s, ...) times each of the features (c, s, ...), as (s, c)."""
    flat = features.reshape(len(features), len(adjoint), -1).transpose(1, 0, 2)
    return np.asarray((flat @ adjoint.reshape(len(adjoint), -1, 1))[:, :, 0])
