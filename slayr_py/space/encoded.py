"""Encoded configurations and the kernels' inputs computed from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slayr_py.errors import SpaceError
from slayr_py.space.dimension import FloatArray
from slayr_py.space.layout import Layout


@dataclass(frozen=True, eq=False)
class Encoded:
    """n configurations as arrays, which are read-only: a fit keeps them, and its predictions depend on them.

    Attributes
    ----------
    unit_values : (n, D) float64
        Values of real parameters in [0, 1], indices of levels of other parameters; 0 where inactive.
    active : (n, D) bool
    encoder : Layout
        The encoder that made the arrays.
    raw : (n, D) float64, optional
        Real parameters in the user's units, since a logarithmic unit value loses their last digits. Without ``raw``,
        values are computed from ``unit_values``.
    """

    unit_values: FloatArray
    active: NDArray[np.bool_]
    encoder: Layout
    raw: FloatArray | None = None

    def __post_init__(self) -> None:
        for name in ("unit_values", "active", "raw"):
            if (array := getattr(self, name)) is not None:
                object.__setattr__(self, name, _read_only(array.view()))  # the array of the caller stays writable

    def __len__(self) -> int:
        return len(self.unit_values)

    def __getitem__(self, rows: slice | NDArray[Any] | list[int]) -> Encoded:
        raw = None if self.raw is None else self.raw[rows]
        return Encoded(self.unit_values[rows], self.active[rows], self.encoder, raw)

    @cached_property
    def columns(self) -> FloatArray:
        """One-hot inputs of a kernel on the unit cube, (n, C), in the order of ``encoder.column_names``.

        A real parameter has one column, an ordinal parameter has a column with its rank scaled to [0, 1], and a
        categorical parameter has a column for each level.
        Inactive real parameters and ordinals are 1/2; all columns of an inactive categorical are 0.
        """
        parts = []
        for i, dimension in enumerate(self.encoder.dimensions):
            column = self.unit_values[:, i]
            on = self.active[:, i]
            if dimension.kind == "categorical":
                parts.append((column[:, None] == np.arange(len(dimension.levels))) & on[:, None])
            else:
                parts.append(np.where(on, column / dimension.width, 0.5)[:, None])
        return _read_only(np.ascontiguousarray(np.hstack(parts), dtype=np.float64))

    @cached_property
    def real(self) -> FloatArray:
        """Unit values of real parameters, (n, D_c), in the order of ``encoder.real_names``; 1/2 where inactive."""
        values = self.unit_values[:, self._positions(real=True)]
        return _read_only(np.ascontiguousarray(np.where(self.real_active, values, 0.5)))

    @cached_property
    def real_active(self) -> NDArray[np.bool_]:
        """Whether real parameters are active, (n, D_c), in the order of ``encoder.real_names``."""
        return _read_only(np.ascontiguousarray(self.active[:, self._positions(real=True)]))

    @cached_property
    def ranked(self) -> Encoded:
        """The same configurations in ``encoder.ranked``, where ordinals are real parameters."""
        layout = self.encoder.ranked
        if layout is self.encoder:
            return self
        pairs = zip(self.encoder.dimensions, layout.dimensions, strict=True)
        widths = [1 if other is d else d.width for d, other in pairs]
        return Encoded(self.unit_values / widths, self.active, layout)

    @cached_property
    def vertices(self) -> NDArray[np.int64]:
        """Vertices of the graphs of ``encoder.spectra``, (n, P), in the order of ``encoder.graph_names``.

        The vertex of a level is its index; the vertex of an inactive parameter comes after the last level.
        """
        positions = self._positions(real=False)
        inactive = np.array([len(self.encoder.dimensions[j].levels) for j in positions], dtype=np.int64)
        levels = self.unit_values[:, positions].astype(np.int64)
        return _read_only(np.ascontiguousarray(np.where(self.active[:, positions], levels, inactive)))

    def concatenate(self, other: Encoded) -> Encoded:
        """Return these configurations followed by ``other``.

        Raises
        ------
        SpaceError
            If they were encoded for different spaces, graphs or scales.
        """
        if not self.encoder.matches(other.encoder):
            raise SpaceError("configurations of different spaces, graphs or scales; encode them with one encoder")
        raw = None if self.raw is None or other.raw is None else np.vstack([self.raw, other.raw])
        return Encoded(
            np.vstack([self.unit_values, other.unit_values]), np.vstack([self.active, other.active]), self.encoder, raw
        )

    def _positions(self, real: bool) -> list[int]:
        return [j for j, dimension in enumerate(self.encoder.dimensions) if dimension.is_real is real]


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array
