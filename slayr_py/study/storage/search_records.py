"""Store the kernel searches of a study, and find the one that holds for a suggestion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeGuard

from optuna import Study
from optuna.trial import FrozenTrial, TrialState

from slayr_py.space import jsonable
from slayr_py.study.storage.atomic import new_name, process_named
from slayr_py.study.storage.attributes import SEARCH_KEY, SEARCHING_KEY
from slayr_py.study.storage.optuna_private import set_trial_attribute
from slayr_py.study.storage.pieces import store_in_trial, stored


class StoredSearch(NamedTuple):
    """A kernel search as a trial has stored it."""

    trial: int
    due: int
    """Number of observations at which the search was due."""

    expressions: list[str]
    record: Mapping[str, Any]
    """See `slayr_py.study.storage.attributes.SEARCH_KEY`."""


def store_search(study: Study, trial: FrozenTrial, record: Mapping[str, Any]) -> None:
    """Store the record of a kernel search in the trial that is suggested after it."""
    store_in_trial(study, trial, SEARCH_KEY, jsonable(dict(record)))


def claim_search(study: Study, trial: FrozenTrial, due: int) -> bool:
    """Return whether the process of a trial has to run the search that is due at ``due`` observations.

    It has to unless the search is stored, or a living process runs it for another trial. The others see the claim from
    then on. Call it under the search lock.
    """
    last = last_search(study, due, trial.number)
    if last is not None and last.due == due:
        return False
    running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    if any(_runs_search(other, due) for other in running if other.number != trial.number):
        return False
    set_trial_attribute(study, trial, SEARCHING_KEY, {"due": due, "process": new_name()})
    return True


def release_search(study: Study, trial: FrozenTrial) -> None:
    """Give up the claim of a trial, whose process has not finished the search."""
    set_trial_attribute(study, trial, SEARCHING_KEY, None)


def _runs_search(trial: FrozenTrial, due: int) -> bool:
    """Return whether a living process runs the search that is due at ``due`` observations for a running trial."""
    claim = trial.user_attrs.get(SEARCHING_KEY)
    if not isinstance(claim, Mapping) or claim.get("due") != due or SEARCH_KEY in trial.user_attrs:
        return False
    process = process_named(claim.get("process"))
    return process is not None and not process.is_gone


def stored_searches(study: Study) -> Iterator[StoredSearch]:
    """Yield the kernel searches of a study in the order of its trials; skip a damaged record.

    Raises
    ------
    StorageError
        If a piece of a record is missing or altered.
    """
    for trial in study.get_trials(deepcopy=False):
        record = stored(trial.user_attrs, SEARCH_KEY)
        if is_search_record(record):
            yield StoredSearch(trial.number, record["due"], list(record["expressions"]), record)


def last_search(study: Study, due: int, before: int | None = None) -> StoredSearch | None:
    """Return the last search that was due at ``due`` observations or fewer, or None if there is none.

    ``before`` is the largest number of a trial whose search counts; by default all count.
    """
    searches = [s for s in stored_searches(study) if s.due <= due and (before is None or s.trial <= before)]
    return max(searches, key=lambda search: (search.due, search.trial), default=None)


def is_search_record(record: Any) -> TypeGuard[Mapping[str, Any]]:
    """Return whether the value of an attribute is a search record that the next suggestion can use."""
    if not isinstance(record, Mapping) or not isinstance(record.get("due"), int):
        return False
    expressions = record.get("expressions")
    return isinstance(expressions, list) and all(isinstance(text, str) for text in expressions)
