"""Ask and tell with an Optuna study of a ConfigSpace space."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna import Study, Trial
from optuna.pruners import BasePruner, NopPruner
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState
from typing_extensions import Unpack

from slayr_py.arguments import check_integer, real_or_nan
from slayr_py.errors import DataError, NotFiniteError, ObjectiveError, level_outside
from slayr_py.space import Space, as_encoder, jsonable
from slayr_py.study.model.options import SamplerKeywords, check_names
from slayr_py.study.run.constraints import constraint_values
from slayr_py.study.run.history import History, read_history
from slayr_py.study.run.objective import Values, as_value, by_label, expected_of, split_parts, split_values
from slayr_py.study.run.past_trials import add_history
from slayr_py.study.run.pruning import check_pruner
from slayr_py.study.sampler import StanGPSampler, declared_space_of, space_of, stan_sampler_of
from slayr_py.study.storage.attributes import ASKED_KEY, CONTEXT_KEY, ERROR_KEY
from slayr_py.study.storage.bounds import Constraint
from slayr_py.study.storage.columns import Outcomes
from slayr_py.study.storage.costs import as_cost
from slayr_py.study.storage.distributions import plain_value
from slayr_py.study.storage.integrity import check_integrity
from slayr_py.study.storage.objectives import DIRECTIONS, parse_directions, set_names
from slayr_py.study.storage.opening import open_storage, translate_storage_errors
from slayr_py.study.storage.optuna_private import set_constraint, set_trial_attribute, start_trial
from slayr_py.study.storage.suggesting import suggest_or_fail


def create_study(
    space: Space,
    *,
    storage: str | Path | BaseStorage | None = None,
    study_name: str | None = None,
    direction: str = "minimize",
    directions: Sequence[str] | Mapping[str, str] | None = None,
    history: History | None = None,
    pruner: BasePruner | None = None,
    **options: Unpack[SamplerKeywords],
) -> Study:
    """Create a study of a space, or resume the study of that name.

    Parameters
    ----------
    space : ConfigurationSpace, Encoder or mapping
        The search space: see `minimize`.
    storage : str, Path or optuna.storages.BaseStorage, optional
        A URL such as ``sqlite:///study.db``, or the path of an SQLite file; by default the study is kept in memory.
    study_name : str, optional
        Name of the study to create or resume; by default a new study gets a name from Optuna.
    direction : {"minimize", "maximize"}
        Direction of the optimisation.
    directions : sequence of str, or mapping of str to str, optional
        Directions of two to four objectives, in their order or by their names: see `minimize`.
    history : str, Path, DataFrame or sequence of (config, value), optional
        Past experiments: see `minimize`, and `read_experiments` for CSV files.
    pruner : optuna.pruners.BasePruner, optional
        Stops trials early: see `minimize`. It is not stored; a process that resumes the study gives it again.
    **options
        Arguments of `StanGPSampler`, fit options included.

    Returns
    -------
    optuna.Study
        An ordinary study with a `StanGPSampler`.

    Raises
    ------
    StorageError
        If the storage does not open or cannot be written, or its study is damaged.
    DataError
        For an illegal option or history, or if the study of that name has another direction or seed.
    SpaceError
        For an illegal space or past configuration, or if the study of that name has another space.
    TypeError
        For an argument with an unknown name; the message has the nearest one.

    Examples
    --------
    >>> study = create_study(space, n_initial=5, seed=1)        # doctest: +SKIP
    >>> trial = ask(study)                                      # doctest: +SKIP
    >>> tell(study, trial, objective(config_of(trial)))         # doctest: +SKIP
    """
    check_names(options, signature(create_study).parameters)
    return start_study(
        space,
        storage=storage,
        study_name=study_name,
        direction=direction,
        directions=directions,
        history=history,
        pruner=pruner,
        **options,
    )


def start_study(
    space: Space,
    *,
    storage: str | Path | BaseStorage | None,
    study_name: str | None,
    direction: str,
    directions: Sequence[str] | Mapping[str, str] | None,
    history: History | None,
    pruner: BasePruner | None,
    bind: Callable[[Study], None] | None = None,
    bounds: tuple[Constraint, ...] = (),
    **options: Unpack[SamplerKeywords],
) -> Study:
    """Create or resume a study as `create_study`; ``bind`` may refuse it before past experiments are added.

    These may have columns with the names of ``bounds``.
    """
    wanted, names = _directions(direction, directions)
    # With None, the sampler would infer a space.
    encoder = as_encoder(space, options.pop("within", None))
    sampler = StanGPSampler(encoder, **options)
    check_pruner(pruner, len(wanted), sampler.options.warp)
    numbers = [str(number) for number in range(len(wanted))]
    outcomes = Outcomes(tuple(names or numbers), sampler.options.cost, bounds)
    experiments = None if history is None else read_history(history, encoder, outcomes)
    with translate_storage_errors():
        study = optuna.create_study(
            storage=open_storage(storage),
            study_name=study_name,
            directions=[StudyDirection[each.upper()] for each in wanted],
            sampler=sampler,
            pruner=NopPruner() if pruner is None else pruner,
            load_if_exists=True,
        )
        check_integrity(study)
        _check_directions(study, wanted)
        if names is not None:
            set_names(study, names)
        sampler.options.check_objectives(study)
        sampler.strategy.bind(study)
        if bind is not None:
            bind(study)
        if experiments is not None:
            add_history(study, experiments, encoder, sampler.options.cost)
    return study


def _directions(
    direction: str, directions: Sequence[str] | Mapping[str, str] | None
) -> tuple[list[str], list[str] | None]:
    """Return the directions of the objectives, and the names of several."""
    if direction not in DIRECTIONS:
        raise DataError(f'direction must be "minimize" or "maximize", not {direction!r}; several have directions=')
    if directions is None:
        return [direction], None
    if direction != "minimize":
        raise DataError("direction and directions are both given; leave direction out")
    return parse_directions(directions)


def _check_directions(study: Study, wanted: Sequence[str]) -> None:
    started = [each.name.lower() for each in study.directions]
    if started == list(wanted):
        return
    one = len(started) == len(wanted) == 1
    before, now = (started[0], wanted[0]) if one else (started, list(wanted))
    raise DataError(
        f"study {study.study_name!r} was started with direction{'s' * (not one)} {before!r}, not {now!r}; choose "
        "another study name"
    )


def ask(study: Study, context: Mapping[str, Any] | None = None) -> Trial:
    """Start a trial and suggest every active parameter of the declared space.

    The study's sampler suggests them, with a warning if it is not a `StanGPSampler`: a study that was opened by `load`
    has the default sampler of Optuna.

    Parameters
    ----------
    study : optuna.Study
    context : mapping of str to value, optional
        Values of parameters in this trial, for example of parameters that the user does not control. The other
        parameters are suggested given these values. An enqueued trial stays in the queue.

    Returns
    -------
    optuna.Trial
        `config_of` returns its configuration, `tell` finishes it.

    Raises
    ------
    EnqueuedError
        If the trial was enqueued with a value that does not belong to the space. The trial fails; ask for the next.
    SpaceError
        For a context with an unknown parameter, an illegal value, or a value of an inactive parameter.
    DataError
        For a context, if the study's sampler is not a `StanGPSampler`.
    StorageError
        If the storage fails.
    """
    with translate_storage_errors():
        space = space_of(study)
        if context is None and stan_sampler_of(study) is None:
            warnings.warn(
                f"study {study.study_name!r} has the sampler {study.sampler}, which knows neither the model nor the "
                "constraints on inputs; slayr_py.study.create_study(space, storage=..., study_name=...) opens a stored "
                "study with its own sampler",
                stacklevel=level_outside(),
            )
        trial = study.ask() if context is None else _ask_in(study, context)
        trial.set_user_attr(ASKED_KEY, True)
        declared = declared_space_of(study)
        suggest_or_fail(study, trial, space, None if declared is None else declared.encoder)
    return trial


def ask_batch(study: Study, q: int, context: Mapping[str, Any] | None = None) -> list[Trial]:
    """Start q trials at once, each with a suggestion that takes the others into account.

    Parameters
    ----------
    study : optuna.Study
    q : int
    context : mapping of str to value, optional
        As in `ask`, for all q trials; enqueued trials wait.

    Raises
    ------
    DataError
        If q is not a positive integer, or the study's sampler is not a `StanGPSampler` with a space.
    SpaceError
        If the context is not one of the space.
    """
    if (sampler := stan_sampler_of(study)) is None:
        raise DataError(f"the study's sampler is {study.sampler}: only a StanGPSampler suggests batches")
    if context is not None:
        return [ask(study, context) for _ in range(check_integer("q", q))]
    with translate_storage_errors():
        return sampler.ask_batch(study, q)


def _ask_in(study: Study, context: Mapping[str, Any]) -> Trial:
    if (declared := declared_space_of(study)) is None:
        raise DataError(f"the study's sampler is {study.sampler}: only a StanGPSampler suggests in a context")
    declared.fixed_for_context(context)  # before a trial is started
    values = jsonable(declared.encoder.fix(context, "context: ").values)
    # Optuna returns the values of "fixed_params" to the objective exactly.
    template = optuna.trial.create_trial(
        state=TrialState.RUNNING, system_attrs={"fixed_params": values}, user_attrs={CONTEXT_KEY: values}
    )
    return start_trial(study, template)


def config_of(trial: Trial | FrozenTrial) -> dict[str, Any]:
    """Return a trial's configuration: its active parameters by name, as plain Python values."""
    return {name: plain_value(trial.distributions[name], value) for name, value in trial.params.items()}


