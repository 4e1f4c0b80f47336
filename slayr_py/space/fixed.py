"""Fixed values of parameters, which a search does not change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slayr_py.space.dimension import FloatArray
from slayr_py.space.encoded import Encoded

_SAME = 1e-9  # largest difference of equal unit values


@dataclass(frozen=True, eq=False)
class Fixed:
    """Fixed values of k parameters, from `Encoder.fix`; a configuration that has them has all k parameters active.

    Attributes
    ----------
    values : dict of str to value
        Values by name.
    columns : (k,) int
        Columns of the parameters in a genotype.
    numbers : (k,) float64
        Level indices and real values.
    unit_values : (k,) float64
    example : (1, D) float64
        Genotype of an allowed configuration with these values.
    """

    values: Mapping[str, Any]
    columns: NDArray[np.intp]
    numbers: FloatArray
    unit_values: FloatArray
    example: FloatArray

    def put(self, genotypes: FloatArray) -> FloatArray:
        """Return genotypes (n, D) with the fixed values."""
        changed = genotypes.copy()
        changed[:, self.columns] = self.unit_values
        return changed

    def active(self, encoded: Encoded) -> NDArray[np.bool_]:
        """Return where all fixed parameters are active, (n,)."""
        return np.asarray(encoded.active[:, self.columns].all(axis=1))

    def hold(self, encoded: Encoded) -> NDArray[np.bool_]:
        """Return which configurations have the fixed values, (n,)."""
        same = np.abs(encoded.unit_values[:, self.columns] - self.unit_values) < _SAME
        return np.asarray(same.all(axis=1) & self.active(encoded))
