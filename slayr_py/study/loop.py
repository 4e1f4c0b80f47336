"""`minimize`: the whole loop in one call."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import optuna
from ConfigSpace import ConfigurationSpace
from optuna import Study, Trial
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState

from slayr_py.acquisition import Acquisition
from slayr_py.errors import DataError, NotFiniteError, ObjectiveError, StorageError
from slayr_py.inference.sampling.run import Method
from slayr_py.space import Encoder
from slayr_py.study.asktell import create_study, space_of, suggest_all
from slayr_py.study.objective import Objective, evaluate
from slayr_py.study.progress import ProgressBar
from slayr_py.study.proposal import Phase
from slayr_py.study.results.result import Result
from slayr_py.study.sampler import StanGPSampler
from slayr_py.study.storage.attributes import (
    EVALUATIONS_KEY,
    FAILURE_KEY,
    describe_kernel,
    model_difference,
    study_record,
)
from slayr_py.study.storage.opening import (
    failure_of_storage,
    open_storage,
    quiet_optuna,
    storage_failures,
    storage_reason,
)
from slayr_py.study.storage.workers import at_work, worker_storage

FAILURES_IN_A_ROW = 3
"""So many failing trials one after another are taken for a mistake in the objective rather than in a configuration."""

SECOND_TRIES = (1.0, 5.0)
"""Seconds to wait before a value that the storage refused is offered to it once more."""

Callback = Callable[[Study, FrozenTrial], None]
"""As Optuna's: called after every trial; ``study.stop()`` ends the loop."""


def minimize(
    objective: Objective,
    space: ConfigurationSpace | Encoder,
    budget: int = 50,
    n_initial: int = 10,
    kernel: Any = "auto",
    acquisition: str | Acquisition = "ei",
    seed: int | None = None,
    progress: bool = True,
    storage: str | BaseStorage | None = None,
    study_name: str | None = None,
    direction: str = "minimize",
    initial_configs: Sequence[Mapping[str, Any]] | None = None,
    callbacks: Sequence[Callback] = (),
    timeout: float | None = None,
    *,
    method: Method = "nuts",
    chains: int = 4,
    warmup: int = 300,
    draws: int = 50,
    target_acceptance: float = 0.8,
    max_treedepth: int = 10,
    ess: int | None = 50,
    retries: int = 1,
    warm_starts: bool = True,
    priors: Mapping[str, Any] | None = None,
    noisy: bool = False,
) -> Result:
    """Minimise (or maximise) an expensive function over a search space.

    Parameters
    ----------
    objective : callable
        Takes one configuration, a mapping of the active parameters by name, and returns one finite number. NaN, an
        infinity or anything that is no number fails the trial, as does an error; the study goes on.
    space : ConfigurationSpace or Encoder
        The search space, conditions and forbidden clauses included; an `Encoder` of it carries graphs of one's own,
        as in ``Encoder(space, graphs={"layers": "path"})``.
    budget : int, default 50
        Number of trials the study shall have at the end: the initial design counts, failed trials count, and so do
        the trials of a study that is resumed. Workers that share a study share its budget.
    n_initial : int, default 10
        Size of the scrambled Sobol design that comes first.
    kernel, acquisition, warm_starts, priors
        Of the model: see `StanGPSampler` and `GaussianProcess`. The progress display says once which kernel "auto" has
        chosen and why; the study keeps it.
    method, chains, warmup, draws, target_acceptance, max_treedepth, ess, retries
        Of its fits: see `GaussianProcess.fit`.
    seed : int, optional
        Same seed, same trials, also across interruptions. Without one the study draws and keeps its own.
    progress : bool, default True
        Draw a progress bar on standard error.
    storage : str or optuna.storages.BaseStorage, optional
        A URL such as ``sqlite:///study.db``: the study is kept there and can be resumed, watched and shared.
    study_name : str, optional
        What to resume it by. Without one every call starts a new study.
    direction : {"minimize", "maximize"}
        What is better.
    initial_configs : sequence of mappings, optional
        Evaluate these first, in place of the Sobol design.
    callbacks : sequence of callables
        Optuna's callbacks, ``callback(study, frozen_trial)``.
    timeout : float, optional
        Seconds after which no further trial is started.
    noisy : bool, default False
        The objective answers differently when it is asked again: a configuration may then be evaluated more than once,
        and an improvement is one over the model's mean rather than over the luckiest value. Without it no
        configuration is ever repeated while others are left.

    Returns
    -------
    Result
        best_config, best_value (the best observed value, of a noisy objective too), trials, study.

    Raises
    ------
    SpaceError, DataError
        Illegal space, option or initial configuration, or a stored study that does not go with them.
    StorageError
        The storage does not open, or failed.
    ToolchainError
        There is no way to run Stan here; nothing has been evaluated then.
    ObjectiveError
        The objective failed in three trials one after another. What was evaluated stays in the storage; NaN and
        infinite values are answers and do not count.

    Examples
    --------
    >>> from ConfigSpace import ConfigurationSpace
    >>> space = ConfigurationSpace({"x": (-5.0, 10.0), "y": (0.0, 15.0)})
    >>> result = minimize(branin, space, budget=30, seed=1)         # doctest: +SKIP
    >>> result.best_value, result.best_config                       # doctest: +SKIP
    """
    if not callable(objective):
        raise DataError(f"the objective must be a function of one configuration, not {objective!r}")
    if isinstance(budget, bool) or not isinstance(budget, int | np.integer) or budget < 1:
        raise DataError(f"budget must be a positive integer, not {budget!r}")
    if timeout is not None and not timeout > 0:
        raise DataError(f"timeout must be a positive number of seconds, not {timeout!r}")

    with quiet_optuna(), storage_failures():
        study = create_study(
            space,
            storage=open_storage(storage, worker=True),
            study_name=study_name,
            direction=direction,
            kernel=kernel,
            acquisition=acquisition,
            n_initial=n_initial,
            seed=seed,
            method=method,
            chains=chains,
            warmup=warmup,
            draws=draws,
            target_acceptance=target_acceptance,
            max_treedepth=max_treedepth,
            ess=ess,
            retries=retries,
            warm_starts=warm_starts,
            priors=priors,
            initial_configs=initial_configs,
            noisy=noisy,
        )
        if _begun(study) < budget:
            _run(study, objective, int(budget), timeout, progress, callbacks)
    return Result(study, space_of(study))


