"""Evaluate the trials of a study: store values, stop after repeated failures, keep values from failing storages."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence

import optuna
from optuna import Study, Trial
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from slayr_py.errors import EnqueuedError, NotFiniteError, ObjectiveError, StorageError
from slayr_py.study.asktell import suggest_all
from slayr_py.study.objective import Objective, evaluate
from slayr_py.study.progress import ProgressBar
from slayr_py.study.proposal import Phase
from slayr_py.study.sampler import StanGPSampler
from slayr_py.study.storage.attributes import EVALUATIONS_KEY, FAILURE_KEY, VALUE_KEY, is_history
from slayr_py.study.storage.opening import describe_storage_error, storage_error
from slayr_py.study.storage.workers import worker_storage

FAILURES_IN_A_ROW = 3
"""Number of consecutive failures that stops the loop: they indicate an error in the objective."""

RETRY_SECONDS = (1.0, 5.0)
"""Waiting times before each further attempt to store a value after the storage has failed."""

Callback = Callable[[Study, FrozenTrial], None]
"""An Optuna callback, called after every trial; ``study.stop()`` ends the loop."""


class _TrialTakenOver(BaseException):
    """Another process has resumed the trial. Optuna does not catch this error and leaves the trial as it is."""


class _Interrupted(BaseException):
    """The user interrupts the run. Optuna does not catch this error and leaves the trial running."""


class EvaluationLoop:
    """One run of Optuna's loop: the current series of failures, and the value of a trial that is not finished yet."""

    def __init__(self, objective: Objective, sampler: StanGPSampler, budget: int, bar: ProgressBar) -> None:
        self.objective = objective
        self.sampler = sampler
        self.budget = budget
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
            If `FAILURES_IN_A_ROW` consecutive trials fail.
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
        while started_trials(study) < self.budget:
            try:
                return study.optimize(
                    self._evaluate,
                    n_trials=None,
                    timeout=None if end is None else max(0.0, end - time.monotonic()),
                    catch=(ObjectiveError, EnqueuedError),
                    callbacks=[self._after_trial, *callbacks],
                )
            except _TrialTakenOver as lost:
                warnings.warn(str(lost), RuntimeWarning, stacklevel=2)

    def _evaluate(self, trial: Trial) -> float:
        value = trial.user_attrs.get(VALUE_KEY)
        if value is None:
            value = self._new_value(trial)
        self.last_failure = None
        if (storage := worker_storage(trial.study)) is not None and not storage.owns(trial._trial_id):
            self.unsaved = None
            raise _TrialTakenOver(
                f"the value {value!r} of trial {trial.number} comes too late: this process sent no heartbeat for so "
                "long that another process has resumed the trial, and will finish it"
            )
        self.unsaved = trial, value
        return float(value)

    def _new_value(self, trial: Trial) -> float:
        """Call the objective and write its value at once, before Optuna finishes the trial."""
        self.unsaved = None
        try:
            config = suggest_all(trial, self.sampler.space)
            self.bar.phase(Phase("evaluating", trial.number))
            trial.set_user_attr(EVALUATIONS_KEY, trial.user_attrs.get(EVALUATIONS_KEY, 0) + 1)
            value = evaluate(self.objective, config)
            self.unsaved = trial, value
            _write_value(trial, value)
        except EnqueuedError as error:
            trial.set_user_attr(FAILURE_KEY, str(error))
            self.last_failure = None
            warnings.warn(f"trial {trial.number} fails: {error}", RuntimeWarning, stacklevel=2)
            raise
        except optuna.TrialPruned:
            self.last_failure = None
            raise
        except ObjectiveError as error:
            trial.set_user_attr(FAILURE_KEY, str(error))
            self.last_failure = error
            raise
        except KeyboardInterrupt as error:
            self._release(trial, error)
            raise
        except Exception as error:  # of the sampler
            trial.set_user_attr(FAILURE_KEY, str(error) or type(error).__name__)
            raise
        return value

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
        storage.release(trial._trial_id)  # the next run resumes this trial
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

    def _after_trial(self, study: Study, trial: FrozenTrial) -> None:
        self.unsaved = None
        self.bar.finished()
        # NaN and infinities are results of a working objective and do not count.
        failed = self.last_failure is not None and not isinstance(self.last_failure, NotFiniteError)
        self.failures = self.failures + 1 if failed else 0
        if self.failures == FAILURES_IN_A_ROW:
            last = self.last_failure
            self.stopped_by = ObjectiveError(
                f"{FAILURES_IN_A_ROW} trials in a row failed. The last one, trial {trial.number} at "
                f"{dict(trial.params)}, failed because {last}. Everything evaluated so far is in the study"
            )
            self.stopped_by.__cause__ = last.__cause__ if last is not None and last.__cause__ is not None else last
            study.stop()
        elif started_trials(study) >= self.budget:
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
    abandoned = len(storage.abandoned(study._study_id)) if storage is not None else 0
    trials = study.get_trials(deepcopy=False)
    return sum(trial.state != TrialState.WAITING and not is_history(trial) for trial in trials) - abandoned
