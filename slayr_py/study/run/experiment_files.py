"""Read past experiments from a CSV file, as spreadsheets write it, and write proposals in the same form."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from slayr_py.errors import DataError, did_you_mean
from slayr_py.space import Encoder
from slayr_py.study.run.constraints import parse_constraints
from slayr_py.study.storage.attributes import ERROR_KEY
from slayr_py.study.storage.columns import (
    FAILURES,
    LEFT_OUT,
    OF_TRIALS,
    PARAMETER,
    PENDING,
    PLANNED,
    STATE,
    STATUS,
    STATUS_WORDS,
    Column,
    Outcomes,
    are_states,
    file_columns,
    refuse_capitals,
)
from slayr_py.text_files import decimal_mark, read_text, table_note, table_separator, write_text

Note = Callable[[str], None]


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
    constraints: Iterable[str] = (),
    separator: str | None = None,
    note: Note = lambda text: None,
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
    constraints : iterable of str
        Bounds such as "purity >= 0.9" on further results, whose columns have these names, may be missing and have empty
        cells for unknown results. Columns ``constraints_<name>`` of a table of trials have the excess over a bound.
    separator : str, optional
        Character between cells; by default it is recognised by the header.
    note : callable
        Receives sentences about what was recognised and left out.

    Returns
    -------
    table : pandas.DataFrame
        Columns of parameters (``params_state`` and ``params_value`` if they have these names), ``value`` (of several
        objectives, ``values_<name>``), their known errors ``y_sd``, costs, ``constraints_<name>``, and "state":
        COMPLETE, FAIL or PENDING.
    form : FileForm

    Raises
    ------
    DataError
        If the file cannot be read, a column is missing or known in other capitals, or a cell is not what its column
        holds; the message has the row and the column.
    """
    path = Path(path)
    sheet = _Sheet(path, encoder, Outcomes(tuple(targets), cost, parse_constraints(constraints)), separator, note)
    header = sheet.header
    if written := table_note(path, sheet.separator, sheet.decimal):
        note(written)
    sheet.leave_out((sheet.cells == "").all(axis=1), "empty")
    for why, states in LEFT_OUT.items():
        sheet.leave_out(sheet.trial_states().isin(states), why)
    return sheet.read(), FileForm(tuple(header), sheet.separator, sheet.decimal, sheet.status or new_status(header))


