"""Checks of the arguments of pre-trained kernels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from slayr_py.errors import DataError
from slayr_py.kernels.learned.free_kernels import FreeKernel, from_family
from slayr_py.kernels.learned.layers import LAYERS
from slayr_py.kernels.learned.points import numbers
from slayr_py.space import FloatArray, Layout

Range = tuple[float, float, bool]
"""Lower bound, upper bound, and whether the scale is logarithmic."""


def ranges_of(encoder: Layout) -> dict[str, Range]:
    """Return lower bound, upper bound and whether the scale is logarithmic, of every real parameter."""
    return {d.name: (float(d.lower), float(d.upper), d.log) for d in encoder.dimensions if d.is_real}


def checked_range(name: str, values: Sequence[float]) -> Range:
    """Return the range of a real parameter; ``DataError`` unless it is one."""
    try:
        lower, upper, log = values
        checked = (float(lower), float(upper), bool(log))
    except (TypeError, ValueError) as error:
        raise DataError(f"ranges[{name!r}] must be a lower bound, an upper bound and a bool, got {values!r}") from error
    if not checked[0] < checked[1]:
        raise DataError(f"ranges[{name!r}] must have a lower bound below the upper one, got {values!r}")
    return checked


def spell_range(values: Range) -> str:
    """Return the text of a range."""
    return f"from {values[0]:g} to {values[1]:g}{' (logarithmic)' if values[2] else ''}"


def checked_layers(layers: int | Sequence[int], family: str) -> tuple[int, ...]:
    """Return the numbers of layers in order; ``DataError`` for others, and for one layer of a family without."""
    given = [layers] if isinstance(layers, int) or not isinstance(layers, Iterable) else list(layers)
    integers = all(isinstance(layer, int | np.integer) and not isinstance(layer, bool) for layer in given)
    if not given or not integers or not set(given) <= LAYERS.keys():
        raise DataError(f"layers must be 1, 2 or (1, 2), got {layers!r}")
    chosen = tuple(layer for layer in LAYERS if layer in given)
    if 1 in chosen and family != "se":
        raise DataError(
            f"one layer of the family {family!r} is 0/0 at the origin, where its re-weighted kernel vanishes; use "
            "layers=2, or the family 'se'"
        )
    return chosen


def checked_columns(columns: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the encoded columns; ``DataError`` for a single string."""
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise DataError(f"columns must be the names of the encoded columns, got {columns!r}")
    return tuple(columns)


def checked_family(
    family: str, lengthscale: ArrayLike | None, options: Mapping[str, Any], n_columns: int
) -> FreeKernel:
    """Return the kernel of the machine; ``DataError`` unless it is one for points with ``n_columns`` columns."""
    if "lengthscale" in options:
        raise DataError("family_options are degree and coef0; the length-scale is an argument of its own")
    takes_one = "lengthscale" in from_family(family, **options).options()
    if takes_one and lengthscale is None:
        raise DataError(f"the {family} kernel needs a lengthscale")
    scales = {} if lengthscale is None else {"lengthscale": lengthscale}
    free = from_family(family, **scales, **options)
    free.series(n_columns)  # refuses another number of length-scales
    return free


def checked_support(support: ArrayLike, alpha: ArrayLike, n_columns: int) -> tuple[FloatArray, FloatArray]:
    """Return points (N, C) and weights (N,); ``DataError`` unless they describe a machine on the unit cube."""
    points = numbers("support", support)
    weights = numbers("alpha", alpha)
    if points.ndim != 2 or points.shape[1] != n_columns or weights.shape != points.shape[:1]:
        raise DataError(
            f"support must have a row for each of the {weights.size} weights and a column for each of the {n_columns} "
            f"names in columns, got shape {points.shape}"
        )
    if not (np.all(np.isfinite(points)) and np.all(np.isfinite(weights))):
        raise DataError("support and alpha must be finite")
    if np.any((points < -1e-9) | (points > 1 + 1e-9)):
        outside = points[np.any((points < -1e-9) | (points > 1 + 1e-9), axis=1)][0]
        raise DataError(f"support must be in [0, 1], the coordinates of an encoder; got {outside.tolist()}")
    largest = float(np.max(np.abs(weights), initial=0.0))
    if largest == 0:
        raise DataError("all weights alpha are 0: the related data teach nothing")
    if abs(weights.sum()) > 1e-6 * largest:
        raise DataError(f"the weights alpha must add up to 0, not {weights.sum():g}")
    return points, weights
