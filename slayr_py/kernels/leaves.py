"""Leaves of composite kernels, the NumPy twins of ``stan/functions/composite.stan``.

Every leaf has mean variance 1 on the unit cube. With the differences delta_c of two points in its columns and
h = sum_c delta_c^2 / l_c^2:

* ``SE`` exp(-h/2), ``RQ`` (1 + h/(2 alpha))^-alpha; ``MAT12``, ``MAT32``, ``MAT52`` the Matérn kernels of order 0 to 2;
* ``PER`` exp(-2 sum_c sin(pi delta_c / period)^2 / l_c^2);
* ``LIN`` (1 + sum_c (x_c - m_c)(x'_c - m_c)/l_c^2) / (1 + sum_c ((1/2 - m_c)^2 + 1/12)/l_c^2), m the centre;
* ``C`` 1; a given correlation; or exp(-D / (2 feature_lengthscale^2)) of a given squared distance D.

Symbols: s draws; C columns of the encoded inputs; D_c real parameters; "..." the shape of the pairs of points.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from slayr_py.kernels.base_kernels import Base, by_rq_alpha, correlation, slope
from slayr_py.kernels.contracts import GIVEN, LEAVES
from slayr_py.kernels.hyperparameters import Draws
from slayr_py.space import Encoded, FloatArray, Layout

STATIONARY: dict[str, tuple[Base, int]] = {
    "SE": ("se", 0),
    "RQ": ("rq", 0),
    "MAT12": ("matern", 0),
    "MAT32": ("matern", 1),
    "MAT52": ("matern", 2),
}
"""Base kernel and order of the leaves of one squared distance."""


class Given(ABC):
    """A fixed covariance function or squared distance that can be a leaf.

    Attributes
    ----------
    kind : {"correlation", "squared distance"}
    """

    kind: ClassVar[Literal["correlation", "squared distance"]]

    @abstractmethod
    def between(self, a: Encoded, b: Encoded) -> FloatArray:
        """Return the values of all pairs, (n_a, n_b)."""

    @abstractmethod
    def gradient(self, a: Encoded, b: Encoded) -> tuple[FloatArray, FloatArray]:
        """Return the values (n_a, n_b) and their derivatives by the real inputs of ``a``, (n_a, n_b, D_c)."""

    @abstractmethod
    def check_encoder(self, encoder: Layout) -> None:
        """Raise ``DataError`` if it was made for another space."""


@dataclass(frozen=True)
class Pairs:
    """Pairs of points.

    Attributes
    ----------
    a, b : (..., C) float64
        Encoded inputs, which broadcast against each other.
    given : sequence of (...) float64
        Values of the given leaves.
    given_gradient : sequence of (..., D_c) float64
        Their derivatives by the real inputs of ``a``.
    real_columns : sequence of int
        Column of each real input.
    """

    a: FloatArray
    b: FloatArray
    given: Sequence[FloatArray]
    given_gradient: Sequence[FloatArray] = ()
    real_columns: Sequence[int] = ()
    _features: dict[tuple[str, tuple[int, ...]], FloatArray] = field(default_factory=dict, compare=False, repr=False)

    def differences(self, columns: tuple[int, ...]) -> FloatArray:
        """Return a - b by column, (c, ...); as the others, computed once."""
        return self._feature("differences", columns, lambda a, b: a - b)

    def squares(self, columns: tuple[int, ...]) -> FloatArray:
        """Return (a - b)^2 by column, (c, ...)."""
        return self._feature("squares", columns, lambda a, b: np.square(a - b))

    def products(self, columns: tuple[int, ...]) -> FloatArray:
        """Return a b by column, (c, ...)."""
        return self._feature("products", columns, np.multiply)

    def sums(self, columns: tuple[int, ...]) -> FloatArray:
        """Return a + b by column, (c, ...)."""
        return self._feature("sums", columns, np.add)

    def _feature(
        self, name: str, columns: tuple[int, ...], of: Callable[[FloatArray, FloatArray], FloatArray]
    ) -> FloatArray:
        key = (name, columns)
        if key not in self._features:
            # Columns first: sums over columns and over pairs are then products with a contiguous matrix.
            self._features[key] = np.stack([of(self.a[..., column], self.b[..., column]) for column in columns])
        return self._features[key]

    @classmethod
    def cross(cls, a: Encoded, b: Encoded, given: Sequence[Given], gradient: bool = False) -> Pairs:
        """Return all pairs of a point of ``a`` and one of ``b``, (n_a, n_b)."""
        points = a.columns[:, None], b.columns
        if not gradient:
            return cls(*points, [one.between(a, b) for one in given])
        both = [one.gradient(a, b) for one in given]
        real = list(a.encoder.column_of.values())
        return cls(*points, [value for value, _ in both], [by_input for _, by_input in both], real)

    @classmethod
    def own(cls, a: Encoded, given: Sequence[Given], gradient: bool = False) -> Pairs:
        """Return the pairs of each point with itself, (n_a,)."""
        values = [np.full(len(a), float(one.kind == "correlation")) for one in given]
        # Each of the given values is stationary at a point itself.
        slopes = [np.zeros((len(a), len(a.encoder.real_names))) for _ in given] if gradient else []
        return cls(a.columns, a.columns, values, slopes, list(a.encoder.column_of.values()) if gradient else ())


class Slope(NamedTuple):
    """Derivatives of a sum of values by entries of a hyperparameter.

    Attributes
    ----------
    name : str
    entries : slice
    by_entry : (s, entries) float64
    """

    name: str
    entries: slice
    by_entry: FloatArray


@dataclass(frozen=True)
class PlannedLeaf:
    """A leaf and the places of its hyperparameters.

    Attributes
    ----------
    label : str
        Number and name, such as "1:SE".
    kind : str
        A name in `LEAVES` or `GIVEN`.
    columns : tuple of int
        Columns of the encoded inputs that it reads.
    lengthscale, centre : slice
        Entries of these vectors.
    period, rq_alpha, feature, given : int
        Entry of ``period``, ``rq_alpha`` and ``feature_lengthscale``, and position of the given values; -1 for none.
    """

    label: str
    kind: str
    columns: tuple[int, ...]
    lengthscale: slice
    centre: slice
    period: int
    rq_alpha: int
    feature: int
    given: int

    @property
    def code(self) -> int:
        """Code of the kind in the Stan program."""
        return (LEAVES | GIVEN)[self.kind]

    def value(self, pairs: Pairs, draws: Draws) -> FloatArray:
        """Return the values (s, ...); (1, ...) if they do not depend on hyperparameters."""
        if self.kind == "C":
            return np.ones((1, *np.broadcast_shapes(pairs.a.shape, pairs.b.shape)[:-1]))
        if self.kind == "correlation":
            return pairs.given[self.given][None]
        if self.kind == "squared distance":
            return np.exp(self._feature_weight(draws, pairs.given[self.given]) * pairs.given[self.given])
        if self.kind == "LIN":
            return self._linear(pairs, draws)
        if self.kind == "PER":
            return self._periodic(pairs, draws)
        base, p = STATIONARY[self.kind]
        h = self._squared_distance(pairs, draws)
        return correlation(h, base, p, self._rq_alpha(draws, h))

    def gradient(self, pairs: Pairs, draws: Draws) -> tuple[FloatArray, Iterator[tuple[int, FloatArray]]]:
        """Return the values (s, ...), and the derivatives (s, ...) by the real inputs of ``a`` that matter.

        The second one yields positions of real inputs and derivatives.
        """
        if self.kind in STATIONARY:
            base, p = STATIONARY[self.kind]
            h = self._squared_distance(pairs, draws)
            return correlation(h, base, p, self._rq_alpha(draws, h)), self._stationary_gradient(h, pairs, draws)
        value = self.value(pairs, draws)
        if self.kind == "C":
            return value, iter(())
        if self.kind in GIVEN:
            return value, self._given_gradient(value, pairs, draws)
        if self.kind == "LIN":
            return value, self._linear_gradient(value, pairs, draws)
        return value, self._periodic_gradient(value, pairs, draws)

    def pullback(self, pairs: Pairs, draws: Draws) -> tuple[FloatArray, Callable[[FloatArray], Iterator[Slope]]]:
        """Return the values as :meth:`value` does, and a function of their adjoint (s, ...).

        The function yields the derivatives of the sum of the adjoint times the values by the leaf's hyperparameters.
        """
        if self.kind in STATIONARY:
            return self._stationary_pullback(pairs, draws)
        if self.kind == "PER":
            return self._periodic_pullback(pairs, draws)
        value = self.value(pairs, draws)
        if self.kind == "LIN":
            return value, lambda adjoint: self._linear_slopes(pairs, draws, value, adjoint)
        if self.kind == "squared distance":
            return value, lambda adjoint: self._given_slopes(pairs, draws, value, adjoint)
        return value, lambda adjoint: iter(())

    def _stationary_pullback(
        self, pairs: Pairs, draws: Draws
    ) -> tuple[FloatArray, Callable[[FloatArray], Iterator[Slope]]]:
        base, p = STATIONARY[self.kind]
        h = self._squared_distance(pairs, draws)
        alpha = self._rq_alpha(draws, h)
        value = correlation(h, base, p, alpha)

        def slopes(adjoint: FloatArray) -> Iterator[Slope]:
            by_length = -2 * _total(adjoint * slope(h, base, p, alpha), pairs.squares(self.columns))
            yield Slope("lengthscale", self.lengthscale, by_length / draws["lengthscale"][:, self.lengthscale] ** 3)
            if alpha is not None:
                by_alpha = _total_by_draw(adjoint * value, by_rq_alpha(h, alpha)[None])
                yield Slope("rq_alpha", slice(self.rq_alpha, self.rq_alpha + 1), by_alpha)

        return value, slopes

    def _periodic_pullback(
        self, pairs: Pairs, draws: Draws
    ) -> tuple[FloatArray, Callable[[FloatArray], Iterator[Slope]]]:
        phases = np.stack([self._phases(pairs, draws, c) for c in range(len(self.columns))])
        squares = np.square(np.sin(phases))
        weight = self._weight(draws)
        value = np.exp(-2 * sum(_against(w, square) * square for w, square in zip(weight.T, squares, strict=True)))

        def slopes(adjoint: FloatArray) -> Iterator[Slope]:
            weighted = adjoint * value
            by_length = 4 * _total_by_draw(weighted, squares)
            yield Slope("lengthscale", self.lengthscale, by_length / draws["lengthscale"][:, self.lengthscale] ** 3)
            turned = _total_by_draw(weighted, phases * np.sin(2 * phases))
            by_period = 2 * np.sum(weight * turned, axis=1, keepdims=True) / draws["period"][:, [self.period]]
            yield Slope("period", slice(self.period, self.period + 1), by_period)

        return value, slopes

    def _linear_slopes(self, pairs: Pairs, draws: Draws, value: FloatArray, adjoint: FloatArray) -> Iterator[Slope]:
        weight, centre, norm = self._linear_norm(draws)
        everything = adjoint.reshape(len(adjoint), -1).sum(axis=1)[:, None]
        total = (adjoint * value).reshape(len(adjoint), -1).sum(axis=1)[:, None]
        sums = _total(adjoint, pairs.sums(self.columns))
        shifted = _total(adjoint, pairs.products(self.columns)) - centre * sums + np.square(centre) * everything
        by_weight = (total * (np.square(0.5 - centre) + 1 / 12) - shifted) / norm[:, None]
        by_length = 2 * by_weight / draws["lengthscale"][:, self.lengthscale] ** 3
        yield Slope("lengthscale", self.lengthscale, by_length)
        by_centre = weight / norm[:, None] * (2 * total * (0.5 - centre) - sums + 2 * centre * everything)
        yield Slope("centre", self.centre, by_centre)

    def _given_slopes(self, pairs: Pairs, draws: Draws, value: FloatArray, adjoint: FloatArray) -> Iterator[Slope]:
        by_length = _total(adjoint * value, pairs.given[self.given][None])
        by_length /= draws["feature_lengthscale"][:, [self.feature]] ** 3
        yield Slope("feature_lengthscale", slice(self.feature, self.feature + 1), by_length)

    def _real(self, pairs: Pairs) -> Iterator[tuple[int, int, int]]:
        """Yield position among the real inputs, column, and position in the leaf of each real input of the leaf."""
        for position, column in enumerate(pairs.real_columns):
            if column in self.columns:
                yield position, column, self.columns.index(column)

    def _weight(self, draws: Draws) -> FloatArray:
        return 1 / np.square(draws["lengthscale"][:, self.lengthscale])

    def _rq_alpha(self, draws: Draws, h: FloatArray) -> FloatArray | None:
        return None if self.rq_alpha < 0 else _against(draws["rq_alpha"][:, self.rq_alpha], h)

    def _feature_weight(self, draws: Draws, distance: FloatArray) -> FloatArray:
        return -0.5 / np.square(_against(draws["feature_lengthscale"][:, self.feature], distance[None]))

    def _squared_distance(self, pairs: Pairs, draws: Draws) -> FloatArray:
        return np.tensordot(self._weight(draws), pairs.squares(self.columns), axes=(1, 0))

    def _stationary_gradient(self, h: FloatArray, pairs: Pairs, draws: Draws) -> Iterator[tuple[int, FloatArray]]:
        base, p = STATIONARY[self.kind]
        by_distance = slope(h, base, p, self._rq_alpha(draws, h))
        weight = self._weight(draws)
        for position, column, c in self._real(pairs):
            yield position, 2 * _against(weight[:, c], h) * (pairs.a - pairs.b)[..., column] * by_distance

    def _phases(self, pairs: Pairs, draws: Draws, c: int) -> FloatArray:
        difference = pairs.differences(self.columns)[c][None]
        return np.asarray(np.pi / _against(draws["period"][:, self.period], difference) * difference)

    def _periodic(self, pairs: Pairs, draws: Draws) -> FloatArray:
        total = np.zeros(())
        weight = self._weight(draws)
        for c in range(len(self.columns)):
            squares = np.square(np.sin(self._phases(pairs, draws, c)))
            total = total + _against(weight[:, c], squares) * squares
        return np.asarray(np.exp(-2 * total))

    def _periodic_gradient(self, value: FloatArray, pairs: Pairs, draws: Draws) -> Iterator[tuple[int, FloatArray]]:
        weight = self._weight(draws) / draws["period"][:, self.period, None]
        for position, _, c in self._real(pairs):
            sines = np.sin(2 * self._phases(pairs, draws, c))
            yield position, -2 * np.pi * _against(weight[:, c], value) * value * sines

    def _linear_norm(self, draws: Draws) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the weights and centres (s, C), and the denominator (s,)."""
        weight = self._weight(draws)
        centre = draws["centre"][:, self.centre]
        return weight, centre, 1 + np.sum(weight * (np.square(0.5 - centre) + 1 / 12), axis=1)

    def _linear(self, pairs: Pairs, draws: Draws) -> FloatArray:
        weight, centre, norm = self._linear_norm(draws)
        value = np.tensordot(weight, pairs.products(self.columns), axes=(1, 0))
        value -= np.tensordot(weight * centre, pairs.sums(self.columns), axes=(1, 0))
        value += _against(1 + np.sum(weight * np.square(centre), axis=1), value)
        return np.asarray(value / _against(norm, value))

    def _linear_gradient(self, value: FloatArray, pairs: Pairs, draws: Draws) -> Iterator[tuple[int, FloatArray]]:
        weight, centre, norm = self._linear_norm(draws)
        for position, column, c in self._real(pairs):
            shifted = pairs.b[..., column] - _against(centre[:, c], value)
            yield position, shifted * _against(weight[:, c] / norm, value)

    def _given_gradient(self, value: FloatArray, pairs: Pairs, draws: Draws) -> Iterator[tuple[int, FloatArray]]:
        by_input = pairs.given_gradient[self.given]
        factor = np.ones_like(value)
        if self.kind == "squared distance":
            factor = self._feature_weight(draws, pairs.given[self.given]) * value
        for position in range(by_input.shape[-1]):
            yield position, factor * by_input[..., position]


def _against(values: FloatArray, array: FloatArray) -> FloatArray:
    """Return values (s,) with further axes of length 1, to broadcast against (s, ...)."""
    return values.reshape(-1, *[1] * (array.ndim - 1))


def _total(adjoint: FloatArray, features: FloatArray) -> FloatArray:
    """Return the sums over pairs of ``adjoint`` (s, ...) times each of the features (c, ...), as (s, c)."""
    return np.asarray(adjoint.reshape(len(adjoint), -1) @ features.reshape(len(features), -1).T)


def _total_by_draw(adjoint: FloatArray, features: FloatArray) -> FloatArray:
    """Return the same for features (c, s, ...) that differ between draws."""
    flat = features.reshape(len(features), len(adjoint), -1).transpose(1, 0, 2)
    return np.asarray((flat @ adjoint.reshape(len(adjoint), -1, 1))[:, :, 0])