def tell(
    study: Study,
    trial: Trial | int,
    value: float | Values | None = None,
    state: TrialState | None = None,
    *,
    sd: float | Values | None = None,
    cost: float | None = None,
    constraints: Mapping[str, float] | None = None,
) -> FrozenTrial:
    """Finish a trial with its value or state, like `optuna.Study.tell`.

    Parameters
    ----------
    study : optuna.Study
    trial : Trial or int
        A running trial or its number.
    value : float, optional
        A number, also as text ("74.3"); of several objectives a sequence, a mapping of their names, or a pandas Series
        with these labels. NaN and infinite values fail the trial.
    state : TrialState, optional
        As in `optuna.Study.tell`; a trial without a value needs ``state=TrialState.FAIL`` or ``PRUNED``.
    sd : float, optional
        Known standard deviation of the value's error, of several objectives one for each, like the values; stored as
        the user attribute ``y_sd``.
    cost : float, optional
        Cost of the trial, a positive number, stored as the user attribute with the name of the cost. The sampler has
        the option ``cost``.
    constraints : mapping of str to float, optional
        The excess of each constraint by name, which holds where this is at most 0; stored as by
        ``Trial.set_constraint``.

    Raises
    ------
    DataError
        If the value, an error, the cost or an excess is illegal, there is a cost although the sampler has no ``cost``,
        or the state does not suit the value. The trial stays open, without any of them; call this function again with
        the right value. Also if there is no such trial, or it is not running.
    StorageError
        If the storage fails. The value is not stored; call this function again.
    """
    _check_state(state, value)
    with translate_storage_errors():
        price = None if cost is None else _told_cost(study, cost)
        told: list[float] | None = None
        names: tuple[str, ...] | None = None
        count = len(study.directions)
        if state is None or state == TrialState.COMPLETE:
            parts, names = split_values(study, value)
            told = [_told_value(each) for each in parts]
        is_finite = told is None or bool(np.isfinite(told).all())
        if state == TrialState.COMPLETE and not is_finite:
            raise DataError(
                f"the value is {value!r:.200} and the state COMPLETE; leave the state out, and the trial fails"
            )
        known = None if sd is None else _told_errors(study, sd, names)
        excesses = {} if constraints is None else _told_excesses(constraints)
        running = _running_trial(study, trial)
        if names is not None:
            set_names(study, names)
        for name, excess in excesses.items():
            set_constraint(study, running, name, excess)
        if known is not None:
            set_trial_attribute(study, running, ERROR_KEY, known[0] if count == 1 else known)
        if price is not None:
            set_trial_attribute(study, running, *price)
        if not is_finite:
            warnings.warn(f"trial {running.number} fails: its value is {value!r:.200}", stacklevel=level_outside())
            return study.tell(running.number, state=TrialState.FAIL)
        return study.tell(running.number, told, state)


