"""Identity and nearness of configurations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from slayr_py.space import Encoded, FloatArray

_DECIMALS = 9  # of a unit value: closer configurations count as equal

NEIGHBOURHOOD = 1e-4
"""Half the width, in unit values, of the neighbourhood of a configuration in which no other one is suggested. A second
evaluation there does not inform a smooth model and makes its covariance nearly singular."""


def keys(encoded: Encoded, decimals: int = _DECIMALS) -> list[bytes]:
    """Return keys of the configurations that would be evaluated: equal keys for equal rounded unit values."""
    dimensions = encoded.encoder.dimensions
    evaluated = [d.unit_values(d.rounded(d.numbers(x))) for d, x in zip(dimensions, encoded.unit_values.T, strict=True)]
    # Adding 0 turns -0 into 0; their bytes differ.
    rounded = np.round(np.column_stack(evaluated), decimals) + 0.0
    return [row.tobytes() for row in np.column_stack([rounded, encoded.active])]


@dataclass(frozen=True)
class Taken:
    """Configurations that must not be suggested, with their neighbourhoods.

    Attributes
    ----------
    encoded : Encoded
        n configurations.
    radius : float
        Configurations are neighbours if their levels and active parameters are equal and no real parameter differs by
        more than this in unit values.
    """

    encoded: Encoded
    radius: float = NEIGHBOURHOOD

    def __len__(self) -> int:
        return len(self.encoded)

    def contains(self, encoded: Encoded) -> NDArray[np.bool_]:
        """Return which of m configurations are taken, (m,)."""
        if not len(self):
            return np.zeros(len(encoded), dtype=np.bool_)
        real = np.array([d.is_real for d in encoded.encoder.dimensions])
        reach = np.where(real, self.radius, 0.0)
        first, *rest = np.argsort(~real, kind="stable")  # a real parameter separates most configurations
        all_rows = np.arange(len(encoded))[:, None]
        rows, others = np.nonzero(self._agree(encoded, first, reach, all_rows, np.arange(len(self))))
        for j in rest:
            agree = self._agree(encoded, j, reach, rows, others)
            rows = rows[agree]
            others = others[agree]
        contained = np.zeros(len(encoded), dtype=np.bool_)
        contained[rows] = True
        if self._rounding > self.radius:
            contained |= np.array([key in self._keys for key in keys(encoded)], dtype=np.bool_)
        return contained

    def _agree(
        self, encoded: Encoded, j: np.intp, reach: FloatArray, rows: NDArray[np.intp], others: NDArray[np.intp]
    ) -> NDArray[np.bool_]:
        """Return whether a parameter is inactive in both configurations of pairs, or active and near."""
        active = encoded.active[:, j][rows]
        apart = np.abs(encoded.unit_values[:, j][rows] - self.encoded.unit_values[:, j][others])
        return np.asarray((active == self.encoded.active[:, j][others]) & (~active | (apart <= reach[j])))

    @cached_property
    def _rounding(self) -> float:
        """Largest distance in unit values of configurations that are equal when they are evaluated."""
        dimensions = self.encoded.encoder.dimensions
        return 10.0**-_DECIMALS + max((d.resolution for d in dimensions if d.kind == "float"), default=0.0)

    @cached_property
    def _keys(self) -> frozenset[bytes]:
        return frozenset(keys(self.encoded))


def distinct(encoded: Encoded, decimals: int = _DECIMALS) -> NDArray[np.intp]:
    """Return the row of the first configuration of every group of equal ones, in order."""
    first: dict[bytes, int] = {}
    for row, key in enumerate(keys(encoded, decimals)):
        first.setdefault(key, row)
    return np.array(list(first.values()), dtype=np.intp)


def branches(encoded: Encoded) -> NDArray[np.intp]:
    """Return a number for every configuration, (m,), equal for equal levels and equal active parameters."""
    return np.unique(branch_rows(encoded), axis=0, return_inverse=True)[1].ravel()


def branch_rows(encoded: Encoded) -> FloatArray:
    """Return a row for every configuration, equal for equal levels and equal active parameters."""
    levels = [j for j, d in enumerate(encoded.encoder.dimensions) if not d.is_real]
    return np.column_stack([encoded.unit_values[:, levels], encoded.active])
