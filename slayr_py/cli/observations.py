"""Observations from a table: configurations, targets and the space of the columns."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
import typer
from ConfigSpace import (
    CategoricalHyperparameter,
    ConfigurationSpace,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)
from ConfigSpace.hyperparameters import Hyperparameter, NumericalHyperparameter

from slayr_py.cli.checks import ConfigError
from slayr_py.cli.columns import logarithmic, parameter_columns, quantities, with_times
from slayr_py.cli.csv_files import read_table
from slayr_py.cli.inline_space import LARGEST_FLOAT, LARGEST_INTEGER, read_space
from slayr_py.errors import DataError, SpaceError, did_you_mean
from slayr_py.space import SMALLEST_SPAN, Encoder, FloatArray

_LISTED = 5  # rows listed in a message


class ObservationTable(NamedTuple):
    """Observations and their space."""

    configs: list[dict[str, Any]]
    y: FloatArray
    space: ConfigurationSpace


@dataclass(frozen=True)
class Source:
    """A CSV file of observations and the choice of its columns: options of ``slayr fit`` and ``slayr search``."""

    data: Annotated[Path, typer.Argument(metavar="DATA", help="A CSV table with one row per observation.")]
    target: Annotated[str, typer.Option(metavar="COLUMN", help="Column to model.")]
    space: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Space as ConfigSpace JSON; default: the ranges of the columns.")
    ] = None
    parameter: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Column that is a parameter even if it looks like row numbers or dates."),
    ] = None
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Column to leave out; may be repeated.")
    ] = None
    drop_empty: Annotated[
        bool, typer.Option("--drop-empty", help="Leave out rows whose target is empty; otherwise they are an error.")
    ] = False

    def arguments(self) -> list[str]:
        """Return the words of a command with this source."""
        words = [str(self.data), "--target", self.target]
        for name in self.parameter or ():
            words += ["--parameter", name]
        for name in self.ignore or ():
            words += ["--ignore", name]
        if self.space is not None:
            words += ["--space", str(self.space)]
        return [*words, "--drop-empty"] if self.drop_empty else words


def read_observations(source: Source) -> ObservationTable:
    """Read a table; print which columns and rows are left out, and how many observations and parameters remain.

    Raises
    ------
    ConfigError
        If the table lacks a column, or the columns of a space are chosen again.
    DataError
        If the table cannot be read, or a target is empty or not a number.
    SpaceError
        If a row is not a configuration of the space, for example because a cell is empty.
    """
    data = source.data
    target = source.target
    table = read_table(data)
    if target not in table.columns:
        raise ConfigError(f"{data} has no column {target!r}{did_you_mean(target, map(str, table.columns))}")
    y = _targets(table[target], data, source.drop_empty)
    columns, space = _columns_and_space(table.drop(columns=target), y.index, source)
    typer.echo(f"{len(y)} observations of {target}, {len(space)} parameters")
    configs = _rows(columns, space)
    _check_rows(configs, [int(row) + 1 for row in y.index], space, data)
    return ObservationTable(configs, y.to_numpy(dtype="float64"), space)


def _check_rows(configs: Sequence[dict[str, Any]], rows: Sequence[int], space: ConfigurationSpace, data: Path) -> None:
    """Raise `SpaceError` with the number of the row for the first configuration that does not belong to the space."""
    encoder = Encoder(space)
    try:
        encoder.encode(configs)
        return
    except SpaceError:
        pass  # the message has the position among the rows that are left
    for row, config in zip(rows, configs, strict=True):
        try:
            encoder.configuration(config)
        except SpaceError as error:
            empty = ": fill in empty cells, or leave out the row or the column" if len(config) < len(space) else ""
            raise SpaceError(f"row {row} of {data}: {error}{empty}") from None


def _targets(column: pd.Series[Any], data: Path, drop_empty: bool) -> pd.Series[Any]:
    """Return the target of each row as a number, without the empty ones if they may be dropped."""
    column = column.mask(column.isin(["NA"]))  # a missing value in R
    empty = [int(row) + 1 for row in np.flatnonzero(column.isna())]
    if empty:
        which = f"row {empty[0]}" if len(empty) == 1 else f"{len(empty)} rows ({_list(empty)})"
        if len(empty) == len(column):
            raise DataError(f"{data} has no value of {column.name}: all its cells are empty")
        if not drop_empty:
            raise DataError(
                f"the {column.name} of {which} of {data} is empty or NaN: fill it in, or leave such rows out with "
                "--drop-empty"
            )
        typer.echo(f"left out: {which} with an empty {column.name}")
        column = column.dropna()
    y = pd.to_numeric(column, errors="coerce")
    if y.isna().any():
        odd = _odd_cell(column)
        row = y.index[int(y.isna().to_numpy().argmax())] if odd is None else odd
        raise DataError(
            f"row {row + 1} of {data} has the {column.name} {column[row]!r}, which is not a number; leave it empty "
            "if it is missing"
        )
    if (infinite := np.flatnonzero(np.isinf(y.to_numpy(dtype=np.float64)))).size:
        row = y.index[infinite[0]]
        raise DataError(f"row {row + 1} of {data} has the {column.name} {y[row]}; leave it empty if the run has failed")
    return y


def _check_numbers(columns: pd.DataFrame, data: Path, remedy: str = "") -> None:
    """Raise `DataError` if a cell of a column of numbers is infinite, or makes it a column of texts."""
    for name in columns.columns:
        if (row := _odd_cell(columns[name])) is not None:
            way_out = remedy.format(shlex.quote(str(name)))
            raise DataError(
                f"row {row + 1} of {data} has {_python(columns[name][row])!r} in column {str(name)!r} of numbers: "
                f"correct the cell, which is empty if it has no value{way_out}"
            )


def _odd_cell(column: pd.Series[Any]) -> int | None:
    """Return the row of the first cell that is no finite number, or has another decimal mark, if most are numbers."""
    if pd.api.types.is_numeric_dtype(column):
        infinite = column.index[np.isinf(column.to_numpy(dtype=np.float64, na_value=np.nan))]
        return int(infinite[0]) if len(infinite) else None
    if column.dropna().empty:
        return None
    texts = column.dropna().astype(str)
    numbers = pd.to_numeric(texts.str.replace(",", "."), errors="coerce").notna()
    if numbers.mean() <= 0.5:
        return None
    points, commas = (numbers & texts.str.contains(mark, regex=False) for mark in ".,")
    odd = ~numbers | (points if commas.sum() > points.sum() else commas)
    return int(odd.index[int(odd.to_numpy().argmax())])  # the first row if all cells have decimal commas


def _list(rows: Sequence[int]) -> str:
    return ", ".join(map(str, rows[:_LISTED])) + (", ..." if len(rows) > _LISTED else "")


def _columns_and_space(
    columns: pd.DataFrame, rows: pd.Index[Any], source: Source
) -> tuple[pd.DataFrame, ConfigurationSpace]:
    """Return the columns of the parameters in these rows, and their space; print which columns are left out."""
    if source.space is None:
        names, notes = parameter_columns(columns, source.data, source.parameter or (), source.ignore or ())
        for note in notes:
            typer.echo(note)
        columns, dates = with_times(columns.loc[rows, names])
        for note in dates:
            typer.echo(note)
        remedy = ", leave the column out with --ignore {}, or declare its categories in a space with --space"
        _check_numbers(columns, source.data, remedy)
        space = infer_space(columns)
        for note in (*logarithmic(columns), *quantities(columns)):
            typer.echo(note)
        return columns, space
    if source.parameter or source.ignore:
        raise ConfigError("--space names the parameters; leave out --parameter and --ignore")
    space = read_space(source.space)
    if missing := [name for name in space if name not in columns]:
        raise ConfigError(
            f"{source.data} has no column for the parameter {missing[0]!r}{did_you_mean(missing[0], columns.columns)}"
        )
    columns = columns.loc[rows, list(space)]
    numbers = [name for name, parameter in space.items() if isinstance(parameter, NumericalHyperparameter)]
    _check_numbers(columns[numbers], source.data)
    return columns, space


def infer_space(columns: pd.DataFrame) -> ConfigurationSpace:
    """Return the space of a table's columns: ranges of numbers, categories of anything else.

    Parameters
    ----------
    columns : pandas.DataFrame
        One column per parameter.

    Raises
    ------
    DataError
        If a column is constant or empty.
    """
    space = ConfigurationSpace()
    space.add(*(_parameter(str(name), columns[name].dropna()) for name in columns.columns))
    return space


def _parameter(name: str, values: pd.Series[Any]) -> Hyperparameter[Any, Any]:
    distinct = values.unique()
    if len(distinct) < 2:
        raise DataError(
            f"column {name!r} does not vary, so the fit cannot use it: leave it out with "
            f"--ignore {shlex.quote(name)}, or give a space with --space"
        )
    if pd.api.types.is_bool_dtype(values) or not pd.api.types.is_numeric_dtype(values):
        return CategoricalHyperparameter(name, sorted((_python(value) for value in distinct), key=str))
    low = float(values.min())
    high = float(values.max())
    if max(-low, high) > LARGEST_FLOAT or high - low < SMALLEST_SPAN:
        extent = "large" if max(-low, high) > LARGEST_FLOAT else "small"
        raise DataError(
            f"column {name!r} spans from {low} to {high}, which is too {extent} for ConfigSpace: rescale it, or leave "
            f"it out with --ignore {shlex.quote(name)}"
        )
    # pandas reads a column of integers with an empty cell as floats.
    if (values == values.round()).all() and max(-low, high) <= LARGEST_INTEGER:
        return UniformIntegerHyperparameter(name, int(values.min()), int(values.max()))
    # ConfigSpace rounds bounds. Rounded outwards to fewer digits before, they contain every value.
    unit = 10.0 ** (math.floor(math.log10(high - low)) - 6)
    return UniformFloatHyperparameter(name, math.floor(low / unit) * unit, math.ceil(high / unit) * unit)


def _rows(columns: pd.DataFrame, space: ConfigurationSpace) -> list[dict[str, Any]]:
    """Return the rows of a table as configurations, without empty cells and with whole numbers as integers."""
    rows = []
    for record in columns.astype(object).to_dict(orient="records"):
        row = {str(name): _python(value) for name, value in record.items() if not pd.isna(value)}
        for name, value in row.items():
            if (
                isinstance(space[name], UniformIntegerHyperparameter)
                and isinstance(value, float)
                and value.is_integer()
            ):
                row[name] = int(value)
        rows.append(row)
    return rows


def _python(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
