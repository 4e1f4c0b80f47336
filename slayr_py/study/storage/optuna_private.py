"""All uses of Optuna's private names: the public interface lacks these operations.

No other module of the package uses them, so a new release of Optuna that renames them affects this file only. They are
the identifiers of studies and trials, with which a storage is addressed; the storage of a study, behind its cache; the
file of a journal; the hooks with which a database starts new trials and finds stale ones, and with which its cache
reads and writes; the names of three tables and of an index; the test whether a distribution contains a value; the
values of a sampler that fixes some parameters; and the study behind a bracket of Hyperband.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from traceback import walk_tb
from typing import Any

from optuna import Study, Trial
from optuna.distributions import BaseDistribution
from optuna.exceptions import UpdateFinishedTrialError
from optuna.samplers import BaseSampler, PartialFixedSampler
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy import Column, DateTime, Enum, Index, MetaData, Table, column, insert, table
from sqlalchemy.exc import SQLAlchemyError

from slayr_py.study.storage.retrying import retries_of

TRIAL_ATTRIBUTES = table("trial_user_attributes", column("trial_id"), column("key"), column("value_json"))
"""Optuna's table of user attributes of trials."""

TRIALS = table("trials", column("trial_id"), column("state", Enum(TrialState)), column("datetime_start", DateTime))
"""Optuna's table of trials."""

STUDY_ATTRIBUTES = table("study_system_attributes", column("study_id"), column("key"), column("value_json"))
"""Optuna's table of system attributes of studies."""


STUDY_NAMES = Index(
    "ix_studies_study_name", Table("studies", MetaData(), Column("study_name")).c.study_name, unique=True
)
"""Optuna's index of the names of studies."""

_REPEATABLE = (
    *("create_new_study", "get_all_studies", "get_study_id_from_name", "get_study_name_from_id"),
    *("get_study_directions", "get_study_user_attrs", "get_study_system_attrs"),
    *("set_study_user_attr", "set_study_system_attr"),
    *("get_trial", "get_all_trials", "get_best_trial", "get_trial_id_from_study_id_trial_number", "_get_trials"),
    *("set_trial_user_attr", "set_trial_system_attr", "set_trial_intermediate_value", "_set_trial_param"),
)
"""Operations that have the same result if they are executed twice."""


def _repeated(name: str) -> Callable[..., Any]:
    """Return an operation of Optuna's storage that is repeated while the database fails."""
    once = getattr(RDBStorage, name)

    @wraps(once)
    def repeated(self: DatabaseStorage, *arguments: Any, **options: Any) -> Any:
        return retries_of(self)(lambda: once(self, *arguments, **options))

    return repeated


class DatabaseStorage(RDBStorage):
    """Optuna's storage in a database: its operations are repeated, and its private hooks have public names."""

    def create_missing_index(self) -> None:
        """Create the index of names if a process that was killed at the creation of the tables has left it out.

        SQLite commits each table and each index by itself. Without this one a study could be created twice.
        """
        STUDY_NAMES.create(self.engine, checkfirst=True)

    def new_trial(self, study_id: int, template: FrozenTrial | None) -> FrozenTrial:
        """Create the trial that Optuna asks for, with the state and attributes of a template."""
        return retries_of(self)(lambda: super(DatabaseStorage, self)._create_new_trial(study_id, template))

    def silent_trials(self, study_id: int) -> list[int]:
        """Return the identifiers of running trials that have sent no heartbeat for too long."""
        return retries_of(self)(lambda: super(DatabaseStorage, self)._get_stale_trial_ids(study_id))

    def set_trial_state_values(self, trial_id: int, state: TrialState, values: Sequence[float] | None = None) -> bool:
        """Set the state and the values of a trial."""
        tried = 0

        def change() -> bool:
            nonlocal tried
            tried += 1
            try:
                return super(DatabaseStorage, self).set_trial_state_values(trial_id, state, values)
            except UpdateFinishedTrialError:
                if tried > 1 and self.get_trial(trial_id).state == state:
                    return True  # by the first try, whose answer was lost
                raise

        return retries_of(self)(change)

    def trials_to_fail(self, study_id: int) -> list[int]:
        """Return the identifiers of trials that Optuna fails when a new one starts: by default the silent ones."""
        return self.silent_trials(study_id)

    def _create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> FrozenTrial:
        return self.new_trial(study_id, template_trial)

    def _get_stale_trial_ids(self, study_id: int) -> list[int]:
        return self.trials_to_fail(study_id)


for _name in _REPEATABLE:
    setattr(DatabaseStorage, _name, _repeated(_name))


def id_of_study(study: Study) -> int:
    """Return the identifier of a study in its storage."""
    return study._study_id


def id_of_trial(trial: Trial | FrozenTrial) -> int:
    """Return the identifier of a trial in its storage, which is not its number."""
    return trial._trial_id


def storage_of(study: Study) -> BaseStorage:
    """Return the storage of a study, without the cache that Optuna puts before a database."""
    storage: BaseStorage = study._storage
    behind = getattr(storage, "_backend", None)
    return behind if isinstance(behind, BaseStorage) else storage