def _run(
    study: Study,
    objective: Objective,
    budget: int,
    timeout: float | None,
    progress: bool,
    callbacks: Sequence[Callback],
) -> None:
    sampler = study.sampler
    assert isinstance(sampler, StanGPSampler)
    with at_work(study), ProgressBar(study, budget, progress) as bar:
        sampler.on_progress = bar.phase
        bar.announce(_model(study, sampler))
        try:
            # Before the first evaluation: neither a space without a legal configuration nor a missing compiler must
            # cost anyone an initial design.
            if budget > len(sampler.design(sampler.bind(study))):
                sampler.prepare()
            loop = _Loop(objective, sampler, budget, bar)
            try:
                loop.optimize(study, timeout, callbacks)
            except _Interrupted:
                raise KeyboardInterrupt from None
            except Exception as error:
                if loop.unsaved is not None and (cause := failure_of_storage(error)) is not None:
                    loop.save_late(study, cause)
                raise
            if loop.stopped_by is not None:
                raise loop.stopped_by
        finally:
            sampler.on_progress = None


class _TakenOver(BaseException):
    """The trial is another process's by now; Optuna, which does not know this error, leaves it to that one."""


class _Interrupted(BaseException):
    """The person at the keyboard ends the run; Optuna, which does not know this error, leaves the trial as it is."""


def _model(study: Study, sampler: StanGPSampler) -> str:
    """Say which kernel is fitted, why, and whether the study was started with another model."""
    record = study_record(study)
    assert record is not None
    change = model_difference(record, sampler.kernel_record, sampler.encoder)
    return f"kernel: {describe_kernel(sampler.kernel_record)}" + (f"; {change}" if change else "")


