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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from slayr_py.kernels.base_kernels import Base, correlation, slope
from slayr_py.kernels.contracts import GIVEN, LEAVES
from slayr_py.kernels.hyperparameters import Draws
from slayr_py.space import Encoded, Layout
from slayr_py.space.dimension import FloatArray

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
        difference = pairs.a[..., self.columns] - pairs.b[..., self.columns]
        return np.tensordot(self._weight(draws), np.square(difference), axes=(1, -1))

    def _stationary_gradient(self, h: FloatArray, pairs: Pairs, draws: Draws) -> Iterator[tuple[int, FloatArray]]:
        base, p = STATIONARY[self.kind]
        by_distance, weight = slope(h, base, p, self._rq_alpha(draws, h)), self._weight(draws)
        for position, column, c in self._real(pairs):
            yield position, 2 * _against(weight[:, c], h) * (pairs.a - pairs.b)[..., column] * by_distance

    def _phases(self, pairs: Pairs, draws: Draws, column: int) -> FloatArray:
        difference = (pairs.a[..., column] - pairs.b[..., column])[None]
        return np.pi / _against(draws["period"][:, self.period], difference) * difference

    def _periodic(self, pairs: Pairs, draws: Draws) -> FloatArray:
        total, weight = np.zeros(()), self._weight(draws)
        for c, column in enumerate(self.columns):
            squares = np.square(np.sin(self._phases(pairs, draws, column)))
            total = total + _against(weight[:, c], squares) * squares
        return np.asarray(np.exp(-2 * total))

    def _periodic_gradient(self, value: FloatArray, pairs: Pairs, draws: Draws) -> Iterator[tuple[int, FloatArray]]:
        weight = self._weight(draws) / draws["period"][:, self.period, None]
        for position, column, c in self._real(pairs):
            sines = np.sin(2 * self._phases(pairs, draws, column))
            yield position, -2 * np.pi * _against(weight[:, c], value) * value * sines

    def _linear_norm(self, draws: Draws) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the weights and centres (s, C), and the denominator (s,)."""
        weight, centre = self._weight(draws), draws["centre"][:, self.centre]
        return weight, centre, 1 + np.sum(weight * (np.square(0.5 - centre) + 1 / 12), axis=1)

    def _linear(self, pairs: Pairs, draws: Draws) -> FloatArray:
        weight, centre, norm = self._linear_norm(draws)
        a, b = pairs.a[..., self.columns], pairs.b[..., self.columns]
        value = np.tensordot(weight, a * b, axes=(1, -1)) - np.tensordot(weight * centre, a + b, axes=(1, -1))
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
