"""Sort the trials of a study for a model: observed, pending, or not to be suggested again."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Sequence, Set
from typing import NamedTuple

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace
from numpy.typing import NDArray
from optuna import Study
from optuna.trial import FrozenTrial, TrialState

from slayr_py.acquisition import non_dominated
from slayr_py.arguments import real_or_nan
from slayr_py.errors import DataError, listed
from slayr_py.inference import Posterior, recent_error
from slayr_py.space import Encoded, Fixed, FloatArray, missing_names
from slayr_py.study.storage.attributes import (
    BOUNDS_KEY,
    CONTEXT_KEY,
    ERROR_KEY,
    EVALUATIONS_KEY,
    FAILURE_KEY,
    HEARTBEATS_KEY,
    OUTSIDE_KEY,
    TOLD_KEY,
    ignores_failures,
    is_history,
    suggestion_record,
)
from slayr_py.study.storage.curves import evidence_of
from slayr_py.study.storage.distributions import to_configuration, to_params
from slayr_py.study.storage.far_values import GAP, Compressed, compress_far, has_gap
from slayr_py.study.storage.objectives import Goal, finite_values, goals_of, has_several, signs_of
from slayr_py.study.storage.optuna_private import enqueued_values
from slayr_py.study.storage.pieces import stored
from slayr_py.study.storage.reading import trials_of
from slayr_py.threads import ignoring_underflow

INTERRUPTIONS = ("KeyboardInterrupt",)
"""Reasons for failures that say nothing about the configuration."""

_ENOUGH_TO_WARN = 10  # complete trials that all violate a constraint


class Observations(NamedTuple):
    """The finished trials that a model is fitted to, in the order of their numbers."""

    numbers: list[int]
    """Numbers of the n trials."""

    configs: list[Configuration]
    """n configurations."""

    y: FloatArray
    """Shape (n,): values in the user's units; those that are `far` are compressed."""

    maximize: bool
    """Whether larger values are better."""

    y_sd: FloatArray
    """Shape (n,): known standard deviations of the errors of y; 0 where none is known."""

    further_error: float
    """Known standard deviation of the error that the next value is expected to have: the median of those of the last
    five complete trials. Forecasts of pruned trials have other errors."""

    feasible: NDArray[np.bool_]
    """Shape (n,): whether no constraint of the trial is violated and, if the study has constraints, all are known. A
    pruned trial has no value to improve on and counts as not feasible."""

    inside: NDArray[np.bool_]
    """Shape (n,): whether the configuration satisfies the constraints on inputs; else it is not feasible either."""

    far: NDArray[np.bool_]
    """Shape (n,): whether the value is so much worse than the others that it is compressed: see `far_values`."""

    uncompressed: FloatArray
    """Shape (n,): ``y`` before it is compressed, which may make values equal that are not."""

    penalties: list[int]
    """Numbers of complete trials that are not among the observations, since they count as failures: their values of the
    only objective are far worse than those of all other complete trials. Empty if the study ignores failures."""

    @property
    def errors(self) -> FloatArray | None:
        """Return ``y_sd``, or None if no error is known."""
        return self.y_sd if self.y_sd.any() else None

    @property
    def uncertain(self) -> bool:
        """Return whether feasible values have known errors: the best of them is then partly luck."""
        return bool(self.y_sd[self.feasible].any())

    def usable(self, encoded: Encoded, fixed: Fixed | None) -> NDArray[np.bool_]:
        """Return which trials are feasible and have the fixed values, (n,), from their encoded configurations."""
        return self.feasible if fixed is None else self.feasible & fixed.hold(encoded)

    def leading(self, usable: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which trials have the best value of the usable ones, of which there is one, (n,)."""
        return np.asarray(usable & (self.y == self.best_of(self.y[usable])))

    def best_of(self, values: FloatArray) -> float:
        """Return the best of some values."""
        return float(values.max() if self.maximize else values.min())


class _Finished(NamedTuple):
    """Finished trials with finite values and a configuration of the space, in the order of their numbers."""

    trials: list[FrozenTrial]
    configs: list[Configuration]
    values: FloatArray
    """Shape (n, p): values of the objectives, of which smaller ones are better; forecasts of pruned trials."""
    errors: FloatArray
    """Shape (n,): known standard deviations of the errors of one objective."""

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Return which trials are complete, (n,); the others are pruned."""
        return np.array([trial.state == TrialState.COMPLETE for trial in self.trials], dtype=np.bool_)

    def among(self, chosen: NDArray[np.bool_]) -> _Finished:
        """Return some of the trials, given by a mask (n,)."""
        rows = np.flatnonzero(chosen).tolist()
        trials = [self.trials[row] for row in rows]
        return _Finished(trials, [self.configs[row] for row in rows], self.values[chosen], self.errors[chosen])

    def compressed(self, objective: int) -> Compressed:
        """Compress the far values of an objective."""
        y = self.values[:, objective]
        if not has_gap(y):  # the comparisons of trials below would be a third of the time of `observations`
            return Compressed(y, self.errors, np.zeros(len(y), dtype=np.bool_))
        # Constraints that only later trials report do not change what is far: a fit is replayed with its values.
        near = _best_rows(self.trials, self.values, _incumbents(self.trials, _constraint_names(self.trials)))
        return compress_far(y, near, were_searched(self.trials), self.errors, forecast=~self.complete)


@ignoring_underflow
def observations(
    study: Study, space: ConfigurationSpace, numbers: Iterable[int] | None = None, objective: int = 0
) -> Observations:
    """Return the complete trials with finite values and a configuration of the space, or those with these ``numbers``.

    Their values are those of one ``objective``, the only one by default. Without ``numbers``, penalties are left out:
    see `Observations.penalties`. Other values that are far worse than all others are compressed, with their known
    errors. A trial that `Prune` has stopped counts with what its curve says about the final value, and with the error
    of this.
    """
    known = trials_of(study, (TrialState.COMPLETE, TrialState.PRUNED))
    finished = _finished(known, space, numbers, objective, goals_of(study))
    penalties: list[int] = []
    if numbers is None:
        far = _are_penalties(study, finished)
        penalties = [trial.number for trial in finished.among(far).trials]
        finished = finished.among(~far)
    goal = goals_of(study)[objective]
    compressed = finished.compressed(objective)
    return Observations(
        [trial.number for trial in finished.trials],
        finished.configs,
        goal.sign * compressed.values,
        goal.maximize,
        compressed.errors,
        recent_error(compressed.errors[finished.complete]),
        _incumbents(finished.trials, _constraint_names(known)),
        np.array([OUTSIDE_KEY not in trial.user_attrs for trial in finished.trials], dtype=np.bool_),
        compressed.far,
        goal.sign * finished.values[:, objective],
        penalties,
    )


def _finished(
    known: Iterable[FrozenTrial],
    space: ConfigurationSpace,
    numbers: Iterable[int] | None,
    objective: int,
    goals: Sequence[Goal],
) -> _Finished:
    wanted = None if numbers is None else set(numbers)
    trials: list[FrozenTrial] = []
    configs: list[Configuration] = []
    rows: list[Sequence[float]] = []
    errors: list[float] = []
    for trial in known:
        config = trial_configuration(trial, space)
        if config is None or (wanted is not None and trial.number not in wanted):
            continue
        if (evidence := evidence_of(trial)) is not None:
            rows.append(evidence[:1])
            errors.append(evidence[1])
        elif (finite := finite_values(trial)) is not None:
            rows.append(finite)
            errors.append(known_error(trial, objective))
        else:
            continue
        trials.append(trial)
        configs.append(config)
    signs = signs_of(goals)
    values = signs * np.array(rows, dtype=np.float64).reshape(-1, len(goals))
    return _Finished(trials, configs, values, np.array(errors, dtype=np.float64))


def _are_penalties(study: Study, finished: _Finished) -> NDArray[np.bool_]:
    """Return which trials have values that count as failures, (n,): see `Observations.penalties`.

    Penalties of several sizes are found one after another, the largest first.
    """
    near = finished.complete
    if has_several(study) or not near.any():
        return np.zeros(len(near), dtype=np.bool_)
    while (far := finished.among(near).compressed(0).far).any():
        if ignores_failures(study):  # read last, since it is seldom needed
            return np.zeros(len(near), dtype=np.bool_)
        near[np.flatnonzero(near)[far]] = False
    return finished.complete & ~near


def observations_of_all(study: Study, space: ConfigurationSpace) -> tuple[Observations, ...]:
    """Return `observations` of each objective; they are values of the same trials."""
    return tuple(observations(study, space, objective=number) for number in range(len(study.directions)))


def were_searched(trials: Iterable[FrozenTrial]) -> NDArray[np.bool_]:
    """Return which trials have a configuration that a model has chosen, (n,)."""
    return np.array([suggestion_record(trial).get("phase") == "model" for trial in trials], dtype=np.bool_)


def _best_rows(trials: Sequence[FrozenTrial], values: FloatArray, feasible: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which of n trials with values (n, p) to minimise are the best of those that they are compared with, (n,).

    A trial with a context, or of a run with fixed values, is compared with all feasible trials that have these values,
    another trial with all feasible ones. Contexts and fixed values are those that the trials store, so that a replay
    finds the same. If no trial is feasible, infeasible ones are compared instead.
    """
    eligible = np.flatnonzero(feasible | ~feasible.any()).tolist()
    comparisons: dict[tuple[str, ...], set[tuple[object, ...]]] = {}
    for trial in trials:
        names = _compared_by(trial)
        comparisons.setdefault(names, set()).add(_values_of(trial, names))
    best = np.zeros(len(trials), dtype=np.bool_)
    for names, given in comparisons.items():
        rows: dict[tuple[object, ...], list[int]] = {}
        for row in eligible:
            rows.setdefault(_values_of(trials[row], names), []).append(row)
        for compared in given & rows.keys():
            best[rows[compared]] |= non_dominated(values[rows[compared]])
    return best


def _compared_by(trial: FrozenTrial) -> tuple[str, ...]:
    """Return the names of the values that a trial was compared by: of its context and run, not enqueued ones."""
    fixed = set(suggestion_record(trial).get("fixed") or ())
    context = set(trial.user_attrs.get(CONTEXT_KEY) or ())
    return tuple(sorted(fixed | context if context else fixed - enqueued_values(trial).keys()))


def _values_of(trial: FrozenTrial, names: Iterable[str]) -> tuple[object, ...]:
    return tuple(trial.params.get(name) for name in names)


def _constraint_names(trials: Iterable[FrozenTrial]) -> set[str]:
    return {name for trial in trials if trial.state == TrialState.COMPLETE for name in trial.constraints}


def _incumbents(trials: Iterable[FrozenTrial], names: Set[str]) -> NDArray[np.bool_]:
    """Return which trials are complete and feasible, (n,)."""
    return np.array([t.state == TrialState.COMPLETE and is_feasible(t, names) for t in trials], dtype=np.bool_)


def known_error(trial: FrozenTrial, objective: int = 0) -> float:
    """Return the known standard deviation of the error of a value, 0 by default.

    NaN and None stand for an unknown error, as in the tables of past experiments, or for those of all objectives.

    Raises
    ------
    DataError
        If the user attribute is neither of them nor a finite number >= 0, or, of several objectives, no list of these.
    """
    given = trial.user_attrs.get(ERROR_KEY, 0.0)
    if _is_unknown(given):
        return 0.0
    several = len(trial.values or ()) > 1
    if ERROR_KEY in trial.user_attrs and several:
        if not isinstance(given, list | tuple) or len(given) != len(trial.values):
            raise DataError(
                f"trial {trial.number} has the user attribute {ERROR_KEY!r} = {given!r:.80}; a trial with "
                f"{len(trial.values)} values needs a list of as many standard deviations"
            )
        error = given[objective]
    else:
        error = given
    error = 0.0 if _is_unknown(error) else real_or_nan(error)
    if not 0 <= error < np.inf:
        raise DataError(
            f"trial {trial.number} has the user attribute {ERROR_KEY!r} = {given!r:.80}; it is the standard deviation "
            "of the value's error and must be a finite number >= 0"
        )
    return error


def has_unknown_error(trial: FrozenTrial) -> bool:
    """Return whether an error of a value of the trial is given, but as NaN or None."""
    given = trial.user_attrs.get(ERROR_KEY, 0.0)
    return any(map(_is_unknown, given if isinstance(given, list | tuple) else [given]))


def _is_unknown(error: object) -> bool:
    return error is None or (isinstance(error, float | np.floating) and math.isnan(error))


def has_known_error(trial: FrozenTrial) -> bool:
    """Return whether a value of the trial has a known error; a damaged attribute counts as none."""
    given = trial.user_attrs.get(ERROR_KEY)
    return any(real_or_nan(sd) > 0 for sd in (given if isinstance(given, list | tuple) else [given]))


def is_feasible(trial: FrozenTrial, names: Set[str]) -> bool:
    """Return whether a trial reports all these constraints and violates none of its own and none on inputs."""
    values = trial.constraints
    return (
        OUTSIDE_KEY not in trial.user_attrs and names <= values.keys() and all(value <= 0 for value in values.values())
    )


class Results(NamedTuple):
    """Trials with one result each, for the model of a further output."""

    numbers: list[int]
    configs: list[Configuration]
    values: FloatArray
    penalties: Sequence[int] = ()
    """Numbers of trials that were complete and count as failures."""

    linear: bool = False
    """Whether they are the values of a constraint that are not compressed."""

    half_width: float | None = None
    """Half of the width of the band around 0 in which a constraint holds; None if it holds where it is at most 0."""

    def limited(self, posterior: Posterior) -> Posterior:
        """Return a posterior of these results that knows between which values the constraint holds."""
        return posterior if self.half_width is None else posterior.with_limits(-self.half_width, self.half_width)


def outcomes(study: Study, space: ConfigurationSpace, penalties: Sequence[int]) -> Results:
    """Return the trials that succeeded (1) or failed (0) because of their configuration.

    ``penalties`` are numbers of complete trials that count as failed. A failed trial raised an error, returned NaN or
    an infinity, was told to have failed, or ended its process several times. Pruned and interrupted trials are neither.
    Interrupted are those that Optuna has failed because their processes sent no heartbeats: it does not tell them to
    the sampler, which marks all others, see `mark_failure`.
    """
    results = []
    for trial in trials_of(study, (TrialState.COMPLETE, TrialState.FAIL)):
        failed = finite_values(trial) is None
        if failed and not was_evaluated(trial):
            continue
        if (config := trial_configuration(trial, space)) is not None:
            results.append((trial.number, config, float(not failed and trial.number not in penalties)))
    return results_of(results)._replace(penalties=penalties)


def was_evaluated(trial: FrozenTrial) -> bool:
    """Return whether a failed trial failed at its configuration, as far as its attributes tell."""
    reason = trial.user_attrs.get(FAILURE_KEY)
    if is_history(trial):
        return True
    if reason is None:
        return HEARTBEATS_KEY not in trial.user_attrs or TOLD_KEY in trial.user_attrs
    # The loop counts evaluations. A trial that was enqueued with an illegal value was never evaluated.
    return reason not in INTERRUPTIONS and trial.user_attrs.get(EVALUATIONS_KEY, 0) > 0


def is_tried(trial: FrozenTrial, failures: str) -> bool:
    """Return whether a trial is running or has ended because of its configuration: repeating it would tell nothing.

    With ``failures="ignore"``, failures do not depend on the configuration.
    """
    if trial.state == TrialState.FAIL:
        return failures == "learn" and was_evaluated(trial)
    return trial.state != TrialState.WAITING


def constraint_results(
    study: Study, space: ConfigurationSpace, among: Container[int] | None = None
) -> dict[str, Results]:
    """Return the values of each constraint, by name; a constraint holds where its value is not positive.

    With ``among``, they are those of trials with these numbers. Values that are not finite are left out. If all of
    them are, they count as -1 if the constraint holds, else as 1.
    """
    results: dict[str, list[tuple[int, Configuration, float]]] = {}
    for trial in trials_of(study, (TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED)):
        if not trial.constraints or (among is not None and trial.number not in among):
            continue
        if (config := trial_configuration(trial, space)) is None:
            continue
        for name, value in trial.constraints.items():
            results.setdefault(name, []).append((trial.number, config, value))
    return {name: results_of(_finite(results[name])) for name in sorted(results)}


def _finite(
    results: Sequence[tuple[int, Configuration, float]],
) -> Sequence[tuple[int, Configuration, float]]:
    finite = [result for result in results if np.isfinite(result[2])]
    return finite or [(number, config, -1.0 if value <= 0 else 1.0) for number, config, value in results]


def known_infeasible(study: Study, space: ConfigurationSpace, penalties: Sequence[int]) -> list[Configuration]:
    """Return the configurations of trials that violate a constraint or, unless the study ignores failures, failed.

    ``penalties`` are as in `outcomes`.
    """
    finished = trials_of(study, (TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED))
    violating = [trial_configuration(trial, space) for trial in finished if not is_feasible(trial, set())]
    configs = [config for config in violating if config is not None]
    if not ignores_failures(study):
        results = outcomes(study, space, penalties)
        configs += [config for config, success in zip(results.configs, results.values, strict=True) if not success]
    return configs


def results_of(results: Sequence[tuple[int, Configuration, float]]) -> Results:
    """Return the results of trials given by number, configuration and value."""
    numbers = [number for number, _, _ in results]
    configs = [config for _, config, _ in results]
    return Results(numbers, configs, np.array([value for _, _, value in results], dtype=np.float64))


def ended(study: Study) -> set[int]:
    """Return the numbers of the finished trials."""
    return {trial.number for trial in trials_of(study) if trial.state.is_finished()}


def pending(
    study: Study,
    space: ConfigurationSpace,
    current: FrozenTrial,
    design: Sequence[Configuration] = (),
    known: Container[int] | None = None,
) -> list[Configuration]:
    """Return the configurations of the other running trials; without a suggestion yet, their points of the design.

    With the numbers of the trials that are ``known`` to have ended, trials that have ended since are pending too:
    models that were fitted in between have not seen their results. Failures that do not depend on the configuration
    have none: they may be repeated.
    """
    configs = []
    failures = "ignore" if ignores_failures(study) else "learn"
    for trial in trials_of(study):
        running = trial.state == TrialState.RUNNING
        has_ended = known is not None and trial.state.is_finished() and trial.number not in known
        unseen = has_ended and is_tried(trial, failures)
        if (running or unseen) and trial.number != current.number:
            config = trial_configuration(trial, space)
            planned = config is None and running and trial.number < len(design)
            configs.append(design[trial.number] if planned else config)
    return [config for config in configs if config is not None]


def with_configuration(study: Study, current: FrozenTrial) -> set[int]:
    """Return the numbers of the other trials whose configuration is known."""
    numbers = set()
    for trial in trials_of(study):
        if trial.number != current.number and (trial.params or "config" in suggestion_record(trial)):
            numbers.add(trial.number)
    return numbers


def excluded(
    study: Study,
    space: ConfigurationSpace,
    repeatable: Iterable[Configuration] = (),
    counts: Callable[[FrozenTrial], bool] = lambda trial: True,
) -> list[Configuration]:
    """Return the configurations of finished trials, or of those that count, except the repeatable ones."""
    finished = trials_of(study, (TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED))
    tried = [trial_configuration(trial, space) for trial in finished if counts(trial)]
    known = [config for config in tried if config is not None]
    again = {repr(to_params(config)) for config in repeatable}
    return [config for config in known if repr(to_params(config)) not in again] if again else known


def left_out(study: Study, space: ConfigurationSpace) -> dict[str, list[int]]:
    """Return the numbers of complete trials that are not configurations of the space, by the reason."""
    by_reason: dict[str, list[int]] = {}
    for trial in trials_of(study, (TrialState.COMPLETE,)):
        if trial_configuration(trial, space) is None:
            missing = ", ".join(map(repr, missing_names(space, trial.params)))
            reason = f"never asked for {missing}" if missing else "evaluated values that the space does not allow"
            by_reason.setdefault(reason, []).append(trial.number)
    return by_reason


def without_constraints(study: Study) -> tuple[list[int], list[str]]:
    """Return the numbers of complete trials without a value of every constraint, and the names that they lack."""
    complete = trials_of(study, (TrialState.COMPLETE,))
    names = _constraint_names(complete)
    lacking = {trial.number: names - trial.constraints.keys() for trial in complete}
    return [number for number in lacking if lacking[number]], sorted(set().union(*lacking.values()))


def violated_by_all(study: Study) -> dict[str, float]:
    """Return the smallest excess of each constraint that all of ten or more complete trials violate.

    Without a bound of the user, a number of another meaning may have been taken for an excess.
    """
    complete = trials_of(study, (TrialState.COMPLETE,))
    if len(complete) < _ENOUGH_TO_WARN or stored(study.user_attrs, BOUNDS_KEY):
        return {}
    excesses = {name: [t.constraints.get(name, math.inf) for t in complete] for name in _constraint_names(complete)}
    smallest = {name: min(values) for name, values in sorted(excesses.items())}
    return {name: least for name, least in smallest.items() if least > 0}


def trial_configuration(trial: FrozenTrial, space: ConfigurationSpace) -> Configuration | None:
    """Return the configuration of a trial, or None if it is unknown or not one of the space.

    The configuration of a complete trial is what it evaluated: it has asked for all active parameters. Further
    parameters are ignored if they are not declared or not active. A running trial may still ask for what was suggested;
    a failed or pruned one counts with its suggestion, so that it is not suggested again.
    """
    config = to_configuration(space, trial.params) if trial.params else None
    if config is not None or trial.state == TrialState.COMPLETE:
        return config
    suggested = suggestion_record(trial).get("config")
    return to_configuration(space, {**suggested, **trial.params}) if suggested else None


def far_values_text(goal: Goal, observed: Observations) -> str:
    """Return which trials have values that are far worse than all others, and what becomes of them; empty if none."""
    parts = []
    if observed.penalties:
        failed = "Each counts as a failure, unless failures='ignore': the study learns where they are"
        parts.append(_far_text(observed.penalties, goal, failed))
    if observed.far.any():
        far = [number for number, far in zip(observed.numbers, observed.far, strict=True) if far]
        seen = goal.sign * np.max(goal.sign * observed.y[observed.far])
        parts.append(_far_text(far, goal, f"The model sees {seen:.4g} instead"))
    return ". ".join(parts)


def _far_text(numbers: Sequence[int], goal: Goal, instead: str) -> str:
    of_objective = "" if goal.is_only else f" of objective {goal.name!r}"
    return (
        f"{trials_text(numbers)}: the value{of_objective} is over {GAP:g} times as far from the best one as all "
        f"others. Beside it, they would look equal to the model. {instead}"
    )


def trials_text(numbers: Sequence[int]) -> str:
    """Return "trial 3" or "trials 3, 5"; of many trials the first ones and the number of the others."""
    return f"trial{'s' * (len(numbers) > 1)} {listed(numbers)}"


def to_ranges(numbers: Iterable[int]) -> list[list[int]]:
    """Write trial numbers as ranges [first, last]; usually one range holds all of them."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ranges


def from_ranges(ranges: Iterable[Iterable[int]]) -> list[int]:
    """Return the trial numbers in ranges from :func:`to_ranges`."""
    return [number for first, last in ranges for number in range(first, last + 1)]
