"""Several processes on one study, and what a killed one leaves: trials are taken up again, suggestions come in turn.

Both rest on one operation that every database does atomically: to change an attribute only if it still has the value
that was read. A trial that `minimize` begins carries the name of its process. Whoever is about to begin a trial first
looks for one whose process is gone, and goes on with that: same number, same configuration, so the study continues as
if nothing had happened. The search for a configuration is made by one process at a time, so that each sees what the
others have been given; fits run side by side.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import optuna
import sqlalchemy
from optuna import Study
from optuna.exceptions import StorageInternalError
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy import column, table

from slayr_py.processes import Process, this_process
from slayr_py.study.storage.attributes import EVALUATIONS_KEY, FAILURE_KEY, TURN_KEY, WORKER_KEY

HEARTBEAT_SECONDS = 60
"""A worker that has been silent for twice this long is taken for dead, if it is on a machine that cannot be seen."""

LONGEST_TURN = 600.0
"""Seconds after which a turn is taken from a worker, whether it can be seen or not. A search takes seconds."""

MOST_EVALUATIONS = 5
"""Times that an evaluation is begun before its trial is given up: an objective that ends its process would do so for
ever."""

_POLL = 0.05
_NOBODY = ""

_at_work: set[str] = set()  # of this process; a name of it that is not here belongs to a run that has ended


class WorkerStorage(RDBStorage):
    """Optuna's storage of one run on a study, which takes up what others have left."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.worker = _new_name()
        self.study_id: int | None = None  # of the run's study, once it has begun
        super().__init__(*arguments, **options)

    def _create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> FrozenTrial:
        # Optuna asks for a new trial here; one that a killed process has begun is as good, and comes first.
        if template_trial is not None:
            return super()._create_new_trial(study_id, template_trial)
        for trial in self.abandoned(study_id):
            if _swap(self, _OF_TRIALS, trial._trial_id, WORKER_KEY, trial.user_attrs[WORKER_KEY], self.worker):
                self.record_heartbeat(trial._trial_id)
                if trial.user_attrs.get(EVALUATIONS_KEY, 0) < MOST_EVALUATIONS:
                    return self.get_trial(trial._trial_id)
                why = f"its evaluation was begun {MOST_EVALUATIONS} times and never ended"
                self.set_trial_user_attr(trial._trial_id, FAILURE_KEY, why)
                self.set_trial_state_values(trial._trial_id, TrialState.FAIL)
        # Its owner's name is stored with the trial or not at all: no moment is too short to be killed in.
        begun = optuna.trial.create_trial(state=TrialState.RUNNING, user_attrs={WORKER_KEY: self.worker})
        created = super()._create_new_trial(study_id, begun)
        self.record_heartbeat(created._trial_id)
        return created

    def set_trial_state_values(self, trial_id: int, state: TrialState, values: Sequence[float] | None = None) -> bool:
        """Set a trial's state; an enqueued one that is begun is this run's, and comes after those that were left."""
        if state != TrialState.RUNNING:
            return super().set_trial_state_values(trial_id, state, values)
        if self.study_id is not None and self.abandoned(self.study_id):
            return False
        begun = super().set_trial_state_values(trial_id, state, values)
        if begun:
            self.set_trial_user_attr(trial_id, WORKER_KEY, self.worker)
        return begun

    def holds(self, trial_id: int) -> bool:
        """Whether a trial is still this run's: one that was silent for too long may have been given to another."""
        try:
            return self.get_trial(trial_id).user_attrs.get(WORKER_KEY) == self.worker
        except StorageInternalError:
            return True  # its value is not lost for that: the write that follows meets the same failure, and says so

    def abandoned(self, study_id: int) -> list[FrozenTrial]:
        """Running trials of `minimize` that nobody works on any more, in the order of their numbers."""
        running = self.get_all_trials(study_id, deepcopy=False, states=(TrialState.RUNNING,))
        running = [trial for trial in running if isinstance(trial.user_attrs.get(WORKER_KEY), str)]
        silent = set(super()._get_stale_trial_ids(study_id)) if running else set()
        left = []
        for trial in running:
            owner = _process(name := trial.user_attrs[WORKER_KEY])
            if owner is None or owner.is_gone or (owner == this_process() and name not in _at_work):
                left.append(trial)
            elif not owner.is_local and trial._trial_id in silent:
                left.append(trial)
        return left

    def release(self, trial_id: int) -> None:
        """Leave a running trial of this run to whoever goes on with the study."""
        _swap(self, _OF_TRIALS, trial_id, WORKER_KEY, self.worker, _NOBODY)

    def _get_stale_trial_ids(self, study_id: int) -> list[int]:
        return []  # Optuna would fail them; here they are gone on with

    def record_heartbeat(self, trial_id: int) -> None:
        """Say that the trial is worked on; a heartbeat that cannot be written is one missed."""
        try:
            super().record_heartbeat(trial_id)
        except StorageInternalError:
            pass  # whatever is wrong, the trial's own writes will meet it and say so


