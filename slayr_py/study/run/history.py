"""Past experiments as trials of a study: read them from a table or pairs, check them, and add them once."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import optuna
import pandas as pd
from optuna import Study
from optuna.trial import FrozenTrial, TrialState

from slayr_py.arguments import check_number
from slayr_py.errors import DataError, NotFiniteError, ObjectiveError, SpaceError, did_you_mean
from slayr_py.space import Encoder
from slayr_py.study.run.objective import as_value
from slayr_py.study.storage.attributes import ERROR_KEY, HISTORY, SUGGESTION_KEY
from slayr_py.study.storage.distributions import is_active, space_to_distributions, to_params
from slayr_py.study.storage.search_lock import search_lock

History = pd.DataFrame | Sequence[tuple[Mapping[str, Any], float | None]]
"""Past experiments: see `read_history`."""

_VALUE = "value"
_PREFIX = "params_"
_IGNORED = ("number", "state", "datetime_start", "datetime_complete", "duration")
_IGNORED_PREFIXES = ("user_attrs_", "system_attrs_", "Unnamed: ")  # of Optuna's table, and of an index in a CSV file
_UNFINISHED = ("RUNNING", "WAITING")


class Experiment(NamedTuple):
    """A past experiment on a space."""

    params: dict[str, Any]
    """Active parameters by name."""

    value: float | None
    """Value of the objective, in the user's units; None if the experiment failed."""

    y_sd: float = 0.0
    """Known standard deviation of the error of the value; 0 if it is unknown."""


class _Row(NamedTuple):
    name: str  # for error messages
    given: Mapping[str, Any]
    value: Any
    y_sd: Any = None


def read_history(history: History, encoder: Encoder) -> list[Experiment]:
    """Read past experiments and check them against a space.

    Parameters
    ----------
    history : DataFrame or sequence of (config, value)
        A table has one column per parameter, called ``x`` or ``params_x``, and a column ``value``. A parameter called
        "value" must be ``params_value``. A column ``y_sd`` or ``user_attrs_y_sd`` has the known standard deviations of
        the errors of the values; an empty cell means that the error is unknown. The other columns of `Result.trials`
        and of Optuna's ``trials_dataframe`` are ignored. An inactive parameter is NaN, None or absent. A value that is
        None, NaN or infinite marks a failed experiment; an infinite one raises a warning. Unfinished trials, and failed
        ones without parameters, are omitted.
    encoder : Encoder

    Raises
    ------
    SpaceError
        If a configuration does not belong to the space; the message names the row.
    DataError
        For another type, an unknown or ambiguous column, or a value that is not a number.
    """
    rows: Iterable[_Row]
    if isinstance(history, pd.DataFrame):
        rows = _rows_of_table(history, encoder)
    elif isinstance(history, Sequence) and not isinstance(history, str):
        rows = [_row_of_pair(i, pair) for i, pair in enumerate(history)]
    else:
        raise DataError(f"history must be a DataFrame or a sequence of (config, value), got {history!r:.200}")
    experiments = [_experiment(row, encoder) for row in rows]
    return [experiment for experiment in experiments if experiment.params or experiment.value is not None]


def add_history(study: Study, experiments: Sequence[Experiment], encoder: Encoder) -> None:
    """Add past experiments to a study as finished trials, except those that it already has.

    An experiment with the parameters and value of a finished trial is that trial; repeated ones are counted.
    """
    if not experiments:
        return
    distributions = space_to_distributions(encoder.space)
    finished = (TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED)
    with search_lock(study):  # processes that start the same study add its history once
        trials = study.get_trials(deepcopy=False, states=finished)
        there = Counter(_key(trial.params, _finite_value(trial)) for trial in trials)
        for params, value, y_sd in experiments:
            if there[_key(params, value)] > 0:
                there[_key(params, value)] -= 1
                continue
            known = {ERROR_KEY: y_sd} if y_sd else {}
            study.add_trial(
                optuna.trial.create_trial(
                    state=TrialState.FAIL if value is None else TrialState.COMPLETE,
                    value=value,
                    params=params,
                    distributions={name: distributions[name] for name in params},
                    user_attrs={SUGGESTION_KEY: {"phase": HISTORY, "config": params}} | known,
                )
            )


