"""`minimize`: run a whole optimisation in one call."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from inspect import signature
from numbers import Real
from pathlib import Path
from typing import Any

from optuna import Study
from optuna.pruners import BasePruner
from optuna.storages import BaseStorage
from typing_extensions import Unpack

from slayr_py.arguments import check_flag, check_integer, check_number
from slayr_py.errors import DataError, SlayrError, level_outside
from slayr_py.space import Encoder, Space
from slayr_py.study.declared_space import DeclaredSpace
from slayr_py.study.loop import Callback, run_loop
from slayr_py.study.model.options import SamplerKeywords, check_names
from slayr_py.study.model.session import Phase
from slayr_py.study.results.recommendation import has_recommendation
from slayr_py.study.results.result import Result
from slayr_py.study.run.asktell import start_study
from slayr_py.study.run.constraints import bind_constraints, check_not_inputs, parse_constraints
from slayr_py.study.run.evaluation import EvaluationSettings, TrialEvaluations
from slayr_py.study.run.executors import check_executor
from slayr_py.study.run.history import History
from slayr_py.study.run.objective import Objective, takes_trial
from slayr_py.study.run.progress import ProgressBar
from slayr_py.study.run.pruning import warn_without_reports
from slayr_py.study.run.spending import may_spend
from slayr_py.study.run.stopping import Regret
from slayr_py.study.sampler import declared_space_of, space_of
from slayr_py.study.storage.attributes import describe_kernel, is_history, model_difference, study_record
from slayr_py.study.storage.objectives import has_several
from slayr_py.study.storage.opening import open_storage, quiet_optuna, translate_storage_errors
from slayr_py.study.storage.optuna_private import is_stopped
from slayr_py.study.storage.workers import active_run


def minimize(
    objective: Objective,
    space: Space,
    budget: int = 50,
    *,
    progress: bool = True,
    storage: str | Path | BaseStorage | None = None,
    study_name: str | None = None,
    direction: str = "minimize",
    directions: Sequence[str] | Mapping[str, str] | None = None,
    callbacks: Iterable[Callback] = (),
    timeout: float | None = None,
    max_seconds: float | None = None,
    max_cost: float | None = None,
    constraints: Sequence[str] | None = None,
    max_consecutive_failures: int | None = None,
    n_parallel: int = 1,
    executor: Executor | None = None,
    history: History | None = None,
    stop: Regret | None = None,
    pruner: BasePruner | None = None,
    **options: Unpack[SamplerKeywords],
) -> Result:
    """Minimise (or maximise) an expensive function over a search space.

    Parameters
    ----------
    objective : callable
        Takes a configuration, a mapping of the active parameters by name, and returns a finite number, or a pair of it
        and a dict of further numbers by name, which are constrained. A trial fails if the objective raises an error or
        returns NaN, an infinity or anything but a number; the study continues. A trial without the number of ``cost``
        has its value, but counts as a failure in ``max_consecutive_failures``. If its second positional parameter has
        no default value or the name ``trial``, it also receives Optuna's trial, for ``trial.report(value, step)`` and
        ``trial.should_prune()``.
    space : ConfigurationSpace, Encoder or mapping
        The search space, with conditions and forbidden clauses; an `Encoder` also has graphs, as in
        ``Encoder(space, graphs={"layers": "path"})``. A mapping such as ``{"lr": (0.01, 0.1), "layers": (1, 5),
        "act": ["relu", "tanh"]}`` has bounds, levels, constants and parameters of ConfigSpace by name.
    budget : int, default 50
        Number of trials of the study at the end. The initial design, failed trials and the trials of a resumed study
        count. Workers that share a study share its budget. It is not used up if at most 10,000 configurations are
        possible, all of them are evaluated, and their values are exact.
    progress : bool, default True
        Draw a progress bar on standard error.
    storage : str, Path or optuna.storages.BaseStorage, optional
        A URL such as ``sqlite:///study.db``, or the path of an SQLite file: the study is stored there, and other
        processes can resume, inspect and share it.
    study_name : str, optional
        Name of the study to create or resume. By default every call starts a new study.
    direction : {"minimize", "maximize"}
        Direction of the optimisation.
    directions : sequence of str, or mapping of str to str, optional
        Directions of two to four objectives, as in ``directions=["minimize", "maximize"]``, or by their names, as in
        ``directions={"error": "minimize", "speed": "maximize"}``. The objective then returns a tuple of numbers, or a
        dict with the names; constraints follow as above, in a pair. The study searches the front of the best
        compromises: `Result.front`.
    callbacks : iterable of callables
        Optuna callbacks, ``callback(study, frozen_trial)``.
    timeout : float, optional
        Seconds after which no further trial starts.
    max_seconds : float, optional
        Seconds for one evaluation, which then runs in a process of its own. A longer one is killed with the processes
        that it has started, and its trial fails. Defined in a notebook or by ``lambda``, an objective cannot be loaded
        in another process.
    max_cost : float, optional
        Budget of the sum of the costs of all trials, in the unit of ``cost``, beside the number of trials in
        ``budget``: no trial starts after the sum has reached it. The last evaluations may therefore exceed it. A trial
        without a known cost counts as 0; with ``cost="seconds"``, one that raised an error counts its duration.
    constraints : sequence of str, optional
        Bounds on the numbers that the objective returns by name: ``["memory <= 8", "accuracy >= 0.9"]``, or ranges:
        ``["6.5 <= ph <= 7.5"]``. By default each number must be at most 0. The best configuration is the best one that
        violates none. A resumed study needs the same bounds. Use ``within`` for constraints on the parameters
        themselves.
    max_consecutive_failures : int, optional
        Stop after so many consecutive failures. By default after 10, or after 3 if no trial has ever succeeded. While
        earlier trials run, it is at least 10: failures are often quicker than successes. NaN and infinite values do not
        count here.
    n_parallel : int, default 1
        Number of evaluations that run at a time. Each suggestion takes the running ones into account, and suggestions
        from the same finished trials share one fit. The trials depend on the order in which values arrive.
    executor : concurrent.futures.Executor, optional
        Executor of the evaluations: a pool of processes, or ``client.get_executor(pure=False)`` of a Dask client. The
        objective must then be picklable. By default ``n_parallel`` threads if that is more than 1. If an evaluation
        ends a process of a `ProcessPoolExecutor`, for example because the memory is used up, its trial fails, the pool
        is replaced by a new one, and the other evaluations of the pool are repeated.
    history : str, Path, DataFrame or sequence of (config, value), optional
        Past experiments, which the model uses like evaluated trials. They become finished trials and do not count
        against the budget. Each replaces a point of the default initial design. A table has a column per parameter and
        a column ``value``, as `Result.trials` does; an inactive parameter is NaN, None or absent. The value of a failed
        experiment is NaN or None. A column ``y_sd`` has known standard deviations of the errors of the values.
        Experiments that a resumed study already has are not added again. They may be noisy: the model then has the
        default prior of ``sigma_n`` of `GaussianProcess`, also without ``noisy``. A path is a CSV file, see
        `slayr_py.study.read_experiments`; its experiments without a result yet count as running.
    stop : Regret, optional
        Stop before the budget is used up, as in ``stop=sl.Regret(0.01)``: when the best value still to be found is
        probably less than 0.01 better than the best one so far, or with several objectives when the evaluated
        configurations probably lack less than this hypervolume.
    pruner : optuna.pruners.BasePruner, optional
        Stops trials early, as in ``pruner=sl.Prune(0.05)``, when the values that they report show that they will not be
        the best. The objective takes the trial. The model learns from trials that `Prune` has stopped; for those of
        another pruner it has no value.
    **options
        Options of `StanGPSampler`, which describes them in full:

        - ``kernel``: a name, an expression or a kernel; ``sl.stack([kernel, ...])`` averages several kernels, and
          "search" or a ``sl.search.KernelSearch`` searches for kernels as the study grows. By default "auto" chooses
          the kernel by the space. The progress display shows its choice once, with the reason; the study stores it.
        - ``acquisition``: the criterion to maximise, "ei" by default.
        - ``n_initial``: size of the Sobol design that is evaluated first. By default 4 and one more for every two
          parameters, at most 10.
        - ``initial_configs``: configurations to evaluate first, instead of the Sobol design.
        - ``seed``: the same seed gives the same trials, also if the study is interrupted and resumed. By default the
          study draws a seed and stores it.
        - ``noisy``: whether the objective returns different values for the same configuration. A configuration may then
          be evaluated more than once, and improvement is measured from the model's mean instead of the best observed
          value. Otherwise no configuration is repeated, and the study ends with a warning if no other is left.
        - ``failures``: "learn" (the default) models where the objective fails and avoids these configurations;
          "ignore" does not.
        - ``fixed``: parameters that keep these values in this run, as in ``fixed={"layers": 2}``. The space of the
          study stays the declared one, so that trials of other runs with other values inform the model.
        - ``within``: constraints on the parameters, which every suggestion satisfies, as in
          ``within=["x1 + x2 + x3 == 1", "temperature * time <= 6000"]``; of a DataFrame, one row, as in
          ``within=stock``.
        - ``prior``: a belief about the location of the optimum, as in ``prior={"lr": sl.LogNormal(-7, 1), "act":
          {"relu": 0.7, "tanh": 0.3}}``. Its weight ``prior_beta`` decays; by default it starts with a tenth of the
          budget.
        - ``interior``: whether the optimum is believed to be inside the ranges of the floats, as by default, or may be
          at a bound (False).
        - ``default``: whether the default configuration of the space is evaluated first.
        - ``reference_point``: the worst values of interest of several objectives.
        - ``tolerance``: the smallest useful improvement. Where less is expected, the search prefers other regions.
        - ``cost``: "seconds", or the name of a positive number that the objective returns as it does constraints, as in
          ``return loss, {"euros": 3.5}`` with ``cost="euros"``. The search then maximises the expected improvement per
          unit of expected cost.
        - ``priors``, ``warp``: priors of hyperparameters, and the transformation of the targets.
        - ``warm_starts``: whether each fit starts from the last one.
        - ``on_progress``: a function that receives each `slayr_py.study.Phase` of the work.
        - ``method``, ``chains``, ``warmup``, ``draws``, ``target_acceptance``, ``max_treedepth``, ``ess``, ``retries``,
          ``pointwise``: options of the fits, see `GaussianProcess.fit`.

    Returns
    -------
    Result
        best_config, best_value (the best observed value, also for a noisy objective), recommended (the best evaluated
        configuration, of a noisy objective by the posterior mean), trials, study. If the objective is noisy, the model
        is fitted once more at the end, and the recommendation is shown before the best value.

    Raises
    ------
    SpaceError, DataError
        For an illegal space, option, history or initial configuration, or if the stored study has another space,
        seed or direction.
    StorageError
        If the storage does not open, or fails for five minutes; the message has the values that are not stored.
    ToolchainError
        If Stan cannot be run here; nothing has been evaluated then.
    ObjectiveError
        If ``max_consecutive_failures`` trials fail in a row. Finished evaluations stay in the storage.
    TypeError
        For an argument with an unknown name; the message has the nearest one.

    Examples
    --------
    >>> from ConfigSpace import ConfigurationSpace
    >>> space = ConfigurationSpace({"x": (-5.0, 10.0), "y": (0.0, 15.0)})
    >>> result = minimize(branin, space, budget=30, seed=1)         # doctest: +SKIP
    >>> result.best_value, result.best_config                       # doctest: +SKIP
    """
    check_names(options, signature(minimize).parameters)
    if not callable(objective):
        raise DataError(f"the objective must be a function of one configuration, not {objective!r}")
    budget = check_integer("budget", budget)
    timeout = _read_timeout(timeout)
    after_trials = _read_callbacks(callbacks)
    if max_seconds is not None:
        max_seconds = check_number("max_seconds", max_seconds)
    if max_cost is not None:
        max_cost = check_number("max_cost", max_cost)
        if options.get("cost") is None:
            raise DataError("max_cost is the budget of a cost, but there is no cost=; add cost='seconds', or its name")
    check_executor(executor, max_seconds)
    _check_reports(objective, pruner, executor, max_seconds)
    bounds = None if constraints is None else parse_constraints(constraints)
    check_not_inputs(bounds or (), space.space if isinstance(space, Encoder) else space)
    if max_consecutive_failures is not None:
        max_consecutive_failures = check_integer("max_consecutive_failures", max_consecutive_failures)
    n_parallel = check_integer("n_parallel", n_parallel)
    progress = check_flag("progress", progress)
    if stop is not None and not isinstance(stop, Regret):
        raise DataError(f"stop must be a stopping rule such as sl.Regret(0.01), not {stop!r:.200}")
    settings = EvaluationSettings(
        objective, budget, bounds, max_consecutive_failures, n_parallel, executor, timeout, max_seconds, max_cost
    )

    with quiet_optuna(), translate_storage_errors():
        if options.get("prior") is not None:
            options.setdefault("prior_beta", budget / 10)  # as the authors of piBO
        study = start_study(
            space,
            storage=open_storage(storage, worker=True),
            study_name=study_name,
            direction=direction,
            directions=directions,
            history=history,
            pruner=pruner,
            bind=lambda study: bind_constraints(study, bounds),
            bounds=bounds or (),
            **options,
        )
        result = Result(study, space_of(study))
        if may_spend(study, budget, options.get("cost"), max_cost):
            _run(result, settings, progress, after_trials, stop)
            if pruner is not None:
                warn_without_reports(study)
    return result


def maximize(objective: Objective, space: Space, budget: int = 50, **options: Any) -> Result:
    """Maximise an expensive function over a search space: `minimize` with ``direction="maximize"``.

    Parameters
    ----------
    objective, space, budget, **options
        As of `minimize`, except ``direction`` and ``directions``.

    Raises
    ------
    TypeError
        For ``direction``, ``directions``, or an unknown name.

    Notes
    -----
    Returns and raises what `minimize` does.
    """
    for name in ("direction", "directions"):
        if name in options:
            raise TypeError(f"{name}= is an argument of slayr_py.minimize; maximize has one direction")
    return minimize(objective, space, budget, direction="maximize", **options)


def _read_timeout(timeout: float | None) -> float | None:
    """Return a timeout as a plain ``float``, which may be infinite."""
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, Real) or not timeout > 0:
        raise DataError(f"timeout is {timeout!r}; give a positive number of seconds")
    return float(timeout)


def _read_callbacks(callbacks: Iterable[Callback]) -> tuple[Callback, ...]:
    """Return the callbacks, of which an iterator yields each only once."""
    known = None if callable(callbacks) or not isinstance(callbacks, Iterable) else tuple(callbacks)
    if known is None or not all(map(callable, known)):
        shown = callbacks if known is None else list(known)
        raise DataError(f"callbacks is {shown!r:.200}; give a list of functions, as in callbacks=[show]")
    return known


def _check_reports(
    objective: Objective, pruner: BasePruner | None, executor: Executor | None, max_seconds: float | None
) -> None:
    """Raise `DataError` if the objective cannot report values that a pruner needs, or from another process."""
    if takes_trial(objective):
        in_processes = None if isinstance(executor, ThreadPoolExecutor) else executor
        for name, given in (("executor", in_processes), ("max_seconds", max_seconds)):
            if given is not None:
                raise DataError(
                    f"an objective that takes the trial is not supported with {name}=, because a trial cannot be sent "
                    f"to another process; leave {name}= out and use n_parallel= for threads, or call minimize in each "
                    "process with the same storage= and study_name="
                )
    elif pruner is not None:
        raise DataError(
            "pruner= needs values that the objective reports: define it as objective(config, trial), call "
            "trial.report(value, step), and raise optuna.TrialPruned if trial.should_prune()"
        )


def _run(
    result: Result, settings: EvaluationSettings, progress: bool, callbacks: Sequence[Callback], rule: Regret | None
) -> None:
    study = result.study
    declared = declared_space_of(study)
    assert declared is not None
    with active_run(study), ProgressBar(study, settings.budget, progress) as bar:
        declared.session.displays.append(bar.phase)
        bar.announce(_describe_model(study, declared))
        if declared.design.size >= settings.budget:
            bar.announce(
                f"the initial design has {declared.design.size} configurations, so that all {settings.budget} trials "
                "come from it and none from the model"
            )
        try:
            # A space without legal configurations and a missing compiler raise an error before the first evaluation.
            declared.session.check_toolchain()
            past = sum(map(is_history, study.get_trials(deepcopy=False)))
            if settings.budget + past > len(declared.design.with_history(study, declared.bind(study))):
                declared.prepare()
            evaluations = TrialEvaluations(study, settings, bar)
            run_loop(study, evaluations, callbacks, lambda study: _stops(rule, study, bar))
            declared.warn_of_trials(study)  # a suggestion cannot warn of the last trials
            if has_recommendation(study) and not has_several(study):
                bar.phase(Phase("fitting", None))
                _show_recommendation(result, bar)
        finally:
            declared.session.displays.remove(bar.phase)


def _stops(rule: Regret | None, study: Study, bar: ProgressBar) -> bool:
    """Return whether the stopping rule holds, also before the first trial of a resumed study; show the estimate."""
    if rule is None or (estimate := rule.decide(study)) is None:
        return False
    bar.regret(estimate)
    if estimate.stop and not is_stopped(study):
        bar.announce(f"stopped after {estimate.observations} observations: {estimate} >= {estimate.target:g}")
    return estimate.stop


def _show_recommendation(result: Result, bar: ProgressBar) -> None:
    try:
        bar.recommend(result.recommended)
    except SlayrError as error:
        warnings.warn(f"no configuration is recommended: {error}", RuntimeWarning, stacklevel=level_outside())


def _describe_model(study: Study, declared: DeclaredSpace) -> str:
    """Describe the kernel, the reason for choosing it, and a change since the study was started."""
    record = study_record(study)
    assert record is not None
    change = model_difference(record, declared.kernel_record, declared.encoder)
    return f"kernel: {describe_kernel(declared.kernel_record)}" + (f"; {change}" if change else "")
