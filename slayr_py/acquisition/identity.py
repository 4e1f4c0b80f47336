"""Identity of configurations up to rounding."""

from __future__ import annotations

from collections.abc import Set

import numpy as np
from numpy.typing import NDArray

from slayr_py.space import Encoded

_DECIMALS = 9  # of a unit value: closer configurations count as equal and are not evaluated again


def keys(encoded: Encoded, decimals: int = _DECIMALS) -> list[bytes]:
    """Return keys of the configurations that would be evaluated: equal keys for equal rounded unit values."""
    dimensions = encoded.encoder.dimensions
    evaluated = [d.unit_values(d.rounded(d.numbers(x))) for d, x in zip(dimensions, encoded.unit_values.T, strict=True)]
    # Adding 0 turns -0 into 0; their bytes differ.
    rounded = np.round(np.column_stack(evaluated), decimals) + 0.0
    return [row.tobytes() for row in np.column_stack([rounded, encoded.active])]


def members(encoded: Encoded, some: Set[bytes]) -> NDArray[np.bool_]:
    """Return which configurations have one of these keys, (m,)."""
    return np.array([key in some for key in keys(encoded)], dtype=np.bool_)


def distinct(encoded: Encoded, decimals: int = _DECIMALS) -> NDArray[np.intp]:
    """Return the row of the first configuration of every group of equal ones, in order."""
    first: dict[bytes, int] = {}
    for row, key in enumerate(keys(encoded, decimals)):
        first.setdefault(key, row)
    return np.array(list(first.values()), dtype=np.intp)


def branches(encoded: Encoded) -> NDArray[np.intp]:
    """Return a number for every configuration, (m,), equal for equal levels and equal active parameters."""
    levels = [j for j, d in enumerate(encoded.encoder.dimensions) if not d.is_real]
    rows = np.column_stack([encoded.unit_values[:, levels], encoded.active])
    return np.unique(rows, axis=0, return_inverse=True)[1].ravel()