class _Sheet:
    """A file of experiments: its cells as texts, by row from 1, and what its columns tell."""

    def __init__(self, path: Path, encoder: Encoder, outcomes: Outcomes, separator: str | None, note: Note) -> None:
        (self.header, *rows), self.separator = read_cells(path, separator)
        self.path, self.space, self.note = path, encoder.space, note
        self.cells = pd.DataFrame(rows, columns=self.header, index=pd.RangeIndex(1, len(rows) + 1), dtype=object)
        self.columns = file_columns(encoder, outcomes, self.header)
        self.results = [column for column in self.columns if column.is_result]
        self.held = {column.find(self.header) for column in self.columns}
        named = [name for name in self.header if name.lower() == STATUS and name not in self.held]
        self.status = STATUS if STATUS in named else next(iter(named), None)
        numbers = {name for column in self.columns if column.is_number for name in column.accepted}
        held = (cell for row in rows for name, cell in zip(self.header, row, strict=True) if name in numbers)
        self.decimal = decimal_mark(self.separator, held)

    @cached_property
    def has_states(self) -> bool:
        """Whether there is a column ``state`` as in a table of trials."""
        return STATE in self.header and STATE not in self.held and are_states(self.cells[STATE], str(self.path))

    def trial_states(self) -> pd.Series[Any]:
        """Return the states that a table of trials has, else empty texts."""
        return self.cells[STATE] if self.has_states else pd.Series("", index=self.cells.index)

    def leave_out(self, chosen: pd.Series[bool], why: str) -> None:
        if rows := self._rows(chosen):
            self.note(f"left out: {rows}, {why}")
            self.cells = self.cells[~chosen]

    def _rows(self, chosen: pd.Series[bool]) -> str:
        """Return "rows 1, 3 of runs.csv", empty if none is chosen."""
        rows = [str(row) for row in chosen.index[chosen]]
        return f"row{'s' * (len(rows) > 1)} {', '.join(rows)} of {self.path.name}" if rows else ""

    def read(self) -> pd.DataFrame:
        """Return the parameters, values, errors, costs and states."""
        for column in self.results:
            self._find(column)
            if column.title in self.space and PARAMETER + column.title not in self.header:
                held = f"the column {column.title!r} of {self.path} is a parameter"
                raise DataError(f"{held}; name the column of the results")
        read = pd.DataFrame(index=self.cells.index)
        failed = pd.Series(False, index=self.cells.index)
        for column in self.columns:
            if (name := self._find(column)) is not None and column.parse is not None:
                if column.name in read:
                    raise DataError(f"{self.path} has two columns for {column.name!r}, one of them {name!r}; drop one")
                cells = self.cells[name]
                if column.is_result:
                    failed |= cells.isin(FAILURES)
                    cells = cells.where(~failed, "")
                read[column.name] = self._values(name, cells, column.parse)
        missing = read[[column.name for column in self.results]].isna().any(axis=1)
        read[STATE] = self._states(missing, failed)
        # Of several objectives a column y_sd is no error: they have one each.
        of_trials = [name for name in OF_TRIALS if name != ERROR_KEY and (name != STATE or self.has_states)]
        known = {*self.held, *of_trials, self.status or STATUS}
        if others := [name for name in self.header if name not in known]:
            names = {STATE, self.status or STATUS, *(name for column in self.columns for name in column.accepted)}
            parameters = [column for column in self.columns if column.title in self.space]
            found = {name for column in parameters if column.find(self.header) for name in column.accepted}
            refuse_capitals(others, names - found, str(self.path))
            self.note(f"left out: {', '.join(map(repr, others))} of {self.path.name}, not among the parameters")
        return read

    def _find(self, column: Column) -> str | None:
        if (name := column.find(self.header)) is None and column.missing:
            known = did_you_mean(column.title, self.header)
            raise DataError(f"{self.path} has no column {column.missing}{known}")
        return name

    def _values(self, name: str, cells: pd.Series[Any], parse: Callable[[str, str], Any]) -> pd.Series[Any]:
        values = []
        for row, cell in cells.items():
            try:
                values.append(None if cell in ("", "nan", "NaN") else parse(cell, self.decimal))
            except DataError as error:
                raise DataError(f"{self.path}, row {row}, column {name!r}: {error}") from None
        return pd.Series(values, index=cells.index, dtype=object)

    def _states(self, missing: pd.Series[bool], failed: pd.Series[bool]) -> pd.Series[str]:
        """Return the state of each row, of which some have no result, or the word that they failed instead."""
        told = self.trial_states()
        status = told if self.status is None else self.cells[self.status]
        rows = zip(told.index, told, status, missing, failed, strict=True)
        states = pd.Series([self._state(*row) for row in rows], index=told.index, dtype=str)
        for state, text in ((PENDING, "no result yet, counted as running"), ("FAIL", "failed")):
            if which := self._rows(states == state):
                self.note(f"{which}: {text}")
        if self.status is None and missing[~failed & (told == "")].any():
            marks = f"a column {STATUS!r} with {PLANNED!r} marks those without one yet"
            self.note(f"an empty result is a failed experiment; {marks}")
        return states

    def _state(self, row: int, told: str, status: str, has_none: bool, has_failed: bool) -> str:
        if told == PENDING:  # one that has a result is not pending
            return "FAIL" if has_failed else PENDING if has_none else "COMPLETE"
        if told or self.status is None:
            return "FAIL" if has_none else told or "COMPLETE"
        where = f"{self.path}, row {row}"
        if (state := STATUS_WORDS.get(status.lower())) is None:
            known = ", ".join(word for word in STATUS_WORDS if word)
            raise DataError(f"{where}, column {self.status!r}: {status!r} is not a status; write one of {known}")
        if has_none and state == "COMPLETE" and not has_failed:
            remedy = f"fill it in, or write 'failed' into {self.status!r}"
            raise DataError(f"{where} is {status!r} but has no result; {remedy}")
        return "FAIL" if has_failed else state if has_none or state == "FAIL" else "COMPLETE"


