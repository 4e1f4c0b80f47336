"""Dates in the columns of tables, as the time since the first of them."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from slayr_py.errors import DataError

_ZONE = r"(Z|[+-]\d{2}:?\d{2})"
_ISO = re.compile(rf"\d{{4}}-\d{{2}}-\d{{2}}([ T]\d{{2}}:\d{{2}}(:\d{{2}}(\.\d+)?)?(?P<zone>{_ZONE})?)?")
_UNITS = {"days": 86_400.0, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0}  # seconds


@dataclass(frozen=True)
class TimeScale:
    """Unit and origin of the times in a column of dates.

    Attributes
    ----------
    origin : pandas.Timestamp
        The first date. In UTC, if the dates have a time zone.
    unit : {"days", "hours", "minutes", "seconds"}
        The largest unit of which the dates cover at least two.
    has_zone : bool
    """

    origin: pd.Timestamp
    unit: str
    has_zone: bool

    @classmethod
    def of(cls, name: str, column: pd.Series[Any]) -> Self | None:
        """Return the scale of a column; None if its cells are not dates.

        Raises
        ------
        DataError
            For a date that does not exist, or if only some dates have a time zone.
        """
        if not has_dates(column):
            return None
        times = _times(name, column).dropna()
        seconds = (times.max() - times.min()).total_seconds()
        unit = next((unit for unit, length in _UNITS.items() if seconds >= 2 * length), "seconds")
        return cls(times.min(), unit, bool(_zones(column).any()))

    def numbers(self, name: str, column: pd.Series[Any]) -> pd.Series[float]:
        """Return the times of dates; NaN for an empty cell.

        Raises
        ------
        DataError
            If a cell is not a date, or has a time zone unlike the dates of the scale.
        """
        if not has_dates(column):
            raise DataError(f"column {name!r} has no dates, unlike the data of the fit, which has {self}")
        if bool(_zones(column).any()) != self.has_zone:
            raise DataError(f"the dates of column {name!r} differ from the data of the fit in having a time zone")
        return (_times(name, column) - self.origin).dt.total_seconds() / _UNITS[self.unit]

    def __str__(self) -> str:
        """Return unit and origin, as in "days since 2024-03-01"."""
        text = self.origin.tz_localize(None).isoformat(sep=" ").removesuffix(" 00:00:00")
        return f"{self.unit} since {text}" + " UTC" * self.has_zone


def is_date(value: object) -> bool:
    """Return whether a value is a date, or the text of one in the form 2024-03-01 or 2024-03-01 12:30:00."""
    if isinstance(value, str):
        return bool(_ISO.fullmatch(value.strip()))
    return isinstance(value, datetime.date | np.datetime64) and not pd.isna(value)


def has_dates(column: pd.Series[Any]) -> bool:
    """Return whether all cells of a column that are not empty are dates, and there are some."""
    if pd.api.types.is_datetime64_any_dtype(column):
        return bool(column.notna().any())
    if not (pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column)):
        return False
    known = column.dropna()
    return bool(len(known)) and all(map(is_date, known))


def _zones(column: pd.Series[Any]) -> pd.Series[bool]:
    """Return which cells that are not empty have a time zone."""

    def has_zone(value: Any) -> bool:
        if isinstance(value, str):
            match = _ISO.fullmatch(value.strip())
            return match is not None and match["zone"] is not None
        return getattr(value, "tzinfo", None) is not None

    return column.dropna().map(has_zone).astype(bool)


def _times(name: str, column: pd.Series[Any]) -> pd.Series[pd.Timestamp]:
    zones = _zones(column)
    if zones.any() and not zones.all():
        raise DataError(f"some dates of column {name!r} have a time zone and others have none; write all alike")
    try:
        if pd.api.types.is_datetime64_any_dtype(column):
            return pd.to_datetime(column, utc=True)
        texts = column.map(lambda value: value.strip() if isinstance(value, str) else value)
        return pd.to_datetime(texts, format="ISO8601", utc=True)
    except (ValueError, TypeError, OverflowError) as error:
        raise DataError(f"column {name!r} has a date that does not exist: {error}") from error
