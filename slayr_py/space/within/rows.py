"""Lists of what can be evaluated: some parameters take their values together, from one row of a table.

Symbols
-------
m, k : rows and columns of a list. n, D, numbers : as in :mod:`slayr_py.space.within.region`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from ConfigSpace import ConfigurationSpace
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from slayr_py.errors import SpaceError, did_you_mean, listed
from slayr_py.space.dimension import Dimension, FloatArray
from slayr_py.space.fixed import Fixed
from slayr_py.space.rules import BoolArray

MOST_ROWS = 20_000
"""Of a list, whose rows are stored with a study."""

_DIFFERENT = np.sqrt(0.5)  # entry of one level of a category: two levels are as far apart as the bounds of a number


class Rows:
    """Rows of a table, one of which a configuration has in the parameters that are its columns.

    Parameters
    ----------
    table : DataFrame or mapping of str to sequence
        One column for each of some parameters.

    Raises
    ------
    SpaceError
        If it has no rows or too many, or an empty cell.
    """

    def __init__(self, table: pd.DataFrame | Mapping[str, Sequence[Any]]) -> None:
        frame = table if isinstance(table, pd.DataFrame) else pd.DataFrame(dict(table))
        if not 0 < len(frame) <= MOST_ROWS or not len(frame.columns):
            raise SpaceError(
                f"a table in within= has {len(frame)} rows and {len(frame.columns)} columns; give at least one, and at "
                f"most {MOST_ROWS} rows"
            )
        if frame.columns.has_duplicates:
            raise SpaceError(f"a table in within= has a column twice: {listed(map(str, frame.columns))}")
        if (empty := frame.isna().to_numpy()).any():
            row, column = np.argwhere(empty)[0]
            raise SpaceError(
                f"a table in within= has no value of {frame.columns[column]!r} in row {frame.index[row]}; leave the "
                "row out, or the column, if the parameter may have any value"
            )
        self.columns: dict[Any, list[Any]] = {name: frame[name].tolist() for name in frame.columns}
        self.labels: list[Any] = frame.index.tolist()

    @property
    def text(self) -> str:
        """What it allows, for messages."""
        count = len(next(iter(self.columns.values())))
        return f"one of {count} row{'s' * (count > 1)} of {listed(self.columns)}"


@dataclass(frozen=True, eq=False)
class Choice:
    """The rows of a list as numbers, each once.

    Attributes
    ----------
    rows : Rows
    columns : (k,) int
        Places of the columns among the parameters of the space.
    dimensions : tuple of Dimension
        Those k parameters, on the scales of the unit values.
    numbers : (m, k) float64
        Level indices and real values.
    """

    rows: Rows
    columns: NDArray[np.intp]
    dimensions: tuple[Dimension, ...]
    numbers: FloatArray

    @classmethod
    def of(cls, rows: Rows, space: ConfigurationSpace, dimensions: Sequence[Dimension]) -> Choice:
        """Read the rows of a list.

        Raises
        ------
        SpaceError
            If a column is not a parameter that every configuration has, or a value is illegal.
        """
        place = {d.name: j for j, d in enumerate(dimensions)}
        for name in rows.columns:
            if name not in place or space.parents_of[name]:
                why = "which is constant or conditional" if name in space else "which is not a parameter"
                hint = "" if name in space else did_you_mean(str(name), place)
                raise SpaceError(f"a table in within= has the column {name!r}, {why}; leave it out{hint}")
        own = tuple(dimensions[place[name]] for name in rows.columns)
        numbers = np.column_stack([_numbers(d, rows.columns[d.name], rows.labels) for d in own])
        _, first = np.unique(numbers, axis=0, return_index=True)
        columns = np.array([place[d.name] for d in own], dtype=np.intp)
        return cls(rows, columns, own, numbers[np.sort(first)])

    def on(self, dimensions: Sequence[Dimension]) -> Choice:
        """Return the list for the same parameters of a space on other scales."""
        return replace(self, dimensions=tuple(dimensions[j] for j in self.columns))

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def stored(self) -> dict[str, Any]:
        """Return the list as plain JSON."""
        return {"rows": {d.name: d.values(x) for d, x in zip(self.dimensions, self.numbers.T, strict=True)}}

    @cached_property
    def unit_values(self) -> FloatArray:
        """Unit values of the rows, (m, k)."""
        return self._to_units(self.numbers)

    def _to_units(self, numbers: FloatArray) -> FloatArray:
        """Return the unit values of numbers (n, k)."""
        return np.column_stack([d.unit_values(x) for d, x in zip(self.dimensions, numbers.T, strict=True)])

    @cached_property
    def _trees(self) -> dict[bytes, cKDTree]:
        return {}

    def having(self, fixed: Fixed | None) -> NDArray[np.intp]:
        """Return the rows with the fixed values."""
        among = np.ones(len(self), dtype=np.bool_)
        for column, number in () if fixed is None else zip(fixed.columns, fixed.numbers, strict=True):
            for place in np.flatnonzero(self.columns == column):
                among &= self.numbers[:, place] == number
        return np.flatnonzero(among)

    def nearest(self, unit_values: FloatArray, among: NDArray[np.intp] | None = None, count: int = 1) -> Any:
        """Return for each of n points (n, k) the nearest rows (n,), or (n, count), the nearest first.

        Levels of a category are as far apart as the bounds of a number. ``among`` are the rows to choose from.
        """
        chosen = np.arange(len(self)) if among is None else among
        key = chosen.tobytes()
        if key not in self._trees:
            if len(self._trees) > 8:  # contexts with other values
                self._trees.clear()
            self._trees[key] = cKDTree(self._embedded(self.unit_values[chosen]))
        _, found = self._trees[key].query(self._embedded(unit_values), k=[*range(1, min(count, len(chosen)) + 1)])
        rows = chosen[found]
        return rows[:, 0] if count == 1 else rows

    def _embedded(self, unit_values: FloatArray) -> FloatArray:
        """Return points whose Euclidean distances are those of unit values (n, k)."""
        parts = []
        for d, column in zip(self.dimensions, unit_values.T, strict=True):
            if d.kind == "categorical":
                parts.append(_DIFFERENT * (np.rint(column)[:, None] == np.arange(len(d.levels))))
            else:
                parts.append(column[:, None] / d.width)
        return np.hstack(parts)

    def contains(self, numbers: FloatArray, slack: FloatArray) -> BoolArray:
        """Return which of n configurations have a row up to a slack of real parameters, (n,); both are (n, D)."""
        own = numbers[:, self.columns]
        real = np.array([d.is_real for d in self.dimensions])
        allowed = np.where(real, slack[:, self.columns], 0.0)
        return np.asarray((np.abs(self.numbers[self.nearest(self._to_units(own))] - own) <= allowed).all(axis=1))


def _numbers(dimension: Dimension, values: Sequence[Any], labels: Sequence[Any]) -> FloatArray:
    """Return the numbers of the values of a column, whose rows have labels for messages."""
    found = []
    for value, label in zip(values, labels, strict=True):
        try:
            found.append(dimension.number(value))
        except SpaceError as error:
            raise SpaceError(f"row {label} of a table in within=: {error}") from None
    return dimension.rounded(np.array(found, dtype=np.float64))
