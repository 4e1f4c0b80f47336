"""Share a study among processes: resume the trials of killed processes and search one process at a time.

Both rest on an operation that every database executes atomically: change an attribute only if it still has the value
that was read. A trial started by `minimize` carries the name of its process. A process that needs a trial first looks
for a running one whose process is gone and resumes it with the same number and configuration, so the study continues
as if it had not been interrupted. Only one process searches for a configuration at a time, so that each search knows
the suggestions of the others; fits run side by side. A journal file has only the search lock, as a file beside it.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import optuna
import sqlalchemy
from filelock import FileLock, Timeout
from optuna import Study, Trial
from optuna.exceptions import ExperimentalWarning, StorageInternalError
from optuna.storages import InMemoryStorage, RDBStorage, fail_stale_trials
from optuna.trial import FrozenTrial, TrialState

from slayr_py.processes import Process, this_process
from slayr_py.study.storage.attributes import EVALUATIONS_KEY, FAILURE_KEY, LOCK_KEY, VALUE_KEY, WORKER_KEY
from slayr_py.study.storage.optuna_private import (
    STUDY_ATTRIBUTES,
    TRIAL_ATTRIBUTES,
    DatabaseStorage,
    id_of_study,
    id_of_trial,
    journal_of,
    storage_of,
)

HEARTBEAT_SECONDS = 60
"""Interval of heartbeats. A process on another machine that sends none for twice this long counts as dead."""

LONGEST_SEARCH = 600.0
"""Seconds after which the search lock is taken from its holder, dead or alive. A search takes seconds. The lock file of
a journal cannot be taken from a living process: the search then runs without it."""

MOST_EVALUATIONS = 5
"""Number of times an evaluation is started before its trial fails, because an objective that ends its process would do
so again and again."""

_POLL_SECONDS = 0.05
_NOBODY = ""

_active_runs: set[str] = set()  # names of this process; any other name of it belongs to a run that has ended


class WorkerStorage(DatabaseStorage):
    """Optuna's storage for one run on a study, which resumes the abandoned trials of other runs."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.worker = _new_name()
        self.study_id: int | None = None  # the run's study, once it has started
        super().__init__(*arguments, **options)

    def new_trial(self, study_id: int, template: FrozenTrial | None) -> FrozenTrial:
        """Return an abandoned trial to resume, or else a new one that carries the name of this run."""
        if template is not None:
            return super().new_trial(study_id, template)
        for trial in self.abandoned(study_id):
            if _swap(self, TRIAL_ATTRIBUTES, id_of_trial(trial), WORKER_KEY, trial.user_attrs[WORKER_KEY], self.worker):
                self.record_heartbeat(id_of_trial(trial))
                if VALUE_KEY in trial.user_attrs or trial.user_attrs.get(EVALUATIONS_KEY, 0) < MOST_EVALUATIONS:
                    return self.get_trial(id_of_trial(trial))
                why = f"its evaluation was started {MOST_EVALUATIONS} times and never finished"
                self.set_trial_user_attr(id_of_trial(trial), FAILURE_KEY, why)
                self.set_trial_state_values(id_of_trial(trial), TrialState.FAIL)
        # Stored in one operation with the trial: a process killed at any moment leaves no trial without its name.
        template = optuna.trial.create_trial(state=TrialState.RUNNING, user_attrs={WORKER_KEY: self.worker})
        created = super().new_trial(study_id, template)
        self.record_heartbeat(id_of_trial(created))
        return created

    def set_trial_state_values(self, trial_id: int, state: TrialState, values: Sequence[float] | None = None) -> bool:
        """Set the state of a trial; an enqueued trial starts only if there is no abandoned one."""
        if state != TrialState.RUNNING:
            return super().set_trial_state_values(trial_id, state, values)
        if self.study_id is not None and self.abandoned(self.study_id):
            return False
        started = super().set_trial_state_values(trial_id, state, values)
        if started:
            self.set_trial_user_attr(trial_id, WORKER_KEY, self.worker)
        return started

    def owns(self, trial_id: int) -> bool:
        """Whether a trial still belongs to this run; without heartbeats another run may have resumed it."""
        try:
            return self.get_trial(trial_id).user_attrs.get(WORKER_KEY) == self.worker
        except StorageInternalError:
            return True  # keep its value: the write that follows meets the same failure and reports it

    def abandoned(self, study_id: int) -> list[FrozenTrial]:
        """Return the running trials of `minimize` whose process is gone, in the order of their numbers."""
        running = self.get_all_trials(study_id, deepcopy=False, states=(TrialState.RUNNING,))
        running = [trial for trial in running if isinstance(trial.user_attrs.get(WORKER_KEY), str)]
        silent = set(self.silent_trials(study_id)) if running else set()
        left = []
        for trial in running:
            owner = _process(name := trial.user_attrs[WORKER_KEY])
            if owner is None or owner.is_gone or (owner == this_process() and name not in _active_runs):
                left.append(trial)
            elif not owner.is_local and id_of_trial(trial) in silent:
                left.append(trial)
        return left

    def release(self, trial_id: int) -> None:
        """Abandon a running trial of this run, so that the next run resumes it."""
        _swap(self, TRIAL_ATTRIBUTES, trial_id, WORKER_KEY, self.worker, _NOBODY)

    def trials_to_fail(self, study_id: int) -> list[int]:
        """Return no trials: the silent ones are resumed."""
        return []

    def record_heartbeat(self, trial_id: int) -> None:
        """Send a heartbeat; one that cannot be written is skipped."""
        try:
            super().record_heartbeat(trial_id)
        except StorageInternalError:
            pass  # the trial's own writes meet the same failure and report it


