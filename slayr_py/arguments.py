"""Check integers, numbers, probabilities and flags, with errors that name the argument and its value."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np

from slayr_py.errors import DataError


def check_integer(name: str, value: Any, minimum: int = 1, maximum: int | None = None) -> int:
    """Return an integer argument as a plain ``int``.

    Raises
    ------
    DataError
        If the value is not an integer (booleans are rejected) or lies outside ``minimum`` to ``maximum``.
    """
    wanted = f">= {minimum}" if maximum is None else f"from {minimum} to {maximum}"
    try:
        number = operator.index(value)
    except TypeError:
        number = minimum - 1
    if isinstance(value, bool | np.bool_) or number < minimum or (maximum is not None and number > maximum):
        raise DataError(f"{name} must be an integer {wanted}, got {value!r}")
    return number


def is_time(value: object) -> bool:
    """Return whether a value is a date or a duration of NumPy, which it would convert to a number of its units."""
    return getattr(getattr(value, "dtype", None), "kind", None) in ("m", "M")


def is_number(value: object) -> bool:
    """Return whether a value is a real number of Python or NumPy, ``Decimal`` and ``Fraction`` included, not a bool."""
    return isinstance(value, Real | Decimal) and not isinstance(value, bool) and not is_time(value)


def plain_scalar(value: Any) -> Any:
    """Return the value in a scalar of NumPy or of another library, such as a tensor without dimensions; else itself."""
    return value.item() if hasattr(value, "item") and not shape_of(value) else value


def shape_of(value: object) -> tuple[Any, ...]:
    """Return the shape of an array or a tensor; () of anything else."""
    shape = getattr(value, "shape", ())
    return tuple(shape) if isinstance(shape, Sequence) else ()


def to_float(value: Any) -> float:
    """Convert a number to a float: NaN if it is masked.

    Raises
    ------
    TypeError, ValueError, OverflowError
        If it is not a number, or too large.
    """
    if is_time(value):
        raise TypeError(f"{value!r} is a date or a duration, not a number")
    is_masked = isinstance(value, np.ma.MaskedArray) and np.ma.getmaskarray(value).any()
    return float("nan") if is_masked else float(value)


def real_or_nan(value: object) -> float:
    """Return a real number as a float; NaN for anything else, and if it is too large."""
    try:
        return to_float(value) if is_number(value) else float("nan")
    except (ValueError, OverflowError):  # a signalling NaN of a Decimal, a huge integer
        return float("nan")


def plain_number(value: object) -> object:
    """Return a ``Decimal`` or ``Fraction`` as a float, any other value as it is."""
    return real_or_nan(value) if isinstance(value, Decimal | Fraction) else value


def check_number(name: str, value: Any, least: float | None = None) -> float:
    """Return a number as a plain ``float``.

    Raises
    ------
    DataError
        If the value is not finite (booleans and texts are rejected), or not positive; with ``least``, if it is smaller
        than that, which may be ``-inf``.
    """
    try:
        number = float("nan") if isinstance(value, bool | np.bool_ | str | bytes) else to_float(value)
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not (number > 0 if least is None else number >= least) or not np.isfinite(number):
        wanted = "positive and " if least is None else f"at least {least:g} and " * bool(np.isfinite(least))
        raise DataError(f"{name} must be {wanted}finite, got {value!r}")
    return number


def check_probability(name: str, value: Any) -> float:
    """Return a probability as a plain ``float``.

    Raises
    ------
    DataError
        If the value is not a single number in (0, 1).
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise DataError(f"{name} must be a single number in (0, 1), got {value!r}")
    return float(value)


def check_progress(value: object) -> None:
    """Raise `DataError` for what is neither a function nor None, such as the True of a progress bar."""
    if value is not None and not callable(value):
        raise DataError(f"progress must be a function of the name of a phase, such as print, or None; got {value!r}")


def check_flag(name: str, value: object) -> bool:
    """Return a truth value, also NumPy's, as a plain ``bool``.

    Raises
    ------
    DataError
        If the value is neither True nor False.
    """
    if not isinstance(value, bool | np.bool_):
        raise DataError(f"{name} must be True or False, got {value!r}")
    return bool(value)
