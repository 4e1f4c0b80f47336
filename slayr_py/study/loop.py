"""`minimize`: run a whole optimisation in one call."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

from ConfigSpace import ConfigurationSpace
from optuna import Study
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial
from typing_extensions import Unpack

from slayr_py.acquisition import Acquisition
from slayr_py.arguments import check_integer
from slayr_py.errors import DataError, InferenceError
from slayr_py.inference import FitKeywords, Priors, Warp
from slayr_py.kernels import Kernel, Stack
from slayr_py.search import KernelSearch
from slayr_py.space import Encoder
from slayr_py.study.asktell import create_study, space_of
from slayr_py.study.conditions import Failures
from slayr_py.study.constraints import parse_constraints
from slayr_py.study.evaluation import Callback, EvaluationLoop, Settings, started_trials
from slayr_py.study.history import History
from slayr_py.study.objective import Objective
from slayr_py.study.parallel import ParallelLoop
from slayr_py.study.progress import ProgressBar
from slayr_py.study.proposal import Phase
from slayr_py.study.results.recommendation import has_recommendation
from slayr_py.study.results.result import Result
from slayr_py.study.sampler import StanGPSampler
from slayr_py.study.stopping import Regret
from slayr_py.study.storage.attributes import describe_kernel, is_history, model_difference, study_record
from slayr_py.study.storage.opening import open_storage, quiet_optuna, translate_storage_errors
from slayr_py.study.storage.workers import active_run


def minimize(
    objective: Objective,
    space: ConfigurationSpace | Encoder,
    budget: int = 50,
    n_initial: int | None = None,
    kernel: str | Kernel | Stack | KernelSearch = "auto",
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
    warm_starts: bool = True,
    priors: Priors | None = None,
    warp: Warp = "auto",
    noisy: bool = False,
    constraints: Sequence[str] | None = None,
    failures: Failures = "learn",
    max_consecutive_failures: int | None = None,
    n_parallel: int = 1,
    executor: Executor | None = None,
    history: History | None = None,
    fixed: Mapping[str, Any] | None = None,
    stop: Regret | None = None,
    **fit: Unpack[FitKeywords],
) -> Result:
    """Minimise (or maximise) an expensive function over a search space.

    Parameters
    ----------
    objective : callable
        Takes a configuration, a mapping of the active parameters by name, and returns a finite number, or a pair of it
        and a dict of further numbers by name, which are constrained. A trial fails if the objective raises an error or
        returns NaN, an infinity or anything but a number; the study continues.
    space : ConfigurationSpace or Encoder
        The search space, with conditions and forbidden clauses; an `Encoder` also has graphs, as in
        ``Encoder(space, graphs={"layers": "path"})``.
    budget : int, default 50
        Number of trials of the study at the end. The initial design, failed trials and the trials of a resumed study
        count. Workers that share a study share its budget.
    n_initial : int, optional
        Size of the scrambled Sobol design that is evaluated first. By default 4 and one more for every two parameters,
        at most 10.
    kernel, acquisition, warm_starts, priors, warp
        The model: see `StanGPSampler` and `GaussianProcess`. ``sl.stack([kernel, ...])`` averages several kernels,
        and "search" or a ``sl.search.KernelSearch`` searches for kernels as the study grows.
        The progress display shows once which kernel "auto" has chosen and why; the study stores it.
    seed : int, optional
        The same seed gives the same trials, also if the study is interrupted and resumed. By default the study draws a
        seed and stores it.
    progress : bool, default True
        Draw a progress bar on standard error.
    storage : str or optuna.storages.BaseStorage, optional
        A URL such as ``sqlite:///study.db``: the study is stored there, and other processes can resume, inspect and
        share it.
    study_name : str, optional
        Name of the study to create or resume. By default every call starts a new study.
    direction : {"minimize", "maximize"}
        Direction of the optimisation.
    initial_configs : sequence of mappings, optional
        Configurations to evaluate first, instead of the Sobol design.
    callbacks : sequence of callables
        Optuna callbacks, ``callback(study, frozen_trial)``.
    timeout : float, optional
        Seconds after which no further trial starts.
    noisy : bool, default False
        The objective returns different values for the same configuration. A configuration may then be evaluated more
        than once, and improvement is measured from the model's mean instead of the best observed value. Otherwise a
        configuration is repeated only if no other is left.
    constraints : sequence of str, optional
        Bounds on the numbers that the objective returns by name: ``["memory <= 8", "accuracy >= 0.9"]``. By default
        each of them must be at most 0. The best configuration is the best one that violates none.
    failures : {"learn", "ignore"}
        "learn": a model of failures and successes keeps suggestions away from where the objective fails.
    max_consecutive_failures : int, optional
        Stop after so many consecutive failures. By default after 10, or after 3 if no trial has ever succeeded. NaN and
        infinite values do not count here.
    n_parallel : int, default 1
        Number of evaluations that run at a time. Each suggestion takes the running ones into account, and suggestions
        from the same finished trials share one fit. The trials depend on the order in which values arrive.
    executor : concurrent.futures.Executor, optional
        Where they run: a pool of processes, or ``client.get_executor(pure=False)`` of a Dask client. The objective must
        be picklable then. By default ``n_parallel`` threads if that is more than 1.
    history : DataFrame or sequence of (config, value), optional
        Past experiments, which the model learns from like from evaluated trials. They become finished trials and do not
        count against the budget. Each one replaces a point of the default initial design. A table has a column per
        parameter and a column ``value``, as `Result.trials` does; an inactive parameter is NaN, None or absent. A value
        that is NaN or None is that of a failed experiment. Experiments that a resumed study already has are not added
        again.
    fixed : mapping of str to value, optional
        Parameters that keep these values in this run, as in ``fixed={"layers": 2}``. The space of the study stays the
        declared one, so that trials of other runs with other values inform the model.
    stop : Regret, optional
        Stop before the budget is used up, as in ``stop=sl.Regret(0.01)``: when the best value still to be found is
        probably less than 0.01 better than the best one so far.
    method, chains, warmup, draws, target_acceptance, max_treedepth, ess, retries, pointwise
        Options of the fits: see `GaussianProcess.fit`. Defaults: "carried", 4, 300, 50, 0.8, 10, 50, 1, False.

    Returns
    -------
    Result
        best_config, best_value (the best observed value, also for a noisy objective), recommended (the evaluated
        configuration with the best posterior mean), trials, study. If the objective is noisy, the model is fitted once
        more at the end, and the recommendation is shown before the best value.

    Raises
    ------
    SpaceError, DataError
        For an illegal space, option, history or initial configuration, or if the stored study has another space,
        seed or direction.
    StorageError
        If the storage does not open or fails.
    ToolchainError
        If Stan cannot be run here; nothing has been evaluated then.
    ObjectiveError
        If ``max_consecutive_failures`` trials fail in a row. Finished evaluations stay in the storage.

    Examples
    --------
    >>> from ConfigSpace import ConfigurationSpace
    >>> space = ConfigurationSpace({"x": (-5.0, 10.0), "y": (0.0, 15.0)})
    >>> result = minimize(branin, space, budget=30, seed=1)         # doctest: +SKIP
    >>> result.best_value, result.best_config                       # doctest: +SKIP
    """
    if not callable(objective):
        raise DataError(f"the objective must be a function of one configuration, not {objective!r}")
    budget = check_integer("budget", budget)
    if timeout is not None and not timeout > 0:
        raise DataError(f"timeout must be a positive number of seconds, not {timeout!r}")

    bounds = None if constraints is None else parse_constraints(constraints)
    if max_consecutive_failures is not None:
        max_consecutive_failures = check_integer("max_consecutive_failures", max_consecutive_failures)
    n_parallel = check_integer("n_parallel", n_parallel)
    if stop is not None and not isinstance(stop, Regret):
        raise DataError(f"stop must be a stopping rule such as sl.Regret(0.01), not {stop!r:.200}")
    settings = Settings(objective, budget, bounds, max_consecutive_failures, n_parallel, executor)

    with quiet_optuna(), translate_storage_errors():
        study = create_study(
            space,
            storage=open_storage(storage, worker=True),
            study_name=study_name,
            direction=direction,
            kernel=kernel,
            acquisition=acquisition,
            n_initial=n_initial,
            seed=seed,
            warm_starts=warm_starts,
            priors=priors,
            warp=warp,
            initial_configs=initial_configs,
            noisy=noisy,
            failures=failures,
            history=history,
            fixed=fixed,
            **fit,
        )
        result = Result(study, space_of(study))
        if started_trials(study) < budget:
            _run(result, settings, timeout, progress, callbacks, stop)
    return result


def _run(
    result: Result,
    settings: Settings,
    timeout: float | None,
    progress: bool,
    callbacks: Sequence[Callback],
    rule: Regret | None,
) -> None:
    study = result.study
    sampler = result.study.sampler
    assert isinstance(sampler, StanGPSampler)
    with active_run(study), ProgressBar(study, settings.budget, progress) as bar:
        sampler.on_progress = bar.phase
        bar.announce(_model(study, sampler))
        try:
            # A space without legal configurations and a missing compiler raise an error before the first evaluation.
            past = sum(map(is_history, study.get_trials(deepcopy=False)))
            if settings.budget + past > len(sampler.planned(study, sampler.bind(study))):
                sampler.prepare()
            parallel = settings.n_parallel > 1 or settings.executor is not None
            loop = (ParallelLoop if parallel else EvaluationLoop)(settings, sampler, bar)
            if rule is not None:
                callbacks = [*callbacks, _stopping_callback(rule, bar)]
            if rule is None or not _stopped(rule, study, bar):
                loop.run(study, timeout, callbacks)
            if has_recommendation(study):
                bar.phase(Phase("fitting", None))
                _show_recommendation(result, bar)
        finally:
            sampler.on_progress = None


def _stopping_callback(rule: Regret, bar: ProgressBar) -> Callback:
    """Return a callback that stops the study when the rule holds, and shows each estimate."""

    def callback(study: Study, trial: FrozenTrial) -> None:
        if _stopped(rule, study, bar):
            study.stop()

    return callback


def _stopped(rule: Regret, study: Study, bar: ProgressBar) -> bool:
    """Return whether the rule holds, also before the first trial of a resumed study; show the estimate."""
    if (estimate := rule.estimate(study)) is None:
        return False
    bar.regret(estimate)
    if estimate.stop:
        bar.announce(f"stopped after {estimate.observations} observations: {estimate} >= {estimate.target:g}")
    return estimate.stop


def _show_recommendation(result: Result, bar: ProgressBar) -> None:
    try:
        bar.recommend(result.recommended)
    except InferenceError as error:
        warnings.warn(f"no configuration is recommended: {error}", RuntimeWarning, stacklevel=4)


def _model(study: Study, sampler: StanGPSampler) -> str:
    """Describe the kernel, the reason for choosing it, and a change since the study was started."""
    record = study_record(study)
    assert record is not None
    change = model_difference(record, sampler.kernel_record, sampler.encoder)
    return f"kernel: {describe_kernel(sampler.kernel_record)}" + (f"; {change}" if change else "")
