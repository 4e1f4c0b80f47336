"""Arguments of learned kernels as arrays of numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from slayr_py.errors import DataError
from slayr_py.space import FloatArray


def numbers(name: str, values: ArrayLike) -> FloatArray:
    """Return a new array of numbers; ``DataError`` for anything else."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} is {values!r:.200}; give numbers") from error


def checked_points(name: str, points: ArrayLike) -> FloatArray:
    """Return points as an (n, d) array; ``DataError`` unless they are a table of finite numbers."""
    array = numbers(name, points)
    if array.ndim != 2 or array.shape[1] == 0:
        raise DataError(f"{name} has shape {array.shape}; give shape (n, d) with d >= 1")
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        raise DataError(f"{name} has a value that is not finite in row {int(np.argmin(finite))}; remove the row")
    return array