def worker_storage(study: Study) -> WorkerStorage | None:
    """Give the storage of a study that `minimize` works on, or None if it is kept elsewhere."""
    database = _database(study)
    return database if isinstance(database, WorkerStorage) else None


@contextmanager
def at_work(study: Study) -> Iterator[None]:
    """Mark the time in which this run's trials are its own."""
    storage = worker_storage(study)
    if storage is None:
        yield
        return
    storage.study_id = study._study_id
    _at_work.add(storage.worker)
    try:
        yield
    finally:
        _at_work.discard(storage.worker)


@contextmanager
def turn(study: Study) -> Iterator[None]:
    """Wait until no other process searches for a configuration, and let none begin meanwhile.

    Raises
    ------
    optuna.exceptions.StorageInternalError
        The database failed.
    """
    database = _database(study)
    if database is None:
        yield
        return
    mine, study_id = _new_name(), study._study_id
    _take_turn(database, study_id, mine)
    try:
        yield
    finally:
        _swap(database, _OF_STUDIES, study_id, TURN_KEY, mine, _NOBODY)


def _take_turn(database: RDBStorage, study_id: int, mine: str) -> None:
    holder: Any = _NOBODY
    since = time.monotonic()
    while True:
        attributes = database.get_study_system_attrs(study_id)
        if TURN_KEY not in attributes:
            _insert(database, _OF_STUDIES, study_id, TURN_KEY, _NOBODY)
            continue
        if attributes[TURN_KEY] != holder:
            holder, since = attributes[TURN_KEY], time.monotonic()
        owner = _process(holder)
        free = owner is None or owner.is_gone or time.monotonic() - since > LONGEST_TURN
        if free and _swap(database, _OF_STUDIES, study_id, TURN_KEY, holder, mine):
            return
        time.sleep(_POLL)


def _new_name() -> str:
    return f"{this_process()} {uuid.uuid4().hex}"


def _process(name: Any) -> Process | None:
    try:
        return Process.parse(name.partition(" ")[0])
    except (ValueError, AttributeError):  # nobody
        return None


def _database(study: Study) -> RDBStorage | None:
    storage = getattr(study._storage, "_backend", study._storage)  # Optuna puts a cache before its databases
    return storage if isinstance(storage, RDBStorage) else None


_OF_TRIALS = table("trial_user_attributes", column("trial_id"), column("key"), column("value_json"))
_OF_STUDIES = table("study_system_attributes", column("study_id"), column("key"), column("value_json"))


def _swap(database: RDBStorage, where: sqlalchemy.TableClause, owner: int, key: str, old: Any, new: str) -> bool:
    """Change an attribute if it is still the old one, and say whether it was."""
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
    """Put an attribute where there is none; another process may be first."""
    row = {next(iter(where.c)).name: owner, "key": key, "value_json": json.dumps(value)}
    try:
        with database.engine.begin() as connection:
            connection.execute(sqlalchemy.insert(where).values(row))
    except sqlalchemy.exc.IntegrityError:
        pass
    except sqlalchemy.exc.SQLAlchemyError as error:
        raise StorageInternalError(str(error)) from error