def _finite_value(trial: FrozenTrial) -> float | None:
    value = trial.value if trial.state == TrialState.COMPLETE else None
    return value if value is not None and math.isfinite(value) else None


def _key(params: Mapping[str, Any], value: float | None) -> str:
    return repr((sorted(params.items()), value))


def _rows_of_table(table: pd.DataFrame, encoder: Encoder) -> Iterator[_Row]:
    """Yield the finished rows of a table."""
    columns = [str(column) for column in table.columns]
    targets = [_target(column, columns, encoder) for column in columns]
    if _VALUE not in columns:
        raise DataError(f"history has no column {_VALUE!r}; its columns: {', '.join(columns)}")
    if repeated := [target for target, count in Counter(targets).items() if target is not None and count > 1]:
        raise DataError(f"history has two columns for {repeated[0].removeprefix(_PREFIX)!r}; drop one of them")
    for label, cells in zip(table.index, table.itertuples(index=False, name=None), strict=True):
        read = {target: cell for target, cell in zip(targets, cells, strict=True) if target is not None}
        ignored = {column: cell for column, target, cell in zip(columns, targets, cells, strict=True) if target is None}
        if str(ignored.get("state")) not in _UNFINISHED:
            value = read.pop(_VALUE)
            y_sd = read.pop(ERROR_KEY, None)
            given = {name.removeprefix(_PREFIX): read[name] for name in read}
            yield _Row(f"history row {label}", given, value, y_sd)


def _target(column: str, columns: Sequence[str], encoder: Encoder) -> str | None:
    """Return ``params_`` and the name of a column's parameter, `_VALUE`, `ERROR_KEY`, or None to ignore the column."""
    if column == _VALUE:
        return _VALUE
    # A table of trials with the parameter "number" has columns "number" and "params_number".
    if column in encoder.space and not (column in _IGNORED and _PREFIX + column in columns):
        return _PREFIX + column
    bare = column.removeprefix(_PREFIX)
    if column != bare and bare in encoder.space:
        return column
    if column in (ERROR_KEY, f"user_attrs_{ERROR_KEY}"):
        return ERROR_KEY
    if column in _IGNORED or column.startswith(_IGNORED_PREFIXES):
        return None
    raise DataError(
        f"history has the column {column!r}, which is not a parameter{did_you_mean(bare, [*encoder.space, _VALUE])}"
    )


def _row_of_pair(i: int, pair: object) -> _Row:
    if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2 or not isinstance(pair[0], Mapping):
        raise DataError(f"history row {i}: expected a pair (config, value), got {pair!r:.200}")
    return _Row(f"history row {i}", pair[0], pair[1])


def _experiment(row: _Row, encoder: Encoder) -> Experiment:
    value = _value(row)
    given = _without_empty(row.given, encoder)
    if not given and value is None:
        return Experiment({}, None)
    try:
        return Experiment(to_params(encoder.configuration(given)), value, _error(row))
    except SpaceError as error:
        raise SpaceError(f"{row.name}: {error}") from None


def _value(row: _Row) -> float | None:
    if row.value is None or row.value is pd.NA:
        return None
    try:
        return as_value(row.value)
    except NotFiniteError:
        if not pd.isna(row.value):
            warnings.warn(
                f"{row.name}: the value {row.value!r:.50} is not finite; it is recorded as a failed experiment",
                UserWarning,
                stacklevel=2,
            )
        return None
    except ObjectiveError:
        raise DataError(
            f"{row.name}: the value must be a number, or NaN if it failed, got {row.value!r:.200}"
        ) from None


def _error(row: _Row) -> float:
    return 0.0 if _is_empty(row.y_sd) else check_number(f"{row.name}: y_sd", row.y_sd, least=0)


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
