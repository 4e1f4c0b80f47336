"""Write the outcomes of evaluations to a study, from which other processes may take trials over."""

from __future__ import annotations

import threading
import warnings
from contextlib import suppress

from optuna import Study, Trial
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from slayr_py.errors import ObjectiveError, level_outside
from slayr_py.study.run.objective import Evaluation, expected_of
from slayr_py.study.storage.attributes import POSTPONED_KEY, VALUE_KEY, set_failure
from slayr_py.study.storage.costs import cost_of
from slayr_py.study.storage.objectives import set_names
from slayr_py.study.storage.optuna_private import id_of_trial
from slayr_py.study.storage.retrying import is_storage_error
from slayr_py.study.storage.workers import MOST_EVALUATIONS, worker_storage


class TrialOutcomes:
    """The outcomes of trials in a study: values, constraints, costs and failures.

    A trial that another process has taken over is not finished here.

    Parameters
    ----------
    study : optuna.Study
    cost : str, optional
        Name of the cost of an evaluation, if the study has one.

    Attributes
    ----------
    expected : Expected
        What an evaluation must return.
    """

    def __init__(self, study: Study, cost: str | None) -> None:
        self.study = study
        self.cost = cost
        self.expected = expected_of(study)._replace(cost=cost)
        self._writing = threading.Lock()

    def store(self, trial: Trial, evaluation: Evaluation) -> FrozenTrial | None:
        """Store the value of a trial and finish it, unless another process has it now; may be repeated."""
        if evaluation.names is not None:
            evaluation = self._named(evaluation)
            if evaluation.failure is not None:
                return self.fail(trial, evaluation.failure)
        # Written before Optuna finishes the trial: a run that resumes the trial need not evaluate again.
        self.write(trial, evaluation)
        if not self.owns(trial):
            return None
        finished = self.study.tell(trial.number, list(evaluation.values), skip_if_finished=True)
        if finished.values != list(evaluation.values):
            _warn_of_loss(finished, f"its value {', '.join(map(repr, evaluation.values))}")
        return finished

    def write_early(self, trial: Trial, evaluation: Evaluation) -> None:
        """Write a value before its trial is finished, if the order of several values is known by now."""
        if evaluation.names is not None:
            known = self.study.metric_names or ()
            if set(known) != set(evaluation.names):  # the first evaluation sets them, in the main thread
                return
            evaluation = evaluation.in_order_of(known)
        storage = worker_storage(self.study)
        if storage is None or storage.owns(id_of_trial(trial)):
            self.write(trial, evaluation)

    def write(self, trial: Trial, evaluation: Evaluation) -> None:
        """Write the value, the constraints and the cost of a trial, unless they are there."""
        with self._writing, suppress(UpdateFinishedTrialError):  # by a process that has taken the trial over
            for name, excess in evaluation.constraints.items():
                if name not in trial.constraints:
                    trial.set_constraint(name, excess)
            self.write_cost(trial, evaluation.cost)
            if VALUE_KEY not in trial.user_attrs:
                values = evaluation.values
                trial.set_user_attr(VALUE_KEY, values[0] if len(values) == 1 else list(values))

    def write_cost(self, trial: Trial, cost: float | None) -> None:
        """Write the cost of a trial, unless the objective has written it."""
        if self.cost is not None and cost is not None and self.cost not in trial.user_attrs:
            with suppress(UpdateFinishedTrialError):  # by a process that has taken the trial over
                trial.set_user_attr(self.cost, cost)

    def without_cost(self, finished: FrozenTrial, wrong: ObjectiveError | None) -> ObjectiveError | None:
        """Return the error of a complete trial that has no cost, with a warning; its value is stored.

        ``wrong`` is the error of a cost that cannot be used, if there is one.
        """
        if self.cost is None or cost_of(finished, self.cost) is not None:
            return None
        error = wrong or ObjectiveError(
            f"the objective reported no cost {self.cost!r}: return it beside the value, as in "
            f"return value, {{{self.cost!r}: cost}}"
        )
        warnings.warn(f"trial {finished.number} has its value, but {error}", RuntimeWarning, stacklevel=level_outside())
        return error

    def fail(self, trial: Trial, error: BaseException) -> FrozenTrial | None:
        """Fail a trial, unless another process has it now."""
        return self.end(trial, TrialState.FAIL, str(error) or type(error).__name__)

    def end(self, trial: Trial, state: TrialState, why: str | None = None) -> FrozenTrial | None:
        """Finish a trial without a value, unless another process has it now or has finished it."""
        if not self.owns(trial):
            return None
        if why is not None:
            with suppress(UpdateFinishedTrialError):
                set_failure(trial, why)
        finished = self.study.tell(trial.number, state=state, skip_if_finished=True)
        if finished.state != state:
            _warn_of_loss(finished, f"its end here as {state.name}")
        return finished

    def postpone(self, trial: Trial, error: BaseException) -> None:
        """Leave a trial that was not evaluated to the next run; errors that recur fail it in the end."""
        if worker_storage(self.study) is None or not isinstance(error, Exception):  # such as Ctrl-C
            self.release(trial, error)
            return
        count = trial.user_attrs.get(POSTPONED_KEY, 0) + 1
        try:
            if count >= MOST_EVALUATIONS:
                self.fail(trial, error)
                return
            error.add_note(
                f"This error ended the run before trial {trial.number} was evaluated. The next run tries again; after "
                f"{MOST_EVALUATIONS} such errors, {count} so far, the trial fails. To fail it now, call Optuna's "
                f"study.tell({trial.number}, state=optuna.trial.TrialState.FAIL)"
            )
            trial.set_user_attr(POSTPONED_KEY, count)
            self.release(trial, error)
        except Exception as again:  # it must not hide the error; without heartbeats the trial is resumed all the same
            if not is_storage_error(again):
                raise

    def release(self, trial: Trial, error: BaseException | None) -> None:
        """Leave a trial to the next run, or fail it if the storage cannot resume it."""
        if (storage := worker_storage(self.study)) is None:
            self.fail(trial, KeyboardInterrupt() if error is None else error)
        else:
            storage.release(id_of_trial(trial))

    def owns(self, trial: Trial) -> bool:
        """Return whether a trial still belongs to this run, with a warning if not."""
        if (storage := worker_storage(self.study)) is None or storage.owns(id_of_trial(trial)):
            return True
        warnings.warn(
            f"the outcome of trial {trial.number} comes too late: this process sent no heartbeat for so long that "
            "another process has resumed the trial, and will finish it",
            RuntimeWarning,
            stacklevel=level_outside(),
        )
        return False

    def _named(self, evaluation: Evaluation) -> Evaluation:
        """Return an evaluation with its values in the order of the study's names, which the first one sets."""
        assert evaluation.names is not None
        known = self.study.metric_names
        if known is None:
            set_names(self.study, evaluation.names)
            known = list(evaluation.names)
        self.expected = self.expected._replace(names=tuple(known))
        if set(known) != set(evaluation.names):  # of another process that shares the study
            failure = ObjectiveError(f"the objectives are {known}, but the objective returned {evaluation.names}")
            return evaluation._replace(failure=failure)
        return evaluation.in_order_of(known)


def _warn_of_loss(finished: FrozenTrial, what: str) -> None:
    """Warn that another process has finished a trial, so that its outcome here is not stored."""
    elsewhere = f"trial {finished.number} was finished elsewhere as {finished.state.name}"
    warnings.warn(f"{elsewhere}: {what} is dropped", RuntimeWarning, stacklevel=level_outside())