class _Loop:
    """The state of one run: how many trials failed in a row, and with what; the value that is not in the study yet."""

    def __init__(self, objective: Objective, sampler: StanGPSampler, budget: int, bar: ProgressBar) -> None:
        self.objective = objective
        self.sampler = sampler
        self.budget = budget
        self.bar = bar
        self.failures = 0
        self.last_failure: ObjectiveError | None = None
        self.stopped_by: ObjectiveError | None = None
        self.unsaved: tuple[Trial, float] | None = None

    def optimize(self, study: Study, timeout: float | None, callbacks: Sequence[Callback]) -> None:
        """Run Optuna's loop, and once more whenever a trial was lost to another process."""
        end = None if timeout is None else time.monotonic() + timeout
        while _begun(study) < self.budget:
            try:
                return study.optimize(
                    self.evaluate,
                    n_trials=None,
                    timeout=None if end is None else max(0.0, end - time.monotonic()),
                    catch=(ObjectiveError,),
                    callbacks=[self.after_trial, *callbacks],
                )
            except _TakenOver as lost:
                warnings.warn(str(lost), RuntimeWarning, stacklevel=2)

    def evaluate(self, trial: Trial) -> float:
        try:
            config = suggest_all(trial, self.sampler.space)
            self.bar.phase(Phase("evaluating", trial.number))
            trial.set_user_attr(EVALUATIONS_KEY, trial.user_attrs.get(EVALUATIONS_KEY, 0) + 1)
            value = evaluate(self.objective, config)
        except optuna.TrialPruned:
            self.last_failure = None
            raise
        except ObjectiveError as error:
            trial.set_user_attr(FAILURE_KEY, str(error))
            self.last_failure = error
            raise
        except KeyboardInterrupt as error:
            if (storage := worker_storage(trial.study)) is not None:
                if (begun := trial.user_attrs.get(EVALUATIONS_KEY, 0)) > 0:  # ended by a person, not by the objective
                    trial.set_user_attr(EVALUATIONS_KEY, begun - 1)
                storage.release(trial._trial_id)  # the next run begins with this trial
                raise _Interrupted from None
            trial.set_user_attr(FAILURE_KEY, type(error).__name__)
            raise
        except Exception as error:  # of the sampler
            trial.set_user_attr(FAILURE_KEY, str(error) or type(error).__name__)
            raise
        self.last_failure = None
        if (storage := worker_storage(trial.study)) is not None and not storage.holds(trial._trial_id):
            raise _TakenOver(
                f"the value {value!r} of trial {trial.number} is not kept: this process was silent for so long that "
                "another has taken the trial over"
            )
        self.unsaved = trial, value
        return value

    def save_late(self, study: Study, cause: Exception) -> None:
        """Offer an evaluated value to a storage that has refused it; it may have cost a day.

        Raises
        ------
        StorageError
            It refuses again; the message has the value, and how to store it by hand.
        """
        assert self.unsaved is not None
        trial, value = self.unsaved
        for seconds in SECOND_TRIES:
            time.sleep(seconds)
            try:
                study.tell(trial.number, value, skip_if_finished=True)
                return
            except Exception as error:
                cause = failure_of_storage(error) or error
        raise StorageError(
            f"the study's storage failed: {storage_reason(cause)}. Everything is kept but the last value, {value!r} of "
            f"trial {trial.number} at {dict(trial.params)}: store it with Optuna's study.tell({trial.number}, "
            f"{value!r}), then run the same study again to go on"
        ) from cause

    def after_trial(self, study: Study, trial: FrozenTrial) -> None:
        self.unsaved = None
        self.bar.finished()
        broken = self.last_failure is not None and not isinstance(self.last_failure, NotFiniteError)
        self.failures = self.failures + 1 if broken else 0
        if self.failures == FAILURES_IN_A_ROW:
            last = self.last_failure
            self.stopped_by = ObjectiveError(
                f"{FAILURES_IN_A_ROW} trials in a row failed, the last of them (number {trial.number}) because {last}; "
                f"its configuration was {dict(trial.params)}. Everything evaluated so far is in the study"
            )
            self.stopped_by.__cause__ = last.__cause__ if last is not None and last.__cause__ is not None else last
            study.stop()
        elif _begun(study) >= self.budget:
            study.stop()


def _begun(study: Study) -> int:
    """Count the trials that are done or being done.

    Enqueued ones wait for their turn within the budget, and so do those that a killed process has left.
    """
    storage = worker_storage(study)
    left = len(storage.abandoned(study._study_id)) if storage is not None else 0
    return sum(trial.state != TrialState.WAITING for trial in study.get_trials(deepcopy=False)) - left
