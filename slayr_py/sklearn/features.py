"""Columns of a table as the parameters of a search space, and their unit values.

A real column x is (x - lower) / width, where the training data range from lower to lower + width. The map is affine
without bounds, so that points outside the range of the training data are extrapolated and not clipped, up to the size
of numbers whose squares are finite.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from ConfigSpace import Categorical, ConfigurationSpace, Float
from numpy.typing import NDArray
from sklearn.utils import check_array

from slayr_py.errors import DataError, did_you_mean, listed
from slayr_py.space import Encoded, Encoder, FloatArray

_TIMES = (datetime.date, datetime.timedelta, np.datetime64, np.timedelta64, pd.Period)

_FARTHEST = 1e100  # unit value of a row far outside the training data


@dataclass(frozen=True)
class RealFeature:
    """A column of numbers.

    Attributes
    ----------
    name : str
    lower, width : float
        Smallest value and range of the training data.
    """

    name: str
    lower: float
    width: float

    @classmethod
    def of(cls, name: str, values: FloatArray) -> RealFeature:
        """Return the feature of a training column; a constant one has the width 1, or its size if that is larger."""
        lower = float(values.min())
        upper = float(values.max())
        if upper / 2 - lower / 2 > np.finfo(np.float64).max / 2:
            raise DataError(f"column {name!r} ranges from {lower} to {upper}, which is too wide; rescale it")
        if upper > lower:
            return cls(name, lower, upper - lower)
        return cls(name, lower, max(1.0, abs(lower)))

    def unit_values(self, values: FloatArray) -> FloatArray:
        """Return the values on the scale of the training data, whose range is [0, 1].

        It is at most 1e100 in size, so that squared distances are finite.
        """
        return np.clip((values - self.lower) / self.width, -_FARTHEST, _FARTHEST)


@dataclass(frozen=True)
class LevelFeature:
    """A column of categories.

    Attributes
    ----------
    name : str
    levels : tuple
        The categories that pandas declares, in their order, or the categories of the training data, sorted.
    ordered : bool
        Whether pandas declares the categories as ordered: neighbours are then similar.
    """

    name: str
    levels: tuple[Any, ...]
    ordered: bool = False

    @classmethod
    def of(cls, name: str, column: pd.Series[Any]) -> LevelFeature:
        """Return the feature of a training column."""
        if isinstance(column.dtype, pd.CategoricalDtype):
            return cls(name, tuple(column.dtype.categories.tolist()), bool(column.dtype.ordered))
        return cls(name, _sorted(column.dropna().tolist()))

    def unit_values(self, column: pd.Series[Any]) -> FloatArray:
        """Return the positions of the categories.

        Raises
        ------
        DataError
            For an empty cell, or a category that the training data lack.
        """
        if column.isna().any():
            row = int(np.argmax(column.isna()))
            raise DataError(f"column {self.name!r} is empty in row {row}; fill it in, or give it its own category")
        position = {level: i for i, level in enumerate(self.levels)}
        values = column.tolist()
        if new := [value for value in dict.fromkeys(values) if value not in position]:
            raise DataError(
                f"column {self.name!r} has categories that the training data lack: {listed(map(repr, new))}; "
                f"known: {listed(map(repr, self.levels))}. A pandas column of dtype 'category' may declare "
                "categories without data"
            )
        return np.array([position[value] for value in values], dtype=np.float64)


class Features:
    """The columns of a training table.

    Parameters
    ----------
    table : array or DataFrame with n rows
        Training data.
    names : sequence of str
        Names of the columns.
    categorical : sequence of int
        Positions of the columns of categories.

    Raises
    ------
    DataError
        For an empty cell in a column of categories, text in another column, or if no column varies.
    ValueError
        From scikit-learn, for a value in a column of numbers that is not a finite number.
    """

    def __init__(self, table: Any, names: Sequence[str], categorical: Sequence[int]) -> None:
        self.categorical = tuple(categorical)
        self.real = tuple(j for j in range(len(names)) if j not in self.categorical)
        refuse_text(table, self.categorical)
        self._real = [RealFeature.of(names[j], x) for j, x in zip(self.real, self._numbers(table).T, strict=True)]
        self._levels = [LevelFeature.of(names[j], _column(table, j)) for j in self.categorical]
        space = ConfigurationSpace()
        for feature in self._real:
            space.add(Float(feature.name, (0.0, 1.0)))
        # A column with one category carries no information, and a row with another category is an error.
        for column in self._levels:
            if len(column.levels) > 1:
                space.add(Categorical(column.name, _labels(column.levels), ordered=column.ordered))
        if not len(space):
            raise DataError(f"every column has a single category, so no column varies ({listed(map(repr, names))})")
        self.encoder = Encoder(space)

    def encode(self, table: Any) -> Encoded:
        """Return the encoded rows of a table with the columns of the training table.

        Raises
        ------
        DataError
            For an empty cell in a column of categories, or a category that the training data lack.
        ValueError
            From scikit-learn, for a value in a column of numbers that is not a finite number.
        """
        columns: dict[str, FloatArray] = {}
        for feature, x in zip(self._real, self._numbers(table).T, strict=True):
            columns[feature.name] = feature.unit_values(x)
        for levels, j in zip(self._levels, self.categorical, strict=True):
            columns[levels.name] = levels.unit_values(_column(table, j))
        values = np.column_stack([columns[name] for name in self.encoder.names])
        return Encoded(values, np.ones(values.shape, dtype=np.bool_), self.encoder)

    def _numbers(self, table: Any) -> FloatArray:
        """Return the columns of numbers, (n, columns)."""
        if not self.real:
            return np.empty((len(table), 0))
        if isinstance(table, pd.DataFrame):
            return np.asarray(check_array(table.iloc[:, list(self.real)], dtype=np.float64))
        return np.asarray(check_array(np.asarray(table)[:, list(self.real)], dtype=np.float64))


def categorical_positions(chosen: Any, table: Any, names: Sequence[str] | None) -> list[int]:
    """Return the positions of the columns of categories.

    Parameters
    ----------
    chosen : "from_dtype", None, or array_like of int, str or bool
        As in `BayesianGPRegressor`.
    table : array or DataFrame
    names : sequence of str or None
        Names of the columns, if the table has any.

    Raises
    ------
    DataError
        For an unknown name, a position outside the table, or a mask of another length.
    """
    if chosen is None:
        return []
    if isinstance(chosen, str):
        if chosen != "from_dtype":
            raise DataError(
                f"categorical_features must be 'from_dtype', None, or a list of positions or names, got {chosen!r}"
            )
        return _categorical_by_dtype(table)
    width = table.shape[1]
    given = np.asarray(chosen, dtype=object).ravel().tolist()
    if given and all(isinstance(value, bool | np.bool_) for value in given):
        if len(given) != width:
            raise DataError(f"categorical_features is a mask of {len(given)} values for {width} columns")
        return [int(j) for j in np.flatnonzero(given)]
    return sorted({_position(column, width, names) for column in given})


def _position(column: object, width: int, names: Sequence[str] | None) -> int:
    """Return the position of a column that is given by its name or its position."""
    if isinstance(column, str):
        if names is None:
            raise DataError(f"categorical_features names the column {column!r}, but X is not a DataFrame with names")
        if column not in names:
            raise DataError(f"categorical_features names no column of X: {column!r}{did_you_mean(column, names)}")
        return list(names).index(column)
    if not isinstance(column, int | np.integer) or not -width <= column < width:
        raise DataError(f"categorical_features has the position {column!r}; X has {width} columns")
    return int(column) % width


def _categorical_by_dtype(table: Any) -> list[int]:
    """Return the positions of the pandas columns of categories, strings, objects or truth values."""
    if not isinstance(table, pd.DataFrame):
        return []
    kinds = pd.api.types
    return [
        j
        for j, dtype in enumerate(table.dtypes)
        if isinstance(dtype, pd.CategoricalDtype)
        or kinds.is_object_dtype(dtype)
        or kinds.is_string_dtype(dtype)
        or kinds.is_bool_dtype(dtype)
    ]


def refuse_text(table: Any, categorical: Sequence[int] = ()) -> None:
    """Raise `DataError` for text that is no number, or dates, in a column that is not one of categories.

    An array with text is the result of a ``ColumnTransformer`` that lets a column of text pass.
    """
    if isinstance(table, pd.DataFrame):
        _refuse_text_columns(table, categorical)
        return
    values: NDArray[Any] = np.asarray(table)
    if values.ndim != 2 or values.dtype.kind not in "OU":
        return
    for j in range(values.shape[1]):
        if (date := first_time(values[:, j])) is not None:
            raise DataError(
                f"column {j} of the array has objects such as {date!r}; give dates and durations in a DataFrame, or in "
                "an array of NumPy's types datetime64 or timedelta64"
            )
        text = next(filter(_is_text, values[:, j].tolist()), None)
        if text is not None and j not in categorical:
            columns = ", ".join(map(str, sorted((*categorical, j))))
            raise DataError(
                f"column {j} of the array has text, such as {text!r:.80}, and an array does not tell which columns "
                f"have categories: name them, as in categorical_features=[{columns}], or let the transformer before "
                'return a DataFrame by set_output(transform="pandas")'
            )


def first_time(values: NDArray[Any]) -> object:
    """Return the first date, period or duration of an array of any data type; None if there is none."""
    if values.dtype.kind not in "OMm":
        return None
    return next((value for value in values.ravel() if isinstance(value, _TIMES)), None)


def _refuse_text_columns(table: pd.DataFrame, categorical: Sequence[int]) -> None:
    for j in sorted(set(_categorical_by_dtype(table)) - set(categorical)):
        try:
            pd.to_numeric(table.iloc[:, j])
        except (TypeError, ValueError) as error:
            name = table.columns[j]
            raise DataError(
                f"column {name!r} has text but is not among categorical_features, which replaces the choice by data "
                f"type; add {name!r} to it"
            ) from error


def _is_text(value: object) -> bool:
    """Return whether a value is a text that is no number."""
    if not isinstance(value, str):
        return False
    try:
        float(value)
    except ValueError:
        return True
    return False


def _column(table: Any, position: int) -> pd.Series[Any]:
    """Return one column, without the row labels of a DataFrame."""
    if isinstance(table, pd.DataFrame):
        return table.iloc[:, position].reset_index(drop=True)
    values: NDArray[Any] = np.asarray(table)[:, position]
    return pd.Series(values.tolist(), dtype=object)


def _sorted(values: Iterable[Any]) -> tuple[Any, ...]:
    """Return the distinct values in their order, or by type and text if they have no common order."""
    distinct = list(dict.fromkeys(values))
    try:
        return tuple(sorted(distinct))
    except TypeError:
        return tuple(sorted(distinct, key=lambda value: (type(value).__name__, str(value))))


def _labels(levels: Sequence[Any]) -> list[str]:
    """Return the distinct texts that name the levels in the posterior."""
    texts = [str(level) for level in levels]
    return texts if len(set(texts)) == len(texts) else [repr(level) for level in levels]