def _check_state(state: TrialState | None, value: object) -> None:
    """Raise `DataError` if a state cannot be told, or not with this value."""
    if state in (TrialState.FAIL, TrialState.PRUNED):
        if value is not None:
            raise DataError(
                f"the value is {value!r:.200} and the state {state.name}: a failed or pruned trial has no value; leave "
                "one of them out"
            )
    elif state not in (None, TrialState.COMPLETE):
        raise DataError(f"the state is {state!r:.80}; leave it out, or give TrialState.FAIL or TrialState.PRUNED")


def _running_trial(study: Study, trial: object) -> FrozenTrial:
    """Return the trial with this number, which has to be running, before anything about it is stored."""
    if isinstance(trial, Trial):
        number = trial.number
    elif isinstance(trial, int | np.integer) and not isinstance(trial, bool):
        number = int(trial)
    else:
        raise DataError(f"the trial is {trial!r:.200}; give the trial that ask returned, or its number")
    trials = study.get_trials(deepcopy=False)
    if not 0 <= number < len(trials):
        raise DataError(f"study {study.study_name!r} has no trial {number}; it has {len(trials)}, numbered from 0")
    if trials[number].state == TrialState.WAITING:
        raise DataError(f"trial {number} of study {study.study_name!r} is enqueued; start it by ask first")
    if trials[number].state != TrialState.RUNNING:
        raise DataError(
            f"trial {number} of study {study.study_name!r} is finished ({trials[number].state.name}) and keeps its "
            "value; ask for another one"
        )
    return trials[number]


