"""Past experiments: read them from a table, a file or pairs, and check them."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pandas as pd
from optuna import Study
from optuna.trial import FrozenTrial

from slayr_py.arguments import check_number
from slayr_py.errors import DataError, NotFiniteError, ObjectiveError, SpaceError, level_outside, listed, nearest
from slayr_py.space import Encoder, is_active
from slayr_py.study.run.experiment_files import read_experiments
from slayr_py.study.run.objective import Values, as_value
from slayr_py.study.storage.columns import (
    CONSTRAINT,
    IGNORED,
    IGNORED_PREFIXES,
    PARAMETER,
    PENDING,
    PRUNED,
    STATE,
    STATUS,
    UNFINISHED,
    Outcomes,
    are_states,
    refuse_capitals,
)
from slayr_py.study.storage.distributions import to_params

History = str | Path | pd.DataFrame | Sequence[tuple[Mapping[str, Any], float | Values | None]]
"""Past experiments: see `read_history`."""


class Experiment(NamedTuple):
    """A past experiment on a space."""

    params: dict[str, Any]
    """Active parameters by name."""

    values: tuple[float, ...] | None
    """Values of the objectives, in the user's units; None if the experiment failed."""

    y_sd: tuple[float, ...] | None = None
    """Known standard deviations of the errors of the values; None if they are unknown."""

    pending: bool = False
    """Whether it has no result yet."""

    outside: str = ""
    """Constraint on inputs that the experiment violates, by more than rounding; empty without any."""

    cost: float | None = None
    """None if it is unknown."""

    constraints: Mapping[str, float] = MappingProxyType({})
    """By how much it exceeds the bounds of constraints, by their names."""


class _Row(NamedTuple):
    name: str  # for error messages
    given: Mapping[str, Any]
    values: Sequence[Any]
    y_sd: Sequence[Any] = ()
    pending: bool = False
    cost: float | None = None
    constraints: Mapping[str, float] = MappingProxyType({})


def read_history(history: History, encoder: Encoder, outcomes: Outcomes | None = None) -> list[Experiment]:
    """Read past experiments and check them against a space.

    Parameters
    ----------
    history : DataFrame, str or Path, or sequence of (config, value)
        A path is a CSV file for `read_experiments`. A table has one column per parameter, called ``x`` or ``params_x``,
        and a column ``value``. A parameter called "value" must be ``params_value``. A column ``y_sd`` or
        ``user_attrs_y_sd`` has the known standard deviations of the errors of the values; an empty cell means that the
        error is unknown. The other columns of `Result.trials` and of Optuna's ``trials_dataframe`` are ignored, and
        columns such as comments and dates are left out with a warning. An inactive parameter is NaN, None or absent. A
        value that is None, NaN or infinite marks a failed experiment; an infinite one raises a warning. Unfinished
        trials, and failed ones without parameters, are omitted. Pruned trials are omitted with a warning, because the
        last value that they reported is not their result. Several objectives have a column ``values_<name>`` each,
        which may be called by the name alone, and errors ``y_sd_<name>``; in a pair a sequence or a mapping of their
        names. The experiment failed if one of its values is missing. A column with the name of the cost has costs; an
        empty cell is an unknown one. Another cost in a table of `Result.trials` is left out with a warning. Columns
        ``constraints_<name>`` have the excess over a bound, and a column with the name of a bound its number.
    encoder : Encoder
    outcomes : Outcomes, optional
        The objectives, by default one without a cost.

    Raises
    ------
    SpaceError
        If a configuration does not belong to the space; the message names the row.
    DataError
        For another type, a missing or ambiguous column, one that is known in other capitals, a column ``status`` of a
        table, or a value that is not a number.
    """
    rows: Iterable[_Row]
    outcomes = outcomes or Outcomes()
    if isinstance(history, str | Path):
        targets = outcomes.values if len(outcomes.names) == 1 else outcomes.names
        bounds = map(str, outcomes.bounds)
        history, _ = read_experiments(history, encoder, targets, cost=outcomes.cost, constraints=bounds, note=warn)
    if isinstance(history, pd.DataFrame):
        rows = _rows_of_table(history, encoder, outcomes)
    elif isinstance(history, Sequence):
        rows = [_row_of_pair(i, pair, outcomes) for i, pair in enumerate(history)]
    else:
        raise DataError(
            f"history must be a DataFrame or a sequence of (config, value), got {history!r:.200}{_of_optuna(history)}"
        )
    named = [(row.name, _experiment(row, encoder)) for row in rows]
    experiments = [experiment for _, experiment in named]
    if outside := [f"{name}: {experiment.outside}" for name, experiment in named if experiment.outside]:
        n = len(outside) - 1
        others = f", and {n} other experiment{'s violate' if n > 1 else ' violates'} constraints" * (n > 0)
        text = "them, but they are" if n else "it, but it is"
        warn(f"{outside[0]}{others}; the model learns from {text} never the best")
    return [experiment for experiment in experiments if experiment.params or experiment.values is not None]


