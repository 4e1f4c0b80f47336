"""Columns of tables of trials and of past experiments: their names, the states of rows, and the cells of files."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from slayr_py.errors import DataError, did_you_mean
from slayr_py.space import PARAMETER as PARAMETER, Encoder, is_date
from slayr_py.study.storage.attributes import ERROR_KEY
from slayr_py.study.storage.bounds import Constraint

OBJECTIVE, USER = "values_", "user_attrs_"
"""Starts of the columns of parameters, of values of several objectives, and of user attributes in Optuna's tables."""

VALUE, STATE, STATUS = "value", "state", "status"
"""Columns of the only value, of the state of trials, and of the status of experiments in a file in any case."""

TRIAL_COLUMNS = {"number": ("number", "int64"), STATE: ("state.name", None), "last_step": ("last_step", "Int64")}
"""Columns with an attribute of a trial: the attribute, and the type of the column."""

OF_TRIALS = (*TRIAL_COLUMNS, VALUE, ERROR_KEY)
"""Columns of tables of trials with fixed names; a file may have ones that are not read."""

CONSTRAINT = "constraints_"
"""Start of the columns of constraints, by how much a trial exceeds the bound."""

_CONSTRAINT_OF_OPTUNA = "system_attrs_constraints:"  # its start in Optuna's table

OF_TRIALS_PREFIXES = (OBJECTIVE, PARAMETER, CONSTRAINT, f"{ERROR_KEY}_")

IGNORED = (*TRIAL_COLUMNS, "datetime_start", "datetime_complete", "duration")
"""Columns of tables of trials that are no part of an experiment."""

IGNORED_PREFIXES = (USER, "system_attrs_", "Unnamed: ")
"""Starts of others, of Optuna's table and of an index in a CSV file."""

PENDING, PRUNED = "PENDING", "PRUNED"
"""States of an experiment without a result yet, and of a trial that a pruner has stopped."""

UNFINISHED = ("RUNNING", "WAITING")
LEFT_OUT = {"pruned: the last value that it reported is not a result": (PRUNED,), "not finished": UNFINISHED}
"""States of trials that are not read as experiments, by the reason."""

TRIAL_STATES = ("COMPLETE", "FAIL", PRUNED, *UNFINISHED)

PLANNED = "planned"
"""Status of proposals."""

_NO_RESULT = "; leave the cell of an experiment without a result empty, or write 'failed' into it"

STATUS_WORDS = {
    "": PENDING,
    **dict.fromkeys(("done", "ok", "complete", "completed", "finished"), "COMPLETE"),
    **dict.fromkeys(("failed", "fail", "error"), "FAIL"),
    **dict.fromkeys((PLANNED, "pending", "running", "waiting"), PENDING),
}
"""State of an experiment by its status; one that has a result is not pending."""

FAILURES = [word for word, state in STATUS_WORDS.items() if state == "FAIL"]
"""Words that stand for the result of a failed experiment."""


class Outcomes(NamedTuple):
    """The objectives of a study, whose values a table has, and the cost."""

    names: tuple[str, ...] = (VALUE,)
    """Names of several objectives, or their numbers; of one, the column of its values in a file."""

    cost: str | None = None
    """Name of the cost, which may be a column."""

    bounds: tuple[Constraint, ...] = ()
    """Bounds on numbers that have columns of their names."""

    @property
    def values(self) -> list[str]:
        """Return the columns of the values: "value", or "values_<name>" of several objectives."""
        return [VALUE] if len(self.names) == 1 else [OBJECTIVE + name for name in self.names]

    @property
    def errors(self) -> list[str]:
        """Return the columns of their known errors: "y_sd", or "y_sd_<name>" of several objectives."""
        return [ERROR_KEY] if len(self.names) == 1 else [f"{ERROR_KEY}_{name}" for name in self.names]

    @property
    def costs(self) -> list[str]:
        """Return the columns that may have the costs."""
        return [] if self.cost is None else [self.cost, USER + self.cost]

    def synonyms(self, columns: Collection[str], parameters: Iterable[str]) -> dict[str, str]:
        """Return what the columns of a table stand for: parameters, values, errors, costs, constraints, the state.

        The last meaning of a name counts. A table of trials with the parameter "number" has the columns "number" and
        "params_number".
        """
        named = {name: PARAMETER + name for name in parameters}
        shorter = {USER + ERROR_KEY: ERROR_KEY}
        if len(self.names) > 1:
            shorter = dict(zip(self.names, self.values, strict=True))
        return {
            STATE: STATE,
            **_excesses(columns),
            **{bound.name: bound.name for bound in self.bounds},
            **shorter,
            **{error: error for error in self.errors},
            **{name: str(self.cost) for name in self.costs},
            **{column: column for column in named.values()},
            **{name: column for name, column in named.items() if name not in IGNORED or column not in columns},
            **{value: value for value in self.values},
        }


