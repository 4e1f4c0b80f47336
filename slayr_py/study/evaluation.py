"""Evaluate the trials of a study: store values, stop after repeated failures, keep values from failing storages."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any, NamedTuple

import optuna
from optuna import Study, Trial
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from slayr_py.errors import EnqueuedError, NotFiniteError, ObjectiveError, StorageError
from slayr_py.study.constraints import Constraint
from slayr_py.study.objective import Evaluation, Objective, evaluate
from slayr_py.study.progress import ProgressBar
from slayr_py.study.proposal import Phase
from slayr_py.study.sampler import StanGPSampler
from slayr_py.study.storage.attributes import EVALUATIONS_KEY, FAILURE_KEY, VALUE_KEY, is_history
from slayr_py.study.storage.opening import describe_storage_error, storage_error
from slayr_py.study.storage.optuna_private import id_of_study, id_of_trial
from slayr_py.study.storage.workers import worker_storage
from slayr_py.study.suggesting import suggest_all

FAILURES_AT_THE_START = 3
"""Number of consecutive failures that stops the loop if no trial of the study has succeeded: they indicate an error in
the objective."""

FAILURES_IN_A_ROW = 10
"""Number of consecutive failures that stops the loop otherwise."""

RETRY_SECONDS = (1.0, 5.0)
"""Waiting times before each further attempt to store a value after the storage has failed."""

Callback = Callable[[Study, FrozenTrial], None]
"""An Optuna callback, called after every trial; ``study.stop()`` ends the loop."""


class _TrialTakenOver(BaseException):
    """Another process has resumed the trial. Optuna does not catch this error and leaves the trial as it is."""


class _Interrupted(BaseException):
    """The user interrupts the run. Optuna does not catch this error and leaves the trial running."""


class Settings(NamedTuple):
    """What to evaluate, and how: arguments of `minimize`."""

    objective: Objective
    budget: int
    constraints: tuple[Constraint, ...] | None = None
    max_consecutive_failures: int | None = None
    n_parallel: int = 1
    executor: Executor | None = None


class EvaluationLoop:
    """One run of Optuna's loop: the current series of failures, and the value of a trial that is not finished yet."""

    def __init__(self, settings: Settings, sampler: StanGPSampler, bar: ProgressBar) -> None:
        self.settings = settings
        self.sampler = sampler
        self.bar = bar
        self.failures = 0
        self.last_failure: ObjectiveError | None = None
        self.stopped_by: ObjectiveError | None = None
        self.unsaved: tuple[Trial, float] | None = None

    def run(self, study: Study, timeout: float | None, callbacks: Sequence[Callback]) -> None:
        """Evaluate trials until the budget or the time is used up.

        Raises
        ------
        ObjectiveError
            If too many consecutive trials fail, see `minimize`.
        StorageError
            If a value cannot be stored.
        """
        try:
            self._optimize(study, timeout, callbacks)
        except _Interrupted:
            raise KeyboardInterrupt from None
        except Exception as error:
            if self.unsaved is not None and (cause := storage_error(error)) is not None:
                self._store_again(study, *self.unsaved, cause)
            raise
        if self.stopped_by is not None:
            raise self.stopped_by

    def _optimize(self, study: Study, timeout: float | None, callbacks: Sequence[Callback]) -> None:
        """Run Optuna's loop, again after each trial that another process has taken over."""
        end = None if timeout is None else time.monotonic() + timeout
        while started_trials(study) < self.settings.budget:
            try:
                return study.optimize(
                    self._evaluate,
                    n_trials=None,
                    timeout=None if end is None else max(0.0, end - time.monotonic()),
                    catch=(ObjectiveError, EnqueuedError),
                    callbacks=[self._after_trial, *callbacks],
                )
            except _TrialTakenOver:
                pass

    def _evaluate(self, trial: Trial) -> float:
        value = trial.user_attrs.get(VALUE_KEY)
        if value is None:
            value = self._new_value(trial)
        self.last_failure = None
        if not self._owns(trial):
            raise _TrialTakenOver
        self.unsaved = trial, value
        return float(value)

    def _owns(self, trial: Trial) -> bool:
        """Return whether a trial still belongs to this run, with a warning if not."""
        if (storage := worker_storage(trial.study)) is None or storage.owns(id_of_trial(trial)):
            return True
        self.unsaved = None
        warnings.warn(
            f"the value of trial {trial.number} comes too late: this process sent no heartbeat for so long that "
            "another process has resumed the trial, and will finish it",
            RuntimeWarning,
            stacklevel=3,
        )
        return False

    def _new_value(self, trial: Trial) -> float:
        """Call the objective and write its value at once, before Optuna finishes the trial."""
        self.unsaved = None
        try:
            evaluation = evaluate(self.settings.objective, self._configuration(trial), self.settings.constraints)
            self._write(trial, evaluation)
        except EnqueuedError:
            raise
        except optuna.TrialPruned:
            self.last_failure = None
            raise
        except ObjectiveError as error:
            self._failed(trial, error)
            raise
        except KeyboardInterrupt as error:
            self._release(trial, error)
            raise
        except Exception as error:  # of the sampler
            trial.set_user_attr(FAILURE_KEY, str(error) or type(error).__name__)
            raise
        return evaluation.value

    def _configuration(self, trial: Trial) -> dict[str, Any]:
        """Suggest the configuration of a trial and count its evaluation.

        Raises
        ------
        EnqueuedError
            If the trial was enqueued with a value outside the space.
        """
        try:
            config = suggest_all(trial, self.sampler.space)
        except EnqueuedError as error:
            trial.set_user_attr(FAILURE_KEY, str(error))
            self.last_failure = None
            warnings.warn(f"trial {trial.number} fails: {error}", RuntimeWarning, stacklevel=3)
            raise
        self.bar.phase(Phase("evaluating", trial.number))
        trial.set_user_attr(EVALUATIONS_KEY, trial.user_attrs.get(EVALUATIONS_KEY, 0) + 1)
        return config

    def _write(self, trial: Trial, evaluation: Evaluation) -> None:
        """Store the constraints and the value of a trial that is not finished yet."""
        self.unsaved = trial, evaluation.value
        for name, excess in evaluation.constraints.items():
            if name not in trial.constraints:  # a killed process may have stored it
                trial.set_constraint(name, excess)
        _write_value(trial, evaluation.value)

    def _failed(self, trial: Trial, error: ObjectiveError) -> None:
        trial.set_user_attr(FAILURE_KEY, str(error))
        self.last_failure = error

    def _release(self, trial: Trial, error: KeyboardInterrupt) -> None:
        """Leave an interrupted trial to the next run, with its value if there is one already.

        Raises
        ------
        _Interrupted
            If the storage can resume the trial.
        """
        if self.unsaved is not None:
            _write_value(*self.unsaved)
        if (storage := worker_storage(trial.study)) is None:
            trial.set_user_attr(FAILURE_KEY, type(error).__name__)
            return
        if (count := trial.user_attrs.get(EVALUATIONS_KEY, 0)) > 0:  # the user ended it, not the objective
            trial.set_user_attr(EVALUATIONS_KEY, count - 1)
        storage.release(id_of_trial(trial))  # the next run resumes this trial
        raise _Interrupted from None

    def _store_again(self, study: Study, trial: Trial, value: float, cause: Exception) -> None:
        """Try to store a value again after the storage has failed; its evaluation may have taken a day.

        Raises
        ------
        StorageError
            If all attempts fail. The message has the value and the call that stores it.
        """
        for seconds in RETRY_SECONDS:
            time.sleep(seconds)
            try:
                study.tell(trial.number, value, skip_if_finished=True)
                return
            except Exception as error:
                cause = storage_error(error) or error
        raise StorageError(
            f"the study's storage failed: {describe_storage_error(cause)}. Everything is stored except the last value, "
            f"{value!r} of trial {trial.number} at {dict(trial.params)}: store it with Optuna's "
            f"study.tell({trial.number}, {value!r}), then run the same study again to resume it"
        ) from cause

    def _most_failures(self, study: Study) -> int:
        if self.settings.max_consecutive_failures is not None:
            return self.settings.max_consecutive_failures
        succeeded = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        return FAILURES_IN_A_ROW if succeeded else FAILURES_AT_THE_START

    def _after_trial(self, study: Study, trial: FrozenTrial) -> None:
        self.unsaved = None
        self.bar.finished()
        # NaN and infinities are results of a working objective and do not count.
        failed = self.last_failure is not None and not isinstance(self.last_failure, NotFiniteError)
        self.failures = self.failures + 1 if failed else 0
        if failed and self.failures >= self._most_failures(study):
            last = self.last_failure
            self.stopped_by = ObjectiveError(
                f"{self.failures} trials in a row failed. The last one, trial {trial.number} at "
                f"{dict(trial.params)}, failed because {last}. Everything evaluated so far is in the study"
            )
            self.stopped_by.__cause__ = last.__cause__ if last is not None and last.__cause__ is not None else last
            study.stop()
        elif started_trials(study) >= self.settings.budget:
            study.stop()


def _write_value(trial: Trial, value: float) -> None:
    """Write the value of a trial that is not finished yet, so that a run that resumes it need not evaluate again."""
    try:
        trial.set_user_attr(VALUE_KEY, value)
    except UpdateFinishedTrialError:
        pass  # by a process that has taken the trial over
    except Exception as error:
        if storage_error(error) is None:
            raise
        # Finishing the trial meets the same failure and reports it, with the value.


def started_trials(study: Study) -> int:
    """Count the running and finished trials, without past experiments and the abandoned ones of killed processes.

    Enqueued and abandoned trials are still to be evaluated within the budget.
    """
    storage = worker_storage(study)
    abandoned = len(storage.abandoned(id_of_study(study))) if storage is not None else 0
    trials = study.get_trials(deepcopy=False)
    return sum(trial.state != TrialState.WAITING and not is_history(trial) for trial in trials) - abandoned
