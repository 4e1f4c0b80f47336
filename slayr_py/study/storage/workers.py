"""Share a study among processes: resume the trials of killed processes.

A trial started by `minimize` carries the name of its process. A process that needs a trial first looks for a running
one whose process is gone and resumes it with the same number and configuration, so the study continues as if it had
not been interrupted.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import optuna
import sqlalchemy
from optuna import Study, Trial
from optuna.exceptions import ExperimentalWarning, StorageInternalError
from optuna.storages import fail_stale_trials
from optuna.trial import FrozenTrial, TrialState

from slayr_py.processes import this_process
from slayr_py.study.storage.atomic import database_of, in_database, new_name, process_named, swap
from slayr_py.study.storage.attributes import EVALUATIONS_KEY, FAILURE_KEY, VALUE_KEY, WORKER_KEY, is_history
from slayr_py.study.storage.optuna_private import (
    TRIAL_ATTRIBUTES,
    TRIALS,
    DatabaseStorage,
    id_of_study,
    id_of_trial,
)
from slayr_py.threads import ignored_warnings

HEARTBEAT_SECONDS = 60
"""Interval of heartbeats. A process on another machine that sends none for twice this long counts as dead."""

MOST_EVALUATIONS = 5
"""Number of times an evaluation is started before its trial fails, because an objective that ends its process would do
so again and again."""

_NOBODY = ""

_active_runs: set[str] = set()  # names of this process; any other name of it belongs to a run that has ended


class WorkerStorage(DatabaseStorage):
    """Optuna's storage for one run on a study, which resumes the abandoned trials of other runs."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.worker = new_name()
        self.study_id: int | None = None  # the run's study, once it has started
        self.held: set[int] = set()  # trials that this run knows of
        super().__init__(*arguments, **options)

    def new_trial(self, study_id: int, template: FrozenTrial | None) -> FrozenTrial:
        """Return an abandoned trial to resume, or else a new one that carries the name of this run."""
        if template is not None:
            return super().new_trial(study_id, template)
        if (abandoned := self._resume(study_id)) is not None:
            return abandoned
        # Stored in one operation with the trial: a process killed at any moment leaves no trial without its name.
        template = optuna.trial.create_trial(state=TrialState.RUNNING, user_attrs={WORKER_KEY: self.worker})
        created = super().new_trial(study_id, template)
        # Several were created if an answer of the database was lost: this run takes the first, and the others later.
        return self._resume(study_id) or created

    def _resume(self, study_id: int) -> FrozenTrial | None:
        """Take the first trial to resume and return it."""
        return next(
            (self.get_trial(id_of_trial(trial)) for trial in self.resumable(study_id) if self._take(trial)), None
        )

    def resumable(self, study_id: int) -> list[FrozenTrial]:
        """Return the abandoned trials that may be evaluated again, and fail the others."""
        left = []
        for trial in self.abandoned(study_id):
            if VALUE_KEY in trial.user_attrs or trial.user_attrs.get(EVALUATIONS_KEY, 0) < MOST_EVALUATIONS:
                left.append(trial)
            elif self._take(trial):
                why = f"its evaluation was started {MOST_EVALUATIONS} times and never finished"
                self.set_trial_user_attr(id_of_trial(trial), FAILURE_KEY, why)
                self.set_trial_state_values(id_of_trial(trial), TrialState.FAIL)
        return left

    def _take(self, trial: FrozenTrial) -> bool:
        """Give an abandoned trial the name of this run; return False if another run was faster."""
        number = id_of_trial(trial)
        if not swap(self, TRIAL_ATTRIBUTES, number, WORKER_KEY, trial.user_attrs[WORKER_KEY], self.worker):
            return False
        self.held.add(number)
        self.record_heartbeat(number)
        return True

    def set_trial_state_values(self, trial_id: int, state: TrialState, values: Sequence[float] | None = None) -> bool:
        """Set the state of a trial; an enqueued trial starts only if there is none to resume."""
        if state != TrialState.RUNNING:
            return super().set_trial_state_values(trial_id, state, values)
        if self.study_id is not None and self.resumable(self.study_id):
            return False
        return self._start_enqueued(trial_id)

    def _start_enqueued(self, trial_id: int) -> bool:
        """Start an enqueued trial with the name of this run in one transaction; return whether it was still waiting."""
        row = {"trial_id": trial_id, "key": WORKER_KEY, "value_json": json.dumps(self.worker)}
        waiting = (TRIALS.c.trial_id == trial_id) & (TRIALS.c.state == TrialState.WAITING)
        start = sqlalchemy.update(TRIALS).where(waiting).values(state=TrialState.RUNNING, datetime_start=datetime.now())

        def change() -> bool:
            with self.engine.begin() as connection:
                started = connection.execute(start).rowcount == 1
                if started:
                    connection.execute(sqlalchemy.insert(TRIAL_ATTRIBUTES).values(row))
            # An earlier try may have started it although its answer was lost.
            return started or (trial_id not in self.held and self.owns(trial_id))

        started = in_database(self, change)
        if started:
            self.held.add(trial_id)
        return started

    def owns(self, trial_id: int) -> bool:
        """Whether a trial still belongs to this run; without heartbeats another run may have resumed it."""
        return self.get_trial(trial_id).user_attrs.get(WORKER_KEY) == self.worker

    def abandoned(self, study_id: int) -> list[FrozenTrial]:
        """Return the running trials of `minimize` whose process is gone, in the order of their numbers."""
        running = self.get_all_trials(study_id, deepcopy=False, states=(TrialState.RUNNING,))
        running = [trial for trial in running if isinstance(trial.user_attrs.get(WORKER_KEY), str)]
        silent = set(self.silent_trials(study_id)) if running else set()
        left = []
        for trial in running:
            owner = process_named(name := trial.user_attrs[WORKER_KEY])
            if owner is None or owner.is_gone or (owner == this_process() and name not in _active_runs):
                left.append(trial)
                continue
            silent_elsewhere = not owner.is_local and id_of_trial(trial) in silent
            # This run has created it, but the answer of the database was lost.
            unknown_here = name == self.worker and id_of_trial(trial) not in self.held
            if silent_elsewhere or unknown_here:
                left.append(trial)
        return left

    def release(self, trial_id: int) -> None:
        """Abandon a running trial of this run, so that the next run resumes it."""
        swap(self, TRIAL_ATTRIBUTES, trial_id, WORKER_KEY, self.worker, _NOBODY)

    def trials_to_fail(self, study_id: int) -> list[int]:
        """Return no trials: the silent ones are resumed."""
        return []

    def record_heartbeat(self, trial_id: int) -> None:
        """Send a heartbeat; one that cannot be written is skipped."""
        try:
            super().record_heartbeat(trial_id)
        except (StorageInternalError, sqlalchemy.exc.SQLAlchemyError):
            pass  # the trial's own writes meet the same failure and report it


def worker_storage(study: Study) -> WorkerStorage | None:
    """Return the storage of a study opened by `minimize`, or None for any other storage."""
    database = database_of(study)
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
    with ignored_warnings(ExperimentalWarning):
        fail_stale_trials(study)
    return study.ask()


@contextmanager
def send_heartbeats(trial: Trial) -> Iterator[None]:
    """Send heartbeats of a trial until the block ends, if its storage records them."""
    database = database_of(trial.study)
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


def is_evaluating(study: Study) -> bool:
    """Return whether a trial is running, other than those of killed processes."""
    storage = worker_storage(study)
    left = len(storage.abandoned(id_of_study(study))) if storage is not None else 0
    return len(study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))) > left


def started_trials(study: Study) -> int:
    """Count the running and finished trials, without past experiments and those to resume after killed processes.

    Enqueued trials and those to resume are still to be evaluated within the budget.
    """
    storage = worker_storage(study)
    left = len(storage.resumable(id_of_study(study))) if storage is not None else 0
    trials = study.get_trials(deepcopy=False)
    return sum(trial.state != TrialState.WAITING and not is_history(trial) for trial in trials) - left
