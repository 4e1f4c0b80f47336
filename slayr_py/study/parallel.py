"""Evaluate several trials at a time on an executor, such as a pool of processes or a Dask cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager

import optuna
from optuna import Study, Trial
from optuna.trial import TrialState

from slayr_py.errors import EnqueuedError, ObjectiveError
from slayr_py.study.evaluation import Callback, EvaluationLoop, started_trials
from slayr_py.study.objective import Evaluation, evaluate
from slayr_py.study.storage.attributes import FAILURE_KEY, VALUE_KEY
from slayr_py.study.storage.optuna_private import id_of_trial, is_stopped, optimizing
from slayr_py.study.storage.workers import HEARTBEAT_SECONDS, worker_storage


class ParallelLoop(EvaluationLoop):
    """Keep up to ``n_parallel`` evaluations running; each suggestion knows those that are.

    Values are stored in the order in which they arrive, on which later suggestions depend.
    """

    def _optimize(self, study: Study, timeout: float | None, callbacks: Sequence[Callback]) -> None:
        end = None if timeout is None else time.monotonic() + timeout
        running: dict[Future[Evaluation], Trial] = {}
        with self._workers() as executor, optimizing(study):
            try:
                while True:
                    while len(running) < self.settings.n_parallel and self._may_start(study, end):
                        self._start(study, executor, running, callbacks)
                    if not running:
                        return
                    done, _ = wait(running, timeout=HEARTBEAT_SECONDS / 2, return_when=FIRST_COMPLETED)
                    self._send_heartbeats(study, running)
                    for future in sorted(done, key=lambda one: running[one].number):
                        self._finish(study, running.pop(future), future, callbacks)
            finally:
                for future, trial in running.items():
                    future.cancel()
                    self._abandon(trial)

    @contextmanager
    def _workers(self) -> Iterator[Executor]:
        if self.settings.executor is not None:
            yield self.settings.executor
            return
        with ThreadPoolExecutor(self.settings.n_parallel) as threads:
            yield threads

    def _may_start(self, study: Study, end: float | None) -> bool:
        if is_stopped(study) or (end is not None and time.monotonic() >= end):
            return False
        return started_trials(study) < self.settings.budget

    def _start(
        self,
        study: Study,
        executor: Executor,
        running: dict[Future[Evaluation], Trial],
        callbacks: Sequence[Callback],
    ) -> None:
        trial = study.ask()
        if (value := trial.user_attrs.get(VALUE_KEY)) is not None:  # of a killed process
            self._tell(study, trial, callbacks, value=float(value))
            return
        try:
            config = self._configuration(trial)
        except EnqueuedError:
            self._tell(study, trial, callbacks, state=TrialState.FAIL)
            return
        running[executor.submit(evaluate, self.settings.objective, config, self.settings.constraints)] = trial

    def _finish(self, study: Study, trial: Trial, future: Future[Evaluation], callbacks: Sequence[Callback]) -> None:
        try:
            evaluation = future.result()
        except optuna.TrialPruned:
            self.last_failure = None
            self._tell(study, trial, callbacks, state=TrialState.PRUNED)
        except ObjectiveError as error:
            self._failed(trial, error)
            self._tell(study, trial, callbacks, state=TrialState.FAIL)
        except Exception as error:  # of the executor: the objective may not have run
            self._abandon(trial)
            raise ObjectiveError(
                f"the executor failed at trial {trial.number}: {type(error).__name__}: {error}. The objective and its "
                "results must be picklable for processes; run the same study again to resume it"
            ) from error
        else:
            self._write(trial, evaluation)
            self.last_failure = None
            if self._owns(trial):
                self._tell(study, trial, callbacks, value=evaluation.value)

    def _tell(
        self,
        study: Study,
        trial: Trial,
        callbacks: Sequence[Callback],
        value: float | None = None,
        state: TrialState | None = None,
    ) -> None:
        if value is not None:
            self.unsaved = trial, value
        frozen = study.tell(trial, value, state)
        self._after_trial(study, frozen)
        for callback in callbacks:
            callback(study, frozen)

    def _send_heartbeats(self, study: Study, running: dict[Future[Evaluation], Trial]) -> None:
        if (storage := worker_storage(study)) is not None:
            for trial in running.values():
                storage.record_heartbeat(id_of_trial(trial))

    def _abandon(self, trial: Trial) -> None:
        """Leave a trial to the next run, or fail it if the storage cannot resume it."""
        if (storage := worker_storage(trial.study)) is not None:
            storage.release(id_of_trial(trial))
        else:
            trial.set_user_attr(FAILURE_KEY, KeyboardInterrupt.__name__)
            trial.study.tell(trial, state=TrialState.FAIL)