class Column(NamedTuple):
    """What a file tells about experiments in one column."""

    title: str  # name of the parameter, result, error or cost
    name: str  # column of the table that is read
    accepted: tuple[str, ...]  # columns of files, of which the first one that is there counts
    parse: Callable[[str, str], Any] | None  # from a cell and the decimal mark to a value; None if it is not read
    is_number: bool = True  # whether its cells may have decimal commas
    is_result: bool = False
    missing: str = ""  # what a file without it lacks, for the error; empty if it may be missing

    def find(self, columns: Container[str]) -> str | None:
        """Return the one of these columns of a file that counts."""
        return next((name for name in self.accepted if name in columns), None)


def file_columns(encoder: Encoder, outcomes: Outcomes, header: Iterable[str]) -> list[Column]:
    """Return what a file may tell about experiments: parameters, each value with its error, costs, constraints."""
    columns = []
    dimensions = {d.name: d for d in encoder.dimensions}
    for name in encoder.space:
        d = dimensions.get(name)
        label = PARAMETER + name if name in (STATE, *outcomes.values) else name
        real = _whole if d is not None and d.kind == "integer" else _number
        parse = None if d is None else partial(_level, d.levels) if d.levels else real
        missing = "" if d is None or name in encoder.conditional else f"for the parameter {name!r}"
        is_real = name in encoder.real_names
        columns.append(Column(name, label, (PARAMETER + name, name), parse, is_real, missing=missing))
    result = partial(_number, remedy=_NO_RESULT)
    for name, value, error in zip(outcomes.names, outcomes.values, outcomes.errors, strict=True):
        accepted = (name,) if len(outcomes.names) == 1 else (name, OBJECTIVE + name)
        columns.append(Column(name, value, accepted, result, is_result=True, missing=f"{name!r} of results"))
        columns.append(Column(error, error, (error,), _number))
    columns += [Column(name, name, (name,), _number) for name in outcomes.costs]
    columns += [Column(name, held, (name,), _number) for name, held in _excesses(header).items()]
    for bound in outcomes.bounds:
        columns.append(Column(bound.name, CONSTRAINT + bound.key, (bound.name,), partial(_excess, bound)))
    return columns


def _excesses(columns: Iterable[str]) -> dict[str, str]:
    """Return ``constraints_<name>`` for each of these columns that has an excess over a bound."""
    own = {column: column for column in columns if column.startswith(CONSTRAINT)}
    start = _CONSTRAINT_OF_OPTUNA
    return own | {c: CONSTRAINT + c.removeprefix(start) for c in columns if c.startswith(start)}


def _excess(bound: Constraint, cell: str, decimal: str) -> float:
    return bound.excess(_number(cell, decimal))


def refuse_capitals(columns: Iterable[str], known: Iterable[str], where: str) -> None:
    """Raise `DataError` for a column of a table whose name is a known one but for its capitals."""
    folded = {name.casefold(): name for name in known}
    for column in columns:
        if (name := folded.get(column.casefold(), column)) != column:
            raise DataError(
                f"{where} has the column {column!r}, which is {name!r} but for its capitals: rename or drop it"
            )


def are_states(cells: Iterable[str], where: str) -> bool:
    """Return whether a column ``state`` has states of trials; one without any word for a state is a comment.

    Raises
    ------
    DataError
        If only some of its cells are states, or they are in other words.
    """
    words = dict.fromkeys(cells)
    legal = ("", PENDING, *TRIAL_STATES)
    unknown = [word for word in words if word not in legal]
    alike = [word for word in words if word and (word.upper() in legal or word.casefold() in STATUS_WORDS)]
    if unknown and alike:
        raise DataError(
            f"{where} has the {STATE} {unknown[0]!r}; the states of trials are {', '.join(legal[1:])}: correct it, or "
            "rename the column"
        )
    return not unknown


def _level(levels: Sequence[Any], cell: str, decimal: str) -> Any:
    texts = {str(level): level for level in levels}
    texts |= {str(level).lower(): level for level in levels if isinstance(level, bool)}
    value = _to_float(cell, decimal)
    if cell in texts:
        return texts[cell]
    for level in levels:
        if not isinstance(level, bool | str | None) and float(level) == value:
            return level
    raise DataError(f"{cell!r} is not a level of the parameter{did_you_mean(cell, texts)}")


def _whole(cell: str, decimal: str) -> float:
    value = _number(cell, decimal)
    return int(value) if value.is_integer() else value


def _number(cell: str, decimal: str, remedy: str = "") -> float:
    value = _to_float(cell, decimal)
    if not math.isfinite(value):
        date = ": write a date as the time since a day of your choice, such as the number of days" * is_date(cell)
        raise DataError(f"{cell!r} is not a number{date}{remedy}")
    return value


def _to_float(cell: str, decimal: str) -> float:
    try:
        return float(cell.replace(",", ".") if decimal == "," else cell)
    except ValueError:
        return math.nan