def _rows_of_table(table: pd.DataFrame, encoder: Encoder, outcomes: Outcomes) -> Iterator[_Row]:
    """Yield the finished rows of a table."""
    columns = [str(column) for column in table.columns]
    targets = _targets(columns, encoder, outcomes)
    if STATE in targets:
        states = table.iloc[:, targets.index(STATE)]
        if not are_states(states.astype(object).where(states.notna(), "").map(str), "history"):
            targets = [None if target == STATE else target for target in targets]
            warn(f"left out: the column {STATE!r} of the history, which has no states of trials")
    pruned = []
    for label, cells in zip(table.index, table.itertuples(index=False, name=None), strict=True):
        read = {target: cell for target, cell in zip(targets, cells, strict=True) if target is not None}
        state = str(read.pop(STATE, None))
        if state == PRUNED:
            pruned.append(str(label))
        elif state not in UNFINISHED:
            values = [read.pop(name) for name in outcomes.values]
            if state == "FAIL":
                values = [None] * len(values)
            y_sd = [read.pop(name, None) for name in outcomes.errors]
            cost = _cost(f"history row {label}", read.pop(outcomes.cost or "", None))
            constraints = _constraints(f"history row {label}", read, outcomes)
            given = {name.removeprefix(PARAMETER): read[name] for name in read}
            yield _Row(f"history row {label}", given, values, y_sd, state == PENDING, cost, constraints)
    if pruned:
        s = "s" * (len(pruned) > 1)
        which = f"{len(pruned)} pruned trial{s} of the history, row{s} {listed(pruned)}"
        warn(f"left out: {which}; the last value that a pruned trial reported is not a result")


def _targets(columns: Sequence[str], encoder: Encoder, outcomes: Outcomes) -> list[str | None]:
    """Return ``params_`` and the name of each column's parameter, a column of outcomes, or None to ignore it."""
    synonyms = outcomes.synonyms(columns, encoder.space)
    targets = [synonyms.get(column) for column in columns]
    lacking = [name for name, held in synonyms.items() if not (held.startswith(PARAMETER) and held in targets)]
    refuse_capitals([column for column in columns if column not in synonyms], lacking, "history")
    if missing := [name for name in outcomes.values if name not in targets]:
        raise DataError(f"history has no column {missing[0]!r}; its columns: {', '.join(columns)}")
    if repeated := [target for target, count in Counter(targets).items() if target not in (None, STATE) and count > 1]:
        raise DataError(f"history has two columns for {repeated[0].removeprefix(PARAMETER)!r}; drop one of them")
    if both := [bound for bound in outcomes.bounds if {bound.name, CONSTRAINT + bound.key} <= set(targets)]:
        raise DataError(f"history has the columns {both[0].name!r} and {CONSTRAINT + both[0].key!r}; drop one of them")
    unknown = [column for column in columns if column not in synonyms and column not in IGNORED]
    others = [column for column in unknown if not column.startswith(IGNORED_PREFIXES)]
    if status := [column for column in others if column.lower() == STATUS]:
        raise DataError(
            f"history has the column {status[0]!r}, which is read in files only: give the path of a CSV file, or the "
            "table of sl.study.read_experiments; or drop the column, and an experiment without a value has failed"
        )
    _warn_of_others(others, columns, [*encoder.space, *outcomes.errors])
    return targets


def _warn_of_others(others: Sequence[str], columns: Sequence[str], known: Sequence[str]) -> None:
    """Warn of columns that are left out, such as comments and dates; some may be known ones that are misspelt."""
    texts = []
    for column in others:
        if _is_cost_of_study(column, columns):
            warn(f"left out: the column {column!r} of the history, a cost of its study; cost={column!r} reads it")
        else:
            near = nearest(column, known)
            texts.append(repr(column) if near is None else f"{column!r} (did you mean {near!r}?)")
    if texts:
        warn(f"left out: {', '.join(texts)} of the history, not among the parameters")


def _is_cost_of_study(column: str, columns: Sequence[str]) -> bool:
    """Return whether a column is the cost in a table of trials of a study with one, where it follows the state."""
    of_trials = "number" in columns and any(each.startswith(PARAMETER) for each in columns)
    is_next = "state" in columns and columns[columns.index("state") + 1 :][:1] == [column]
    return of_trials and is_next and not column.startswith(PARAMETER)


