"""When two configurations are the same."""

from __future__ import annotations

from collections.abc import Set

import numpy as np
from numpy.typing import NDArray

from slayr_py.space import Encoded

_DECIMALS = 9  # of a coordinate: what is closer than a billionth of a range would be evaluated twice for nothing


def keys(encoded: Encoded, decimals: int = _DECIMALS) -> list[bytes]:
    """Identities of the configurations that would be evaluated, up to rounding of their coordinates."""
    dimensions = encoded.encoder.dimensions
    evaluated = [d.coordinates(d.rounded(d.numbers(x))) for d, x in zip(dimensions, encoded.unit_values.T, strict=True)]
    # Adding 0 turns -0 into 0, which is another sequence of bytes.
    rounded = np.round(np.column_stack(evaluated), decimals) + 0.0
    return [row.tobytes() for row in np.column_stack([rounded, encoded.active])]


def members(encoded: Encoded, some: Set[bytes]) -> NDArray[np.bool_]:
    """Which configurations have one of these keys, (m,)."""
    return np.array([key in some for key in keys(encoded)], dtype=np.bool_)


def distinct(encoded: Encoded, decimals: int = _DECIMALS) -> NDArray[np.intp]:
    """Rows of the first of every group of equal configurations, in order."""
    first: dict[bytes, int] = {}
    for row, key in enumerate(keys(encoded, decimals)):
        first.setdefault(key, row)
    return np.array(list(first.values()), dtype=np.intp)
