"""Fixed values of parameters, which a search does not change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slayr_py.space.dimension import Dimension, FloatArray
from slayr_py.space.encoded import Encoded


@dataclass(frozen=True, eq=False)
class Fixed:
    """Fixed values of k parameters, from `Encoder.fix`; a configuration that has them has all k parameters active.

    Attributes
    ----------
    values : dict of str to value
        Values by name.
    all_dimensions : sequence of Dimension
        All D parameters, on the scales of the unit values.
    columns : (k,) int
        Columns of the parameters in a genotype.
    numbers : (k,) float64
        Level indices and real values.
    unit_values : (k,) float64
    example : (1, D) float64
        Genotype of an allowed configuration with these values.
    """

    values: Mapping[str, Any]
    all_dimensions: Sequence[Dimension]
    columns: NDArray[np.intp]
    numbers: FloatArray
    unit_values: FloatArray
    example: FloatArray

    @property
    def dimensions(self) -> list[Dimension]:
        """The k parameters."""
        return [self.all_dimensions[j] for j in self.columns]

    def is_on(self, dimensions: Sequence[Dimension]) -> bool:
        """Return whether D dimensions are those of the encoder that fixed the values; else unit values differ."""
        return all(mine == dimensions[j] for mine, j in zip(self.dimensions, self.columns, strict=True))

    def put(self, genotypes: FloatArray) -> FloatArray:
        """Return genotypes (n, D) with the fixed values."""
        changed = genotypes.copy()
        changed[:, self.columns] = self.unit_values
        return changed

    def active(self, encoded: Encoded) -> NDArray[np.bool_]:
        """Return where all fixed parameters are active, (n,)."""
        return np.asarray(encoded.active[:, self.columns].all(axis=1))

    def differing(self, config: Mapping[str, object]) -> dict[str, object]:
        """Return the values of a configuration, legal or not, that differ from the fixed ones."""
        pairs = zip(self.dimensions, self.numbers, strict=True)
        given = [(d, number, config[d.name]) for d, number in pairs if d.name in config]
        return {d.name: value for d, number, value in given if not d.is_number(value, number)}

    def hold(self, encoded: Encoded) -> NDArray[np.bool_]:
        """Return which configurations have the fixed values, (n,)."""
        held = self.active(encoded)
        for d, column, number in zip(self.dimensions, self.columns, self.numbers, strict=True):
            held &= d.equals(encoded.unit_values[:, column], number)
        return held