def _row_of_pair(i: int, pair: object, outcomes: Outcomes) -> _Row:
    if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2 or not isinstance(pair[0], Mapping):
        raise DataError(f"history row {i}: expected a pair (config, value), got {pair!r:.200}{_of_optuna(pair)}")
    config, given = pair
    count = len(outcomes.names)
    if count == 1:
        return _Row(f"history row {i}", config, [given])
    if given is None or (isinstance(given, float) and math.isnan(given)):
        return _Row(f"history row {i}", config, [None] * count)
    if isinstance(given, Mapping) and set(given) == set(outcomes.names):
        return _Row(f"history row {i}", config, [given[name] for name in outcomes.names])
    if isinstance(given, Mapping | str) or not isinstance(given, Sequence) or len(given) != count:
        raise DataError(
            f"history row {i}: expected the values of {count} objectives in order, or by name, got {given!r:.200}"
        )
    return _Row(f"history row {i}", config, given)


def _of_optuna(given: object) -> str:
    """Return how to give the trials of an Optuna study as a history, if an error is about them."""
    return "; give study.trials_dataframe()" if isinstance(given, Study | FrozenTrial) else ""


def _experiment(row: _Row, encoder: Encoder) -> Experiment:
    values = [_value(row.name, value) for value in row.values]
    known = tuple(value for value in values if value is not None)
    complete = known if len(known) == len(values) else None
    given = _without_empty(row.given, encoder)
    if not given and complete is None:
        return Experiment({}, None)
    try:
        config = encoder.configuration(given)
        return Experiment(
            to_params(config),
            complete,
            _errors(row),
            row.pending,
            encoder.outside([config])[0],
            row.cost,
            {} if row.pending else row.constraints,
        )
    except SpaceError as error:
        raise SpaceError(f"{row.name}: {error}") from None


def _value(row: str, value: Any) -> float | None:
    if value is None or value is pd.NA:
        return None
    try:
        return as_value(value)
    except NotFiniteError:
        if not pd.isna(value):
            warn(f"{row}: the value {value!r:.50} is not finite; it is recorded as a failed experiment")
        return None
    except ObjectiveError:
        raise DataError(f"{row}: the value must be a number, or NaN if it failed, got {value!r:.200}") from None


def _errors(row: _Row) -> tuple[float, ...] | None:
    """Return the known errors; 0 for a value without one, None if there is none at all."""
    errors = [0.0 if _is_empty(error) else check_number(f"{row.name}: y_sd", error, least=0) for error in row.y_sd]
    return tuple(errors) if any(errors) else None


def _cost(row: str, value: object) -> float | None:
    return None if value is None or _is_empty(value) else check_number(f"{row}: the cost", value)


def _constraints(row: str, read: dict[str, Any], outcomes: Outcomes) -> dict[str, float]:
    """Take the numbers of constraints out of the cells of a row; return their excesses over the bounds by name."""
    found = {}
    cells = {name: read.pop(name, None) for name in {bound.name for bound in outcomes.bounds}}
    for bound in outcomes.bounds:
        if not _is_empty(cell := cells[bound.name]):
            found[bound.key] = bound.excess(check_number(f"{row}: {bound.name}", cell, least=-math.inf))
    for target in [name for name in read if name.startswith(CONSTRAINT)]:
        if not _is_empty(cell := read.pop(target)):
            found[target.removeprefix(CONSTRAINT)] = check_number(f"{row}: {target}", cell, least=-math.inf)
    return found


def _without_empty(given: Mapping[str, Any], encoder: Encoder) -> dict[str, Any]:
    """Omit empty cells, except cells of active parameters with the level None, which have that level."""
    with_none = {d.name for d in encoder.dimensions if None in d.levels}
    kept = {name: value for name, value in given.items() if not _is_empty(value)}
    for name in encoder.space:  # parents first
        if name in given and name not in kept and name in with_none and _is_active(name, kept, encoder):
            kept[name] = None
    return kept


def _is_active(name: str, kept: Mapping[str, Any], encoder: Encoder) -> bool:
    known = {parent: kept[parent] for parent in encoder.ancestors[name] if parent in kept}
    try:
        return is_active(encoder.space, name, known)
    except (ValueError, KeyError, TypeError):  # an illegal value of a parent, reported with the configuration
        return False


def _is_empty(value: Any) -> bool:
    return pd.isna(value) is True  # an array for a sequence


def warn(text: str) -> None:
    """Issue a warning about a history."""
    warnings.warn(text, UserWarning, stacklevel=level_outside())