def journal_of(storage: BaseStorage) -> Path | None:
    """Return the file of a journal, or None if the storage is not a journal in a file."""
    backend = storage._backend if isinstance(storage, JournalStorage) else None
    return Path(backend._file_path) if isinstance(backend, JournalFileBackend) else None


def damaged_journal(error: BaseException) -> Path | None:
    """Return the file of a journal whose lines could not be read, or None for any other error."""
    for frame, _ in walk_tb(error.__traceback__):
        backend = frame.f_locals.get("self")
        if isinstance(error, ValueError) and isinstance(backend, JournalFileBackend):
            return Path(backend._file_path)
    return None


def contains(distribution: BaseDistribution, value: Any) -> bool:
    """Return whether a distribution can draw a value."""
    return bool(distribution._contains(distribution.to_internal_repr(value)))


def stored_trial(study: Study, trial: FrozenTrial) -> FrozenTrial:
    """Read a trial again: Optuna gives samplers a copy, made before the suggestion was stored."""
    return study._storage.get_trial(trial._trial_id)


def set_constraint(study: Study, trial: FrozenTrial, name: str, excess: float) -> None:
    """Store the excess over the bound of a constraint in a running trial."""
    Trial(study, trial._trial_id).set_constraint(name, excess)


def set_trial_attribute(study: Study, trial: FrozenTrial, key: str, value: Any) -> None:
    """Set a user attribute of a trial that was read from a study."""
    study._storage.set_trial_user_attr(trial._trial_id, key, value)


def add_trial_attributes(study: Study, trial: FrozenTrial, values: Mapping[str, float]) -> None:
    """Add the user attributes that a trial lacks, for people to read: in a database with one statement.

    An error of the database is ignored, because the study does not depend on these attributes.
    """
    here = stored_trial(study, trial).user_attrs
    missing = {key: value for key, value in values.items() if key not in here}
    storage = storage_of(study)
    if not isinstance(storage, RDBStorage):
        for key, value in missing.items():
            set_trial_attribute(study, trial, key, value)
    elif missing:
        rows = [{"trial_id": trial._trial_id, "key": k, "value_json": json.dumps(v)} for k, v in missing.items()]
        with suppress(SQLAlchemyError), storage.engine.begin() as connection:
            connection.execute(insert(TRIAL_ATTRIBUTES), rows)


def enqueued_values(trial: Trial | FrozenTrial) -> dict[str, Any]:
    """Return the values with which the user enqueued a trial, by name."""
    return dict(trial._fixed_params if isinstance(trial, Trial) else trial.system_attrs.get("fixed_params") or {})


def inner_sampler(study: Study) -> BaseSampler:
    """Return the sampler of a study, or the one inside if it is a `PartialFixedSampler`."""
    sampler: BaseSampler = study.sampler
    while isinstance(sampler, PartialFixedSampler):
        sampler = sampler._base_sampler
    return sampler


def partly_fixed(study: Study) -> dict[str, Any]:
    """Return the values of a `PartialFixedSampler` around the study's sampler, or of several, the outer one first."""
    values: dict[str, Any] = {}
    sampler = study.sampler
    while isinstance(sampler, PartialFixedSampler):
        values = {**sampler._fixed_params, **values}
        sampler = sampler._base_sampler
    return values


def whole_study(study: Study) -> Study:
    """Return the study behind the part of it that Optuna gives samplers: the trials of a bracket, without records."""
    whole: Study = getattr(study, "_study", study)
    return whole


def fails_silent_trials(study: Study) -> bool:
    """Return whether Optuna fails a trial that starts now if its process sends no heartbeats."""
    if not study._thread_local.in_optimize_loop:  # plain ask and tell sends none, and Optuna waits for none
        return False
    storage = storage_of(study)
    if not isinstance(storage, RDBStorage) or isinstance(storage, DatabaseStorage):  # the latter resumes them
        return False
    return storage.get_heartbeat_interval() is not None


def start_trial(study: Study, template: FrozenTrial) -> Trial:
    """Start a trial with the state and the attributes of a template."""
    return Trial(study, study._storage.create_new_trial(study._study_id, template_trial=template))


@contextmanager
def optimizing(study: Study) -> Iterator[None]:
    """Run trials outside Optuna's own loop: ``study.stop()`` is allowed, see `is_stopped`, and heartbeats expected."""
    study._stop_flag = False
    try:
        with may_stop(study):
            yield
    finally:
        study._storage.remove_session()


@contextmanager
def may_stop(study: Study) -> Iterator[None]:
    """Allow ``study.stop()`` in this thread, in which an objective of a study that is `optimizing` runs."""
    before = study._thread_local.in_optimize_loop
    study._thread_local.in_optimize_loop = True
    try:
        yield
    finally:
        study._thread_local.in_optimize_loop = before


def is_in_loop(study: Study) -> bool:
    """Return whether this thread belongs to a loop, which ``study.stop()`` ends; elsewhere it raises an error."""
    return bool(study._thread_local.in_optimize_loop)


def is_stopped(study: Study) -> bool:
    """Return whether ``study.stop()`` was called since the loop started."""
    return study._stop_flag
