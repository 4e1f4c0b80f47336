"""Read past experiments from a CSV file, as spreadsheets write it, and write proposals in the same form."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from slayr_py.errors import DataError, did_you_mean
from slayr_py.space import Dimension, Encoder, is_date
from slayr_py.study.storage.attributes import ERROR_KEY
from slayr_py.study.storage.columns import OBJECTIVE, PARAMETER, error_columns, value_columns
from slayr_py.study.storage.costs import TRIAL_COLUMNS
from slayr_py.text_files import decimal_mark, read_text, table_note, table_separator

PENDING = "PENDING"
"""State of an experiment without a result yet."""

PRUNED = "PRUNED"
"""State of a trial that a pruner has stopped."""

STATUS = "status"
"""Column with the status of experiments, in `_STATES`; capital letters do not matter."""

_STATES = {
    "": None,
    **dict.fromkeys(("done", "ok", "complete", "completed", "finished"), "COMPLETE"),
    **dict.fromkeys(("failed", "fail", "error"), "FAIL"),
    **dict.fromkeys(("planned", "pending", "running", "waiting"), PENDING),
}
_EMPTY = ("", "nan", "NaN")
_STATE = "state"
_LEFT_OUT = {
    "pruned: the last value that it reported is not a result": (PRUNED,),
    "not finished": ("RUNNING", "WAITING"),
}
_OF_TRIALS = ("COMPLETE", "FAIL", PRUNED, "RUNNING", "WAITING")


@dataclass(frozen=True)
class FileForm:
    """How a CSV file is written.

    Attributes
    ----------
    columns : tuple of str
    separator : str
    decimal : str
        "." or ",".
    status : str
        Column of the status, which may be missing in ``columns``.
    """

    columns: tuple[str, ...]
    separator: str = ","
    decimal: str = "."
    status: str = STATUS


def read_experiments(
    path: str | Path,
    encoder: Encoder,
    targets: Sequence[str] = ("value",),
    *,
    cost: str | None = None,
    separator: str | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> tuple[pd.DataFrame, FileForm]:
    """Read a table of experiments: a column per parameter and per result.

    Rows count from 1, the first below the header.

    Semicolons or tabs between cells and commas in numbers are recognised. A column ``status`` tells finished, failed
    and planned experiments apart: "planned" or an empty status without a result means that there is none yet. Without
    this column, an experiment without a result failed. In a table of trials, the column ``state`` counts where it is
    not empty. Empty rows and columns are left out, and so are pruned and unfinished trials. Levels that are texts are
    read as texts, also if they look like numbers; "None" and "NA" may be levels.

    Parameters
    ----------
    path : str or Path
    encoder : Encoder
    targets : sequence of str
        Columns of the results, one for each objective. Those of several may be called ``values_<name>``.
    cost : str, optional
        Column of the costs, which may be missing or called ``user_attrs_<name>``; an empty cell is an unknown cost.
    separator : str, optional
        Character between cells; by default it is recognised by the header.
    note : callable
        Receives sentences about what was recognised and left out.

    Returns
    -------
    table : pandas.DataFrame
        Columns of parameters (``params_state`` and ``params_value`` if they have these names), ``value`` (of several
        objectives, ``values_<name>``), their known errors ``y_sd``, costs, and "state": COMPLETE, FAIL or PENDING.
    form : FileForm

    Raises
    ------
    DataError
        If the file cannot be read, a column is missing, or a cell is not what its column holds; the message has the
        row and the column.
    """
    path = Path(path)
    rows, used = read_cells(path, separator)
    header = rows[0]
    if repeated := [name for name in header if header.count(name) > 1]:
        raise DataError(f"{path} has two columns {repeated[0]!r}; rename or drop one of them")
    results = [_result_column(target, header, len(targets)) for target in targets]
    costs = [] if cost is None else [name for name in header if name in (cost, f"user_attrs_{cost}")]
    numeric = {*results, *costs, ERROR_KEY, *encoder.real_names, *(PARAMETER + name for name in encoder.real_names)}
    decimal = decimal_mark(used, (row[i] for i, name in enumerate(header) if name in numeric for row in rows[1:]))
    if written := table_note(path, used, decimal):
        note(written)
    table = pd.DataFrame(rows[1:], columns=header, index=pd.RangeIndex(1, len(rows)), dtype=object)
    if (empty := table.index[(table == "").all(axis=1)]).size:
        note(f"left out: row{'s' if len(empty) > 1 else ''} {', '.join(map(str, empty))} of {path.name}, empty")
        table = table.drop(index=empty)
    told = _trial_states(table, encoder)
    for why, states in _LEFT_OUT.items():
        if (left := told.index[told.isin(states)]).size:
            note(f"left out: row{'s' * (len(left) > 1)} {', '.join(map(str, left))} of {path.name}, {why}")
            table = table.drop(index=left)
    status = _status_column(header, _held(header, encoder, (*results, *costs)))
    form = FileForm(tuple(header), used, decimal, status or new_status(header))
    return _read(table, path, encoder, targets, costs, status, decimal, note), form


def _result_column(target: str, columns: Sequence[str], count: int) -> str:
    """Return the column of the results of one of several objectives, also in a table of trials."""
    of_trials = OBJECTIVE + target
    return of_trials if count > 1 and target not in columns and of_trials in columns else target


def _trial_states(table: pd.DataFrame, encoder: Encoder) -> pd.Series[Any]:
    """Return the states that the column ``state`` of a table of trials has, else empty texts."""
    of_parameter = _STATE in encoder.space and PARAMETER + _STATE not in table.columns
    if _STATE in table.columns and not of_parameter and table[_STATE].isin(("", *_OF_TRIALS)).all():
        return table[_STATE]
    return pd.Series("", index=table.index)


def has_only_proposals(path: Path, encoder: Encoder, targets: Sequence[str], separator: str | None = None) -> bool:
    """Return whether a file is empty, or a table of experiments that are all planned and have no result."""
    if not path.stat().st_size:
        return True
    try:
        rows, _ = read_cells(path, separator)
    except DataError:
        return False
    header = rows[0]
    results = [_result_column(target, header, len(targets)) for target in targets]
    held = _held(header, encoder, results)
    legal = dict.fromkeys(results, ("",)) | {_status_column(header, held): ("", "planned")}
    if _STATE not in held:
        legal[_STATE] = ("",)
    return any(name in header for name in results) and all(
        cell.lower() in legal[name] for row in rows[1:] for name, cell in zip(header, row, strict=True) if name in legal
    )


def read_cells(path: Path, separator: str | None = None) -> tuple[list[list[str]], str]:
    """Return the header and the rows, without the empty columns that spreadsheets append, and the separator.

    Raises
    ------
    DataError
        If the file cannot be read, is empty or has an open quotation mark, or a row has another length than the header.
    """
    recognised, text = table_separator(read_text(path, "table", DataError))
    used = separator or recognised
    if len(used) != 1:
        raise DataError(f"the separator is {used!r}; give one character, such as ';'")
    rows = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=used, strict=True):
            cells = [cell.strip() for cell in row]
            if cells not in ([], [""]):
                rows.append(cells)
    except csv.Error as error:
        where = f"row {len(rows)}" if rows else "the header"
        raise DataError(
            f"{path} cannot be read as a table: {error} in {where}; a quotation mark may lack its partner"
        ) from error
    if not rows or not any(rows[0]):
        raise DataError(f"{path} is empty; the first line must have the names of the columns")
    named = max(i for i, name in enumerate(rows[0]) if name) + 1
    rows = [row if any(row[named:]) else row[:named] for row in rows]
    for number, row in enumerate(rows[1:], start=1):
        if len(row) != len(rows[0]):
            raise DataError(
                f"{path} has {len(row)} cells in row {number} and {len(rows[0])} columns; if numbers have decimal "
                "commas, separate the cells by semicolons"
            )
    return rows, used


def parameter_column(name: str, columns: Sequence[str]) -> str | None:
    """Return the column of a parameter, also in a table of trials."""
    return next((each for each in (PARAMETER + name, name) if each in columns), None)


def _held(columns: Sequence[str], encoder: Encoder, results: Sequence[str]) -> set[str | None]:
    """Return the columns of parameters and results."""
    return {*results, *(parameter_column(name, columns) for name in encoder.space)}


def _status_column(columns: Sequence[str], held: Container[str | None]) -> str | None:
    """Return the column of the status, which holds no parameter or result."""
    named = [name for name in columns if name.lower() == STATUS and name not in held]
    return STATUS if STATUS in named else next(iter(named), None)


def new_status(columns: Sequence[str]) -> str:
    """Return the name of a column for the status beside columns without one."""
    return next(name for name in (STATUS, STATUS.capitalize(), STATUS.upper()) if name not in columns)


def _read(
    table: pd.DataFrame,
    path: Path,
    encoder: Encoder,
    targets: Sequence[str],
    costs: Sequence[str],
    status: str | None,
    decimal: str,
    note: Callable[[str], None],
) -> pd.DataFrame:
    results = {target: _result_column(target, list(table.columns), len(targets)) for target in targets}
    for target, result in results.items():
        if result not in table.columns:
            raise DataError(f"{path} has no column {target!r} of results{did_you_mean(target, table.columns)}")
        if target in encoder.space and PARAMETER + target not in table.columns:
            raise DataError(f"the column {target!r} of {path} is a parameter; name the column of the results")
    read = pd.DataFrame(index=table.index)
    values = value_columns(targets)
    known = {*results.values(), ERROR_KEY, *TRIAL_COLUMNS}
    dimensions = {d.name: d for d in encoder.dimensions}
    for name in encoder.space:
        column = parameter_column(name, list(table.columns))
        if column is None:
            if name in dimensions and name not in encoder.conditional:
                raise DataError(f"{path} has no column for the parameter {name!r}{did_you_mean(name, table.columns)}")
            continue
        known.add(column)
        if name in dimensions:
            where = f"{path}, row {{}}, column {column!r}"
            label = PARAMETER + name if name in (_STATE, *values) else name
            read[label] = _column(table[column], partial(_value, dimension=dimensions[name], decimal=decimal), where)
    failed = pd.Series(False, index=table.index)
    for result, value, error in zip(results.values(), values, error_columns(targets), strict=True):
        failed |= table[result].isin([text for text, state in _STATES.items() if state == "FAIL"])
        where = f"{path}, row {{}}, column {result!r}"
        read[value] = _column(table[result].where(~failed, ""), lambda cell: _result(cell, decimal), where)
        known.add(error)
        if error in table.columns:
            read[error] = _column(
                table[error], lambda cell: _result(cell, decimal), f"{path}, row {{}}, column {error!r}"
            )
    for cost in costs:
        known.add(cost)
        read[cost] = _column(table[cost], partial(_number, decimal=decimal), f"{path}, row {{}}, column {cost!r}")
    missing = read[values].isna().any(axis=1)
    told = _trial_states(table, encoder)
    read["state"] = _states(None if status is None else table[status], told, missing, failed, path, note)
    known.add(status or STATUS)
    if others := [name for name in table.columns if name not in known]:
        note(f"left out: {', '.join(map(repr, others))} of {path.name}, not among the parameters")
    return read


def _column(cells: pd.Series[Any], read: Callable[[str], Any], where: str) -> pd.Series[Any]:
    values = []
    for row, cell in cells.items():
        try:
            values.append(None if cell in _EMPTY else read(cell))
        except DataError as error:
            raise DataError(f"{where.format(row)}: {error}") from None
    return pd.Series(values, index=cells.index, dtype=object)


def _value(cell: str, dimension: Dimension, decimal: str) -> Any:
    """Return the value of a parameter's cell; illegal levels are reported with the configuration."""
    if not dimension.levels:
        value = _number(cell, decimal)
        return int(value) if dimension.kind == "integer" and value.is_integer() else value
    texts = {str(level): level for level in dimension.levels}
    texts |= {str(level).lower(): level for level in dimension.levels if isinstance(level, bool)}
    if cell in texts:
        return texts[cell]
    for level in dimension.levels:
        try:
            if not isinstance(level, bool | str) and level is not None and float(level) == _number(cell, decimal):
                return level
        except DataError:
            continue
    raise DataError(f"{cell!r} is not a level of the parameter{did_you_mean(cell, texts)}")


