"""Check the integrity of a stored study by reading all of it before any part is used.

A study file comes from another process, another version or another person. Damage raises an error that names its place
at once, instead of a `KeyError` in a later trial.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from optuna import Study
from optuna.trial import FrozenTrial, TrialState

from slayr_py.acquisition import prior_text
from slayr_py.errors import StorageError
from slayr_py.space import space_from_json
from slayr_py.study.storage.attributes import (
    BOUNDS_KEY,
    EVALUATIONS_KEY,
    POSTPONED_KEY,
    SEARCH_KEY,
    STUDY_KEY,
    SUGGESTION_KEY,
    VALUE_KEY,
    describe_kernel,
    is_ours,
    space_difference,
)
from slayr_py.study.storage.opening import describe_storage_error, is_storage_error
from slayr_py.study.storage.pieces import stored
from slayr_py.study.storage.search_records import is_search_record
from slayr_py.study.storage.suggestion import odd_entry

FORMAT = 1
"""Format of a study's record in this version, and of a record without ``"format"``. Later formats are rejected."""


def check_integrity(study: Study) -> None:
    """Read all trials and attributes of a study and check them.

    Raises
    ------
    StorageError
        If a part is damaged or was written by a later version.
    """
    try:
        attributes = study.user_attrs
        directions = study.directions
        trials = study.get_trials(deepcopy=False)
    except Exception as error:  # Optuna raises many types for damaged JSON, states and values
        reason = describe_storage_error(error) if is_storage_error(error) else f"{type(error).__name__}: {error}"
        raise _damaged(study, reason) from error
    if not directions:
        raise _damaged(study, "it has no direction")
    _check_pieces(study, attributes, "the study")
    if STUDY_KEY in attributes:
        _check_record(study, attributes)
    if not isinstance(bounds := stored(attributes, BOUNDS_KEY), list | None) or not all(map(_is_text, bounds or ())):
        raise _damaged(study, f"its bounds {BOUNDS_KEY!r} are {bounds!r:.80}")
    for trial in trials:
        _check_pieces(study, trial.user_attrs, f"trial {trial.number}")
        if damage := _damage(trial, len(directions)):
            raise _damaged(study, f"trial {trial.number} {damage}")


def _check_pieces(study: Study, attributes: Mapping[str, Any], owner: str) -> None:
    for key in filter(is_ours, attributes):
        try:
            stored(attributes, key)
        except StorageError as error:
            raise _damaged(study, f"a piece of the attribute {key!r} of {owner} is missing or altered") from error


def _check_record(study: Study, attributes: Mapping[str, Any]) -> None:
    try:
        record = stored(attributes, STUDY_KEY)
        if isinstance(record, Mapping) and record.get("format", FORMAT) != FORMAT:
            raise StorageError(
                f"study {study.study_name!r} has the format {record['format']!r:.50}, this version of slayr_py knows "
                f"{FORMAT}: pip install -U slayr-py"
            )
        space_difference(record["space"], space_from_json(record["space"]))
        describe_kernel(record["kernel"])
        prior_text(record.get("prior") or {})
        for key, kind in (("graphs", Mapping), ("seed", int), ("acquisition", str)):
            if not isinstance(record[key], kind):
                raise TypeError(f"{key} is {record[key]!r:.50}")
    except StorageError:
        raise
    except Exception as error:  # a missing key, a wrong type, an unreadable space
        raise _damaged(study, f"its record {STUDY_KEY!r}, {type(error).__name__}: {error}") from error


def _damage(trial: FrozenTrial, n_values: int) -> str | None:
    if trial.state == TrialState.COMPLETE and not _are_numbers(trial.values, n_values):
        shown = trial.values[0] if isinstance(trial.values, list) and len(trial.values) == 1 else trial.values
        text = f"is complete and has the value {shown!r:.50}"
        return text if n_values == 1 else f"{text} for {n_values} objectives"
    record = stored(trial.user_attrs, SUGGESTION_KEY) if SUGGESTION_KEY in trial.user_attrs else {}
    if not isinstance(record, Mapping):
        return f"was suggested by {record!r:.50}, which is not a record"
    if not isinstance(count := trial.user_attrs.get(EVALUATIONS_KEY, 0), int):
        return f"was evaluated {count!r:.50} times"
    if not isinstance(count := trial.user_attrs.get(POSTPONED_KEY, 0), int):
        return f"was postponed {count!r:.50} times"
    if VALUE_KEY in trial.user_attrs and not _is_finite(value := trial.user_attrs[VALUE_KEY]):
        return f"has the unfinished value {value!r:.50}"
    if SEARCH_KEY in trial.user_attrs and not is_search_record(search := stored(trial.user_attrs, SEARCH_KEY)):
        return f"has the kernel search {search!r:.50}"
    odd = odd_entry(record)
    return None if odd is None else f"was suggested with the {odd} {record[odd]!r:.50}"


def _are_numbers(values: Any, n: int) -> bool:
    return isinstance(values, Sequence) and len(values) == n and all(isinstance(value, int | float) for value in values)


def _is_finite(value: Any) -> bool:
    """Return whether a value is a finite number, or a list of them for several objectives."""
    numbers = value if isinstance(value, list) else [value]
    return all(isinstance(number, int | float) and abs(number) < math.inf for number in numbers)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _damaged(study: Study, reason: str) -> StorageError:
    return StorageError(
        f"study {study.study_name!r} is damaged: {reason}. Restore a copy of it, or choose another study name"
    )