def has_different_replicates(table: pd.DataFrame, encoder: Encoder, targets: Sequence[str]) -> bool:
    """Return whether finished experiments that were read from a file have equal parameters and different results."""
    results = Outcomes(tuple(targets)).values
    others = (*results, STATE)
    parameters = [n for n in table if n not in others and str(n).removeprefix(PARAMETER) in encoder.space]
    finished = table[table[STATE] == "COMPLETE"]
    counts = finished.astype(object).fillna("").groupby(parameters, dropna=False)[results].nunique()
    return bool((counts > 1).any(axis=None))


def has_only_proposals(path: Path, encoder: Encoder, targets: Sequence[str], separator: str | None = None) -> bool:
    """Return whether a file is empty, or a table of experiments that are all planned and have no result.

    Without a column of the status, an experiment that has no result is a failed one.
    """
    if not path.stat().st_size:
        return True
    try:
        sheet = _Sheet(path, encoder, Outcomes(tuple(targets)), separator, lambda text: None)
    except DataError:
        return False
    results = [column.find(sheet.header) for column in sheet.results]
    legal = dict.fromkeys(results, ("",)) | {sheet.status: ("", PLANNED)}
    if STATE not in sheet.held:
        legal[STATE] = ("",)
    if sheet.status is None and len(sheet.cells):
        return False
    return any(name in sheet.header for name in results) and all(
        cell.lower() in legal[name]
        for row in sheet.cells.itertuples(index=False, name=None)
        for name, cell in zip(sheet.header, row, strict=True)
        if name in legal
    )


def read_cells(path: Path, separator: str | None = None) -> tuple[list[list[str]], str]:
    """Return the header and the rows, without the empty columns that spreadsheets append, and the separator.

    Raises
    ------
    DataError
        If the file cannot be read, is empty or has an open quotation mark, two columns have one name, or a row has
        another length than the header.
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
    if repeated := [name for name in rows[0] if rows[0].count(name) > 1]:
        raise DataError(f"{path} has two columns {repeated[0]!r}; rename or drop one of them")
    for number, row in enumerate(rows[1:], start=1):
        if len(row) != len(rows[0]):
            raise DataError(
                f"{path} has {len(row)} cells in row {number} and {len(rows[0])} columns; if numbers have decimal "
                "commas, separate the cells by semicolons"
            )
    return rows, used


def new_status(columns: Sequence[str]) -> str:
    """Return the name of a column for the status beside columns without one."""
    return next(name for name in (STATUS, STATUS.capitalize(), STATUS.upper()) if name not in columns)


def write_proposals(path: Path, configs: Sequence[Mapping[str, Any]], form: FileForm, cost: str | None) -> None:
    """Write proposals with the columns of a file; results and costs are empty and the status is "planned".

    A file without a column of the cost, or of the status, gets one.

    Raises
    ------
    StorageError
        If the file cannot be written.
    """
    columns = list(form.columns)
    if cost is not None and not any(name in columns for name in Outcomes(cost=cost).costs):
        columns.append(cost)
    if form.status not in columns:
        columns.append(form.status)
    text = io.StringIO()
    writer = csv.writer(text, delimiter=form.separator, lineterminator="\n")
    writer.writerow(columns)
    for config in configs:
        cells = {PARAMETER + name if PARAMETER + name in columns else name: value for name, value in config.items()}
        cells[form.status] = PLANNED
        writer.writerow([_cell(cells.get(column, ""), form.decimal) for column in columns])
    write_text(path, text.getvalue())


def _cell(value: Any, decimal: str) -> str:
    return repr(value).replace(".", decimal) if isinstance(value, float) else str(value)
