"""Checks of the arguments of pre-trained kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from slayr_py.errors import DataError
from slayr_py.kernels.learned.free_kernels import FreeKernel, from_family
from slayr_py.kernels.learned.layers import LAYERS
from slayr_py.kernels.learned.points import numbers
from slayr_py.space import FloatArray, Layout, jsonable

Range = tuple[float, float, bool]
"""Lower bound, upper bound, and whether the scale is logarithmic."""

Levels = tuple[Any, ...]
"""Values of an ordinal parameter in order, as in JSON."""

Values = TypeVar("Values", Range, Levels)


def ranges_of(encoder: Layout) -> dict[str, Range]:
    """Return lower bound, upper bound and whether the scale is logarithmic, of every real parameter."""
    return {d.name: (float(d.lower), float(d.upper), not d.is_linear) for d in encoder.dimensions if d.is_real}


def checked_range(name: str, values: Sequence[float]) -> Range:
    """Return the range of a real parameter; raise ``DataError`` for other values."""
    try:
        lower, upper, log = values
        checked = (float(lower), float(upper), bool(log))
    except (TypeError, ValueError) as error:
        raise DataError(f"ranges[{name!r}] is {values!r}; give a lower bound, an upper bound and a bool") from error
    if not checked[0] < checked[1]:
        raise DataError(f"ranges[{name!r}] is {values!r}; the lower bound must be below the upper bound")
    return checked


def spell_range(values: Range) -> str:
    """Return the text of a range."""
    return f"from {values[0]:g} to {values[1]:g}{' (logarithmic)' if values[2] else ''}"


def levels_of(encoder: Layout) -> dict[str, Levels]:
    """Return the levels of every ordinal parameter in order."""
    return {d.name: tuple(jsonable(d.levels)) for d in encoder.dimensions if d.kind == "ordinal"}


def checked_levels(name: str, values: Sequence[Any]) -> Levels:
    """Return the levels of an ordinal parameter as in JSON; raise ``DataError`` for other values."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise DataError(f"levels[{name!r}] is {values!r}; give a list of the levels in order")
    return tuple(jsonable(list(values)))


def spell_levels(values: Levels) -> str:
    """Return the text of levels."""
    return f"with the levels {list(values)}"


def check_same(learned: Mapping[str, Values], here: Mapping[str, Values], spell: Callable[[Values], str]) -> None:
    """Raise ``DataError`` for a parameter of a space whose values differ from those that a kernel was learned on."""
    for name, values in here.items():
        if values != learned.get(name, values):
            raise DataError(
                f"the kernel was learned on {name!r} {spell(learned[name])}, and the space has it {spell(values)}; "
                "pre-train on configurations of this space"
            )


def checked_layers(layers: int | Sequence[int], family: str) -> tuple[int, ...]:
    """Return the numbers of layers in order; raise ``DataError`` for layers that the family does not have."""
    given = [layers] if isinstance(layers, int) or not isinstance(layers, Iterable) else list(layers)
    integers = all(isinstance(layer, int | np.integer) and not isinstance(layer, bool) for layer in given)
    if not given or not integers or not set(given) <= LAYERS.keys() or len(set(given)) < len(given):
        raise DataError(f"layers is {layers!r}; use 0, 1, 2 or several of them, each once, such as (1, 2)")
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
        raise DataError(f"columns is {columns!r}; give a list of the names of the encoded columns")
    return tuple(columns)


def checked_family(
    family: str, lengthscale: ArrayLike | None, options: Mapping[str, Any], n_columns: int
) -> FreeKernel:
    """Return the kernel of the machine; raise ``DataError`` unless it fits points with ``n_columns`` columns."""
    if "lengthscale" in options:
        raise DataError("family_options has a lengthscale; pass it as the argument lengthscale")
    has_lengthscale = "lengthscale" in from_family(family, **options).options()
    if has_lengthscale and lengthscale is None:
        raise DataError(f"the {family} kernel needs a lengthscale")
    scales = {} if lengthscale is None else {"lengthscale": lengthscale}
    free = from_family(family, **scales, **options)
    free.series(n_columns)  # raises for another number of length-scales
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
        raise DataError("support or alpha has values that are not finite; remove them")
    if np.any((points < -1e-9) | (points > 1 + 1e-9)):
        outside = points[np.any((points < -1e-9) | (points > 1 + 1e-9), axis=1)][0]
        raise DataError(
            f"support has the point {outside.tolist()}; give coordinates of an encoder, which are in [0, 1]"
        )
    largest = float(np.max(np.abs(weights), initial=0.0))
    if largest == 0:
        raise DataError("all weights alpha are 0; use related data that vary")
    if abs(weights.sum()) > 1e-6 * largest:
        raise DataError(f"the weights alpha add up to {weights.sum():g}; they must add up to 0")
    return points, weights
