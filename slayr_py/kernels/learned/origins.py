"""Origin of the coordinates in which free kernels are evaluated.

A kernel of two arguments may be invariant to shifts; its kernel of four arguments is not, since its features are
monomials about the origin. Points in unit coordinates x are passed on as u = x - o.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from slayr_py.errors import DataError, did_you_mean
from slayr_py.space import FloatArray, Layout

Origin = str | Mapping[str, float]
ORIGINS = ("centre", "corner")


def check_origin(origin: Origin, columns: Sequence[str]) -> None:
    """Raise ``DataError`` for an unknown name or column, or a number outside [0, 1]."""
    if not isinstance(origin, Mapping):
        if not isinstance(origin, str) or origin not in ORIGINS:
            raise DataError(f"unknown origin {origin!r}{did_you_mean(origin, ORIGINS)}; or give {{column: number}}")
        return
    for column, value in origin.items():
        if column not in columns:
            raise DataError(f"origin names the column {column!r}{did_you_mean(column, columns)}")
        if not (isinstance(value, int | float | np.number) and 0 <= value <= 1):
            raise DataError(f"the origin of {column!r} is {value!r}; give a number in [0, 1]")


def origin_of(origin: Origin, layout: Layout) -> FloatArray:
    """Return the origin o of each encoded column, (C,).

    Parameters
    ----------
    origin : {"centre", "corner"} or mapping of str to float
        1/2 in every column, or 0, or the origin of some columns by name, with "centre" for the others. "centre" keeps 0
        for the columns of a categorical parameter.
    layout : Layout

    Raises
    ------
    DataError
        As :func:`check_origin`.
    """
    columns = layout.column_names
    check_origin(origin, columns)
    values = np.where(layout.is_level | (origin == "corner"), 0.0, 0.5)
    for column, value in origin.items() if isinstance(origin, Mapping) else ():
        values[columns.index(column)] = value
    return values


def binary_of(origin: FloatArray, layout: Layout) -> tuple[int, ...]:
    """Return the columns in which x - o is 0 or 1 for every configuration: levels with the origin 0."""
    return tuple(np.flatnonzero(layout.is_level & (origin == 0)).tolist())


def radius_of(origin: FloatArray) -> FloatArray:
    """Return the largest |x - o| of each column for x in [0, 1], (C,)."""
    return np.maximum(origin, 1 - origin)
