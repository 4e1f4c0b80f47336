"""Dates and durations in the columns of a table, as numbers whose unit does not depend on the data type.

Columns of dates of a DataFrame are the time since the first date, see :class:`~slayr_py.space.TimeScale`. Durations,
and dates of an array, are numbers of seconds: the integers behind them depend on the unit of the array.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from slayr_py.errors import DataError
from slayr_py.sklearn.features import categorical_positions
from slayr_py.space import TimeScale

_KINDS = {"M": "dates", "m": "durations"}  # by the kinds of NumPy's data types
_NUMBERS = "numbers"


class Times:
    """How the columns of dates and durations of a training table are read.

    Parameters
    ----------
    chosen : "from_dtype", None, or array_like of int, str or bool
        Columns of categories, as in `BayesianGPRegressor`. Those of a DataFrame keep their dates and durations.
    table : array_like or DataFrame
        Training data.

    Attributes
    ----------
    scales : dict of str to TimeScale
        Unit and origin of the columns of dates of a DataFrame.

    Raises
    ------
    DataError
        For a date that does not exist, dates of which only some have a time zone, periods, or an illegal ``chosen``.
    """

    def __init__(self, chosen: Any, table: Any) -> None:
        self._categories: list[int] = []
        self.scales: dict[Any, TimeScale] = {}
        if isinstance(table, pd.DataFrame) and not isinstance(chosen, str):
            self._categories = categorical_positions(chosen, table, [str(name) for name in table.columns])
        if isinstance(table, pd.DataFrame) and not table.columns.has_duplicates:
            for j, name in enumerate(table.columns):
                if j not in self._categories and isinstance(table[name].dtype, pd.PeriodDtype):
                    raise DataError(f"column {str(name)!r} has periods; make them dates: .dt.to_timestamp()")
                if j not in self._categories and (scale := TimeScale.of(str(name), table[name])) is not None:
                    self.scales[name] = scale
        self._fitted = self._kinds(_as_array(table))

    def numbers(self, table: Any) -> Any:
        """Return a table with numbers instead of dates and durations.

        Raises
        ------
        DataError
            If a column has dates, durations or numbers, unlike the training table, or durations in months or years.
        """
        table = _as_array(table)
        kinds = self._kinds(table)
        names = table.columns if isinstance(table, pd.DataFrame) else [f"x{j}" for j in range(len(kinds))]
        if len(kinds) == len(self._fitted):  # scikit-learn reports another number of columns
            for name, kind, fitted in zip(names, kinds, self._fitted, strict=True):
                if kind != fitted and {kind, fitted} & set(_KINDS.values()):
                    raise DataError(
                        f"column {str(name)!r} has {kind}, unlike the data of the fit, which has {fitted}; give the "
                        "columns in the form of the training data"
                    )
        if set(kinds) <= {_NUMBERS}:
            return table
        if not isinstance(table, pd.DataFrame):
            return _seconds(table)
        columns = [self._column(table.iloc[:, j], kind) for j, kind in enumerate(kinds)]
        return pd.concat(columns, axis=1).set_axis(table.columns, axis=1)

    def _kinds(self, table: Any) -> list[str]:
        """Describe the content of each column; none for what is not a table."""
        if isinstance(table, pd.DataFrame):
            kinds = [_KINDS.get(getattr(dtype, "kind", ""), _NUMBERS) for dtype in table.dtypes]
            kinds = [_NUMBERS if j in self._categories else kind for j, kind in enumerate(kinds)]
            return [str(self.scales.get(name, kind)) for name, kind in zip(table.columns, kinds, strict=True)]
        if getattr(table, "ndim", 0) != 2:
            return []
        kind = getattr(table.dtype, "kind", "")  # the data types of other libraries have none
        return [_KINDS.get(kind, _NUMBERS)] * table.shape[1]

    def _column(self, column: pd.Series[Any], kind: str) -> pd.Series[Any]:
        """Return the numbers of a column."""
        if column.name in self.scales:
            return self.scales[column.name].numbers(str(column.name), column)
        if kind not in _KINDS.values():
            return column
        if kind == _KINDS["M"]:
            column = pd.to_datetime(column, utc=True) - pd.Timestamp(0, tz="UTC")
        seconds: pd.Series[Any] = column.dt.total_seconds()
        return seconds


def _as_array(table: Any) -> Any:
    """Return a list of dates or durations as an array; anything else as it is."""
    if not isinstance(table, list | tuple):
        return table
    try:
        array = np.asarray(table)
    except ValueError:  # rows of several lengths, which scikit-learn reports
        return table
    return array if array.dtype.kind in _KINDS else table


def _seconds(array: Any) -> Any:
    """Return dates, since 1970, or durations of an array in seconds; NaN for empty cells."""
    unit, _ = np.datetime_data(array.dtype)
    if array.dtype.kind == "m" and unit in ("generic", "M", "Y"):
        raise DataError(
            f"the durations of X are of type {array.dtype}, which is no number of seconds; give days or a shorter unit"
        )
    durations = array - np.datetime64(0, "s") if array.dtype.kind == "M" else array
    return durations / np.timedelta64(1, "s")
