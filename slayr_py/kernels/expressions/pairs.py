"""Pairs of points at which the leaves of an expression are evaluated.

Symbols: s draws; C columns of the encoded inputs; D_c real parameters; "..." the shape of the pairs of points.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from slayr_py.space import Encoded, FloatArray


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
        """Return a - b by column, (c, ...). Like the other features, it is computed once."""
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
            return cls(*points, [part.between(a, b) for part in given])
        both = [part.gradient(a, b) for part in given]
        real = list(a.encoder.column_of.values())
        return cls(*points, [value for value, _ in both], [by_input for _, by_input in both], real)

    @classmethod
    def own(cls, a: Encoded, given: Sequence[Given], gradient: bool = False) -> Pairs:
        """Return the pairs of each point with itself, (n_a,)."""
        values = [np.full(len(a), float(part.kind == "correlation")) for part in given]
        # Given values are stationary at equal points, so their derivatives are 0.
        slopes = [np.zeros((len(a), len(a.encoder.real_names))) for _ in given] if gradient else []
        return cls(a.columns, a.columns, values, slopes, list(a.encoder.column_of.values()) if gradient else ())