def _result(cell: str, decimal: str) -> float:
    try:
        return _number(cell, decimal)
    except DataError as error:
        raise DataError(
            f"{error}; leave the cell of an experiment without a result empty, or write 'failed' into it"
        ) from None


def _number(cell: str, decimal: str) -> float:
    try:
        value = float(cell.replace(",", ".") if decimal == "," else cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        date = (
            ": write a date as the time since a day of your choice, such as the number of days" if is_date(cell) else ""
        )
        raise DataError(f"{cell!r} is not a number{date}")
    return value


def _states(
    status: pd.Series[Any] | None,
    told: pd.Series[Any],
    missing: pd.Series[Any],
    failed: pd.Series[Any],
    path: Path,
    note: Callable[[str], None],
) -> pd.Series[Any]:
    states = pd.Series("COMPLETE", index=missing.index)
    if status is not None:
        for position, text in enumerate(status.where(told == "", "")):
            where = f"{path}, row {status.index[position]}"
            if text.lower() not in _STATES:
                known = ", ".join(text for text in _STATES if text)
                raise DataError(f"{where}, column {status.name!r}: {text!r} is not a status; write one of {known}")
            state = _STATES[text.lower()]
            has_none = bool(missing.iloc[position])
            if has_none and state == "COMPLETE" and not failed.iloc[position]:
                raise DataError(
                    f"{where} is {text!r} but has no result; fill it in, or write 'failed' into {status.name!r}"
                )
            states.iloc[position] = state if state == "FAIL" else (state or PENDING) if has_none else "COMPLETE"
    else:
        states[missing] = "FAIL"
    states[told != ""] = told.where(~missing, "FAIL")
    states[failed] = "FAIL"
    for state, text in ((PENDING, "no result yet, counted as running"), ("FAIL", "failed")):
        if len(rows := [str(row) for row in states.index[states == state]]):
            note(f"row{'s' if len(rows) > 1 else ''} {', '.join(rows)} of {path.name}: {text}")
    if status is None and missing[~failed & (told == "")].any():
        note(f"an empty result is a failed experiment; a column {STATUS!r} with 'planned' marks those without one yet")
    return states
