"""Evaluate the objective, stop after repeated failures, and keep values that cannot be stored."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from functools import partial
from types import TracebackType
from typing import NamedTuple, Self

import optuna
from optuna import Study, Trial
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from slayr_py.errors import (
    DataError,
    EnqueuedError,
    NotFiniteError,
    ObjectiveError,
    SlayrError,
    StorageError,
    level_outside,
)
from slayr_py.study.model.session import Phase
from slayr_py.study.run.executors import InThisThread, executor_for, result_of
from slayr_py.study.run.objective import Evaluation, Objective, evaluate, takes_trial
from slayr_py.study.run.outcomes import TrialOutcomes
from slayr_py.study.run.progress import ProgressBar
from slayr_py.study.run.spending import Stopwatch, may_spend
from slayr_py.study.run.untried import Untried
from slayr_py.study.sampler import declared_space_of, space_of
from slayr_py.study.storage.attributes import EVALUATIONS_KEY, VALUE_KEY
from slayr_py.study.storage.bounds import Constraint
from slayr_py.study.storage.costs import SECONDS
from slayr_py.study.storage.opening import describe_storage_error
from slayr_py.study.storage.optuna_private import is_stopped, storage_of
from slayr_py.study.storage.retrying import is_moved, is_storage_error, retries_of, was_deleted
from slayr_py.study.storage.suggesting import suggest_all
from slayr_py.study.storage.workers import send_heartbeats

FAILURES_AT_THE_START = 3
"""Number of consecutive failures that stops the loop if no trial of the study has succeeded: they indicate an error in
the objective."""

FAILURES_IN_A_ROW = 10
"""Number of consecutive failures that stops the loop otherwise."""


class EvaluationSettings(NamedTuple):
    """Arguments of `minimize` for the evaluations."""

    objective: Objective
    budget: int
    constraints: tuple[Constraint, ...] | None = None
    max_consecutive_failures: int | None = None
    n_parallel: int = 1
    executor: Executor | None = None
    timeout: float | None = None
    max_seconds: float | None = None
    max_cost: float | None = None


class _Running(NamedTuple):
    trial: Trial
    heartbeats: ExitStack
    clock: Stopwatch


class _Unsaved(NamedTuple):
    trial: Trial
    evaluation: Evaluation

    @property
    def value(self) -> float | list[float]:
        """The value, or those of several objectives."""
        values = self.evaluation.values
        return values[0] if len(values) == 1 else list(values)

    @property
    def result(self) -> str:
        """The value and the configuration."""
        constraints = self.evaluation.constraints
        limits = f" with the constraints {constraints}" if constraints else ""
        return f"the value {self.value!r}{limits} of trial {self.trial.number} at {dict(self.trial.params)}"

    def __str__(self) -> str:
        # Finished already if the storage failed after the value had arrived.
        call = f"study.tell({self.trial.number}, {self.value!r}, skip_if_finished=True)"
        return f"{self.result}: store it with Optuna's {call}"


class TrialEvaluations:
    """The evaluations of one run: up to ``n_parallel`` at a time, the series of failures, and the values to store.

    Each suggestion knows the running evaluations. Values are stored in the order in which they arrive, on which later
    suggestions depend. After the ``with`` block, trials that still run are left to the next run.
    """

    def __init__(self, study: Study, settings: EvaluationSettings, bar: ProgressBar) -> None:
        self.study = study
        self.settings = settings
        self.bar = bar
        self.space = space_of(study)
        declared = declared_space_of(study)
        self.encoder = None if declared is None else declared.encoder
        self.cost = None if declared is None else declared.options.cost
        self.outcomes = TrialOutcomes(study, self.cost)
        self.executor: Executor
        self.retries = retries_of(storage_of(study))
        self.end: float | None = None
        self.running: dict[Future[Evaluation], _Running] = {}
        self.failures = 0
        self.last_failure: ObjectiveError | None = None
        self.stopped_by: ObjectiveError | None = None
        self.unsaved: dict[int, _Unsaved] = {}
        self._untried = Untried(study)
        self._exit = ExitStack()
        self._writer: Executor | None = None

    def __enter__(self) -> Self:
        """Start the processes or threads of the evaluations, and then the clock."""
        given = self.settings
        if given.n_parallel > 1:
            self._writer = self._exit.enter_context(ThreadPoolExecutor(1, "slayr-values"))
        self.executor = self._exit.enter_context(
            executor_for(given.objective, given.n_parallel, given.executor, given.max_seconds)
        )
        if given.timeout is not None:
            self.end = time.monotonic() + given.timeout
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the trials that still run to the next run.

        Raises
        ------
        ObjectiveError
            If too many consecutive trials have failed, see `minimize`.
        StorageError
            If a value cannot be stored.
        """
        with self._exit:
            for future, running in self.running.items():
                future.cancel()
                running.heartbeats.close()
            if error is not None:
                self._exit.close()  # waits for the evaluations in threads
                self._keep_values(error)
            for running in self.running.values():
                self._abandon(running.trial, error)
        if error is None and self.stopped_by is not None:
            raise self.stopped_by

    def __bool__(self) -> bool:
        """Return whether an evaluation is running."""
        return bool(self.running)

    def may_start(self) -> bool:
        """Return whether another evaluation may start now."""
        if is_stopped(self.study) or len(self.running) >= self.settings.n_parallel:
            return False
        if self.end is not None and time.monotonic() >= self.end:
            return False
        if not may_spend(self.study, self.settings.budget, self.cost, self.settings.max_cost):
            return False
        if self._untried.are_left():
            return True
        if not self.running:
            self._untried.warn(self.settings.budget)
        return False

    def start(self, trial: Trial) -> None:
        """Suggest the parameters of a trial and evaluate them."""
        with ExitStack() as heartbeats:
            heartbeats.enter_context(send_heartbeats(trial))
            clock = Stopwatch()
            try:
                future = self._submit(trial, clock)
            except BaseException as error:  # of the sampler or a display; a failing storage keeps the trial as it is
                if not is_storage_error(error):
                    self.outcomes.postpone(trial, error)
                raise
            future.add_done_callback(clock.stop)
            if self._writer is not None:
                future.add_done_callback(partial(self._write_on_arrival, trial))
            self.running[future] = _Running(trial, heartbeats.pop_all(), clock)

    def finish(self) -> Iterator[FrozenTrial]:
        """Wait for an evaluation, store the outcomes of all that are done, and yield the finished trials."""
        done, _ = wait(self.running, return_when=FIRST_COMPLETED)
        for future in sorted(done, key=lambda future: self.running[future].trial.number):
            trial, heartbeats, clock = self.running.pop(future)
            try:
                with heartbeats:
                    finished = self._tell(trial, future, clock.seconds)
            except BaseException as error:
                if not isinstance(error, Exception):  # such as Ctrl-C
                    self._abandon(trial, error, future)
                    self.unsaved.pop(trial.number, None)
                raise
            if finished is not None:
                self._count(finished)
                yield finished

    def _submit(self, trial: Trial, clock: Stopwatch) -> Future[Evaluation]:
        """Start to evaluate a trial; a trial that a killed process has evaluated already has its value."""
        if (value := trial.user_attrs.get(VALUE_KEY)) is not None:  # and its constraints and its cost
            values = tuple(map(float, value)) if isinstance(value, list) else (float(value),)
            return InThisThread().submit(Evaluation, values, {})
        try:
            config = suggest_all(trial, self.space, self.encoder)
        except EnqueuedError as error:
            return _failed(error)
        self.bar.phase(Phase("evaluating", trial.number))
        trial.set_user_attr(EVALUATIONS_KEY, trial.user_attrs.get(EVALUATIONS_KEY, 0) + 1)
        given = self.settings
        clock.start()
        known = (config, given.constraints, self.outcomes.expected, os.getpid())
        second = (trial,) if takes_trial(given.objective) else ()
        try:
            return self.executor.submit(evaluate, given.objective, *known, *second)
        except Exception as error:  # such as that of a pool that was shut down
            return _failed(error)

    def _tell(self, trial: Trial, future: Future[Evaluation], seconds: float) -> FrozenTrial | None:
        """Store the outcome of an evaluation and return the finished trial, or None if another process has it now."""
        self.last_failure = None
        measured = seconds if self.cost == SECONDS else None
        try:
            evaluation = result_of(future)
        except optuna.TrialPruned:
            self.outcomes.write_cost(trial, measured)
            return self.outcomes.end(trial, TrialState.PRUNED)
        except EnqueuedError as error:
            warnings.warn(f"trial {trial.number} fails: {error}", RuntimeWarning, stacklevel=level_outside())
            return self.outcomes.fail(trial, error)
        except ObjectiveError as error:
            self.last_failure = error
            self.outcomes.write_cost(trial, measured)
            return self.outcomes.fail(trial, error)
        except Exception as error:  # of the executor: the objective may not have run
            self._abandon(trial, error)
            if isinstance(error, SlayrError):
                raise
            what = " ".join(filter(None, (type(error).__name__, str(error))))
            raise ObjectiveError(
                f"the executor failed at trial {trial.number}: {what}. It must accept tasks until minimize returns, "
                "and for processes the objective and its results must be picklable; run the same study again, with a "
                "new executor if this one has ended, to resume it"
            ) from error
        if evaluation.failure is not None:
            self.last_failure = evaluation.failure
            self.outcomes.write_cost(trial, evaluation.cost)
            return self.outcomes.fail(trial, evaluation.failure)
        self.unsaved[trial.number] = _Unsaved(trial, evaluation)
        finished = self.retries(lambda: self.outcomes.store(trial, evaluation))
        del self.unsaved[trial.number]
        if finished is not None:
            self.last_failure = self.outcomes.without_cost(finished, evaluation.cost_error)
        return finished

    def _write_on_arrival(self, trial: Trial, future: Future[Evaluation]) -> None:
        """Write a value when it arrives, in a thread: a process that is killed before it finishes the trial keeps it.

        The main thread may be fitting a model or in a callback. Later it writes what is not there, and reports errors
        of the storage.
        """
        has_value = not future.cancelled() and future.exception() is None and future.result().failure is None
        if has_value and self._writer is not None:
            with suppress(RuntimeError):  # the run has ended, and the user's executor still works
                self._writer.submit(self.outcomes.write_early, trial, future.result())

    def _count(self, trial: FrozenTrial) -> None:
        """Count a finished trial; stop the study after too many consecutive failures."""
        self.bar.finished()
        last = self.last_failure
        # NaN and infinities are results of a working objective and do not count.
        if last is None or isinstance(last, NotFiniteError):
            self.failures = 0
            return
        self.failures += 1
        # Evaluations that run at the same time may add further failures.
        if self.stopped_by is None and self.failures >= self._most_failures(trial.number):
            self.stopped_by = ObjectiveError(
                f"{self.failures} trials in a row failed. The last one, trial {trial.number} at "
                f"{dict(trial.params)}, failed because {last}. Everything evaluated so far is in the study. "
                f"max_consecutive_failures= allows more: by default {FAILURES_IN_A_ROW}, or "
                f"{FAILURES_AT_THE_START} before the first success"
            )
            self.stopped_by.__cause__ = last.__cause__ or last
            self.study.stop()

    def _most_failures(self, number: int) -> int:
        """Return how many failures in a row end the run; ``number`` is that of the last trial that failed.

        Failures are often quicker than successes. While earlier trials run, they may not be in a row, so that a few say
        nothing yet.
        """
        if self.settings.max_consecutive_failures is not None:
            most = self.settings.max_consecutive_failures
        else:
            succeeded = self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
            most = FAILURES_IN_A_ROW if succeeded else FAILURES_AT_THE_START
        earlier = any(running.trial.number < number for running in self.running.values())
        return max(most, FAILURES_IN_A_ROW) if earlier else most

    def _abandon(self, trial: Trial, error: BaseException | None, evaluated: Future[Evaluation] | None = None) -> None:
        """Leave a trial to the next run, with its value if there is one, or fail it if it cannot be resumed."""
        if (unsaved := self.unsaved.get(trial.number)) is not None:
            self._write_interrupted(unsaved)
        count = trial.user_attrs.get(EVALUATIONS_KEY, 0)
        if count > 0 and not _counts(error, evaluated):
            with suppress(UpdateFinishedTrialError):  # by this run, just before the interrupt
                trial.set_user_attr(EVALUATIONS_KEY, count - 1)
        self.outcomes.release(trial, error)

    def _write_interrupted(self, unsaved: _Unsaved) -> None:
        """Write the value of a trial for the next run, or name it in a warning."""
        try:
            self.outcomes.write(*unsaved)
        except Exception as error:
            if not is_storage_error(error):
                raise
            reason = describe_storage_error(error)
            warnings.warn(
                f"the study's storage failed: {reason}. It lacks {unsaved}", RuntimeWarning, stacklevel=level_outside()
            )

    def _keep_values(self, error: BaseException) -> None:
        """Store the values that arrived before the run ends by an error, of the storage or another one.

        Raises
        ------
        StorageError
            If it still fails. The message has the values and the calls that store them.
        """
        for future, running in tuple(self.running.items()):
            has_result = future.done() and not future.cancelled() and future.exception() is None
            if has_result and future.result().failure is None:
                del self.running[future]
                self.unsaved[running.trial.number] = _Unsaved(running.trial, future.result())
        for number, unsaved in tuple(self.unsaved.items()):
            try:
                self.outcomes.store(*unsaved)
                del self.unsaved[number]
            except Exception as again:
                error = again
        if self.unsaved:
            reason = f"the study's storage failed: {describe_storage_error(error)}"
            if was_deleted(error):
                results = "; ".join(unsaved.result for unsaved in self.unsaved.values())
                raise StorageError(f"{reason}. It lacked {results}") from error
            values = "; ".join(map(str, self.unsaved.values()))
            lacks = "It lacks" if is_moved(error) else "Everything is stored except"
            raise StorageError(f"{reason}. {lacks} {values}; then run the same study again to resume it") from error


def _counts(error: BaseException | None, evaluated: Future[Evaluation] | None) -> bool:
    """Return whether an evaluation without an outcome counts as one of the trial's attempts.

    Interrupts by the user or by a signal do not count. Evaluations that perhaps never began do not count either.

    Parameters
    ----------
    error : BaseException, optional
        What ended the run.
    evaluated : Future, optional
        The evaluation, if it is done: its own error, such as a panic of an extension in Rust, may end it again.
    """
    if error is None or isinstance(error, Exception):
        return not isinstance(error, DataError)
    if evaluated is None or evaluated.cancelled() or isinstance(error, KeyboardInterrupt | SystemExit):
        return False
    return error is evaluated.exception()


def _failed(error: Exception) -> Future[Evaluation]:
    """Return an evaluation that did not begin."""
    future: Future[Evaluation] = Future()
    future.set_exception(error)
    return future