def _told_errors(study: Study, sd: object, new: Sequence[str] | None) -> list[float]:
    """Return the known errors of the values of the objectives; ``new`` are names that the values give them."""
    count, names, _ = expected_of(study)
    order = new or names
    errors = [sd] if count == 1 else split_parts(sd := by_label(sd), count, order)
    if errors is None:
        known = f", of {', '.join(order)}" if order else ""
        raise DataError(f"sd is {sd!r:.200}; give one standard deviation for each of the {count} objectives{known}")
    return [_told_error(error) for error in errors]


def _told_error(sd: object) -> float:
    error = real_or_nan(sd)
    if not 0 <= error < math.inf:
        raise DataError(f"sd is {sd!r}; give the standard deviation of the value's error, a finite number >= 0")
    return error


def _told_cost(study: Study, cost: object) -> tuple[str, float]:
    """Return the name and the value of a cost."""
    sampler = stan_sampler_of(study)
    if sampler is None or (name := sampler.options.cost) is None:
        raise DataError("the study's sampler has no cost: create the study with cost='euros', or another name")
    known = as_cost(cost)
    if known is None:
        raise DataError(f"the cost {name!r} is {cost!r:.80}; give a finite number above 0")
    return name, known


def _told_excesses(constraints: object) -> dict[str, float]:
    """Return the excesses of constraints by name."""
    if not isinstance(constraints, Mapping):
        raise DataError(f"constraints is {constraints!r:.200}; give the excesses by name, such as {{'memory': -0.5}}")
    try:
        return constraint_values(constraints, None)
    except ObjectiveError as error:
        raise DataError(str(error)) from error


def _told_value(value: object) -> float:
    """Return a value as a float, NaN if it is not finite; a number as text is read."""
    try:
        return float(value) if isinstance(value, str) else as_value(value)
    except NotFiniteError:
        return math.nan
    except (ValueError, ObjectiveError):
        parts = value if isinstance(value, tuple | list) else (value,)
        beside = any(isinstance(part, Mapping) for part in parts)  # as an objective of `minimize` returns constraints
        constraints = ", and constraints={name: excess}" * beside
        raise DataError(
            f"the value is {value!r:.200}; give a number{constraints}, or state=optuna.trial.TrialState.FAIL for a "
            "failed trial"
        ) from None
