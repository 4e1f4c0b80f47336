"""Whether a stored study is whole: all of it is read once, before anything relies on a part of it.

A study file comes from another process, another version or another person. What is odd in it is told here, at once and
with its place, instead of as a `KeyError` in the middle of a later trial.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optuna import Study
from optuna.trial import FrozenTrial, TrialState

from slayr_py.errors import DataError, StorageError
from slayr_py.space import space_from_json
from slayr_py.study.storage.attributes import (
    EVALUATIONS_KEY,
    STUDY_KEY,
    SUGGESTION_KEY,
    describe_kernel,
    space_difference,
)
from slayr_py.study.storage.opening import failure_of_storage, storage_reason

FORMAT = 1
"""What this version writes; a record without ``"format"`` has this one. A later format is refused, not guessed at."""

_TABLES = ("config", "fit", "acquisition", "predicted", "diagnostics", "seconds")


def check_stored(study: Study) -> None:
    """Read all that a study has.

    Raises
    ------
    StorageError
        Something in it is damaged, or was written by a later version.
    DataError
        It has several objectives.
    """
    try:
        attributes, directions = study.user_attrs, study.directions
        trials = study.get_trials(deepcopy=False)
    except Exception as error:  # JSON, enumerations, assertions: whatever Optuna trips over
        cause = failure_of_storage(error)
        raise _damaged(study, storage_reason(cause) if cause else f"{type(error).__name__}: {error}") from error
    if not directions:
        raise _damaged(study, "it has no direction")
    if len(directions) > 1:
        raise DataError(f"study {study.study_name!r} has {len(directions)} objectives; only one is supported")
    if STUDY_KEY in attributes:
        _check_record(study, attributes[STUDY_KEY])
    for trial in trials:
        if trouble := _trouble(trial):
            raise _damaged(study, f"trial {trial.number} {trouble}")


def _check_record(study: Study, record: Any) -> None:
    if isinstance(record, Mapping) and record.get("format", FORMAT) != FORMAT:
        raise StorageError(
            f"study {study.study_name!r} has the format {record['format']!r:.50}, this version of slayr_py knows "
            f"{FORMAT}: pip install -U slayr-py"
        )
    try:
        space_difference(record["space"], space_from_json(record["space"]))
        describe_kernel(record["kernel"])
        for key, kind in (("seed", int), ("acquisition", str)):
            if not isinstance(record[key], kind):
                raise TypeError(f"{key} is {record[key]!r:.50}")
    except Exception as error:  # of a missing key as of a space that is none
        raise _damaged(study, f"its record {STUDY_KEY!r}, {type(error).__name__}: {error}") from error


def _trouble(trial: FrozenTrial) -> str | None:
    if trial.state == TrialState.COMPLETE and not isinstance(trial.value, int | float):
        return f"is complete and has the value {trial.value!r:.50}"
    record = trial.user_attrs.get(SUGGESTION_KEY, {})
    if not isinstance(record, Mapping):
        return f"was suggested by {record!r:.50}, which is no record"
    if not isinstance(count := trial.user_attrs.get(EVALUATIONS_KEY, 0), int):
        return f"was evaluated {count!r:.50} times"
    odd = (key for key in _TABLES if not isinstance(record.get(key, {}), Mapping))
    return next((f"was suggested with the {key} {record[key]!r:.50}" for key in odd), None)


def _damaged(study: Study, what: str) -> StorageError:
    return StorageError(
        f"study {study.study_name!r} is damaged: {what}. Restore a copy of it, or choose another study name"
    )