def worker_storage(study: Study) -> WorkerStorage | None:
    """Return the storage of a study opened by `minimize`, or None for any other storage."""
    database = _database(study)
    return database if isinstance(database, WorkerStorage) else None


@contextmanager
def active_run(study: Study) -> Iterator[None]:
    """Mark a run as active: until the block ends, its running trials are not abandoned."""
    storage = worker_storage(study)
    if storage is None:
        yield
        return
    storage.study_id = id_of_study(study)
    _active_runs.add(storage.worker)
    try:
        yield
    finally:
        _active_runs.discard(storage.worker)


def start_next_trial(study: Study) -> Trial:
    """Start the next trial as Optuna's own loop does, which fails the trials of silent processes first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        fail_stale_trials(study)
    return study.ask()


@contextmanager
def send_heartbeats(trial: Trial) -> Iterator[None]:
    """Send heartbeats of a trial until the block ends, if its storage records them."""
    database = _database(trial.study)
    interval = None if database is None else database.get_heartbeat_interval()
    if database is None or interval is None:
        yield
        return
    ended = threading.Event()

    def send() -> None:
        database.record_heartbeat(id_of_trial(trial))
        while not ended.wait(interval):
            database.record_heartbeat(id_of_trial(trial))

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def search_lock(study: Study) -> Iterator[None]:
    """Lock a study, so that only one process at a time searches for a configuration.

    A database holds the lock in an attribute of the study; beside the file of a journal there is a lock file for all of
    its studies. Other storages have no lock: see `missing_lock`.

    Raises
    ------
    optuna.exceptions.StorageInternalError
        If the database fails.
    OSError
        If the lock file cannot be written.
    """
    database = _database(study)
    if database is None:
        journal = journal_of(storage_of(study))
        with nullcontext() if journal is None else _lock_beside(journal):
            yield
        return
    name = _new_name()
    study_id = id_of_study(study)
    _acquire(database, study_id, name)
    try:
        yield
    finally:
        _swap(database, STUDY_ATTRIBUTES, study_id, LOCK_KEY, name, _NOBODY)


def missing_lock(study: Study) -> str | None:
    """Describe the consequences of a storage without a search lock; None if it has one.

    A storage in memory cannot be shared, so it does not need a lock.
    """
    storage = storage_of(study)
    if isinstance(storage, RDBStorage | InMemoryStorage) or journal_of(storage) is not None:
        return None
    return (
        f"the storage {type(storage).__name__} of study {study.study_name!r} has no search lock: processes that share "
        "the study do not wait for each other's suggestions and may evaluate the same configuration twice. To run "
        "several, use a database such as sqlite:///study.db, or Optuna's JournalFileBackend"
    )


@contextmanager
def _lock_beside(journal: Path) -> Iterator[None]:
    """Hold the lock file of a journal; the system frees it when its process ends."""
    # Optuna's own lock is journal.lock, held for single writes.
    lock = FileLock(f"{journal}.search-lock")
    with suppress(Timeout):
        lock.acquire(timeout=LONGEST_SEARCH)
    try:
        yield
    finally:
        lock.release()


def _acquire(database: RDBStorage, study_id: int, name: str) -> None:
    """Wait until the search lock is free or its holder is gone, then take it."""
    holder: Any = _NOBODY
    since = time.monotonic()
    while True:
        attributes = database.get_study_system_attrs(study_id)
        if LOCK_KEY not in attributes:
            _insert(database, STUDY_ATTRIBUTES, study_id, LOCK_KEY, _NOBODY)
            continue
        if attributes[LOCK_KEY] != holder:
            holder = attributes[LOCK_KEY]
            since = time.monotonic()
        owner = _process(holder)
        free = owner is None or owner.is_gone or time.monotonic() - since > LONGEST_SEARCH
        if free and _swap(database, STUDY_ATTRIBUTES, study_id, LOCK_KEY, holder, name):
            return
        time.sleep(_POLL_SECONDS)


def _new_name() -> str:
    return f"{this_process()} {uuid.uuid4().hex}"


def _process(name: Any) -> Process | None:
    try:
        return Process.parse(name.partition(" ")[0])
    except (ValueError, AttributeError):  # not the name of a process
        return None


def _database(study: Study) -> RDBStorage | None:
    storage = storage_of(study)
    return storage if isinstance(storage, RDBStorage) else None


def _swap(database: RDBStorage, where: sqlalchemy.TableClause, owner: int, key: str, old: Any, new: str) -> bool:
    """Change an attribute if it still has the old value; return whether it had."""
    statement = (
        sqlalchemy.update(where)
        .where(next(iter(where.c)) == owner, where.c.key == key, where.c.value_json == json.dumps(old))
        .values(value_json=json.dumps(new))
    )
    try:
        with database.engine.begin() as connection:
            return connection.execute(statement).rowcount == 1
    except sqlalchemy.exc.SQLAlchemyError as error:
        raise StorageInternalError(str(error)) from error


def _insert(database: RDBStorage, where: sqlalchemy.TableClause, owner: int, key: str, value: str) -> None:
    """Insert an attribute unless another process has just inserted it."""
    row = {next(iter(where.c)).name: owner, "key": key, "value_json": json.dumps(value)}
    try:
        with database.engine.begin() as connection:
            connection.execute(sqlalchemy.insert(where).values(row))
    except sqlalchemy.exc.IntegrityError:
        pass
    except sqlalchemy.exc.SQLAlchemyError as error:
        raise StorageInternalError(str(error)) from error
