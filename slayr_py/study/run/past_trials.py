"""Past experiments as trials of a study: match them with its trials, and add those that it does not have yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import optuna
from optuna import Study
from optuna.trial import FrozenTrial, TrialState

from slayr_py.errors import listed
from slayr_py.space import Encoder
from slayr_py.study.results.noise import is_noisy
from slayr_py.study.run.history import Experiment, warn
from slayr_py.study.storage.attributes import (
    ASKED_KEY,
    ERROR_KEY,
    EVALUATIONS_KEY,
    HISTORY,
    OUTSIDE_KEY,
    SUGGESTION_KEY,
    WORKER_KEY,
    is_history,
)
from slayr_py.study.storage.distributions import space_to_distributions
from slayr_py.study.storage.objectives import finite_values
from slayr_py.study.storage.optuna_private import set_constraint, set_trial_attribute
from slayr_py.study.storage.pieces import in_pieces
from slayr_py.study.storage.search_lock import search_lock
from slayr_py.study.storage.trials import trials_text


class Matching(NamedTuple):
    """What a history adds to the trials of a study and changes in them."""

    added: list[Experiment]
    """Experiments that are no trial yet."""

    told: list[tuple[FrozenTrial, Experiment]]
    """Running trials that have a result now."""

    changed: dict[str, list[int]]
    """Numbers of trials whose known error, cost or constraint, by name, differs from that of their experiment."""

    untold: list[int]
    """Numbers of running trials that only their owner may tell, although an experiment has their configuration."""

    absent: list[FrozenTrial]
    """Finished and running trials that are no experiment of the history."""


def match(experiments: Sequence[Experiment], trials: Sequence[FrozenTrial], cost: str | None = None) -> Matching:
    """Match past experiments with trials; see `add_history`. Experiments with a result choose first."""
    new: list[int] = []
    matching = Matching([], [], {}, [], [])
    finished = [trial for trial in trials if trial.state.is_finished()]
    running = [trial for trial in trials if trial.state == TrialState.RUNNING and not _is_of_loop(trial)]
    there = _by_key(finished, lambda trial: _key(trial.params, finite_values(trial)))
    for i, experiment in enumerate(experiments):
        if experiment.pending:
            continue
        if same := there.get(_key(experiment.params, experiment.values)):
            stored = min(same, key=lambda trial: len(_different(trial, experiment, cost)))
            same.remove(stored)
            for name in _different(stored, experiment, cost):
                matching.changed.setdefault(name, []).append(stored.number)
        elif (started := _take(running, experiment)) is None:
            new.append(i)
        elif _has_owner(started):
            matching.untold.append(started.number)
        else:
            matching.told.append((started, experiment))
    left = [trial for same in there.values() for trial in same]
    results = [trial for trial in left if trial.user_attrs.get(ASKED_KEY)]  # told by the user, not by a history
    for i, experiment in enumerate(experiments):
        if experiment.pending and _take(running, experiment) is None:
            if (ended := _take(results, experiment)) is None:
                new.append(i)
            else:
                left.remove(ended)
    return matching._replace(added=[experiments[i] for i in sorted(new)], absent=[*left, *running])


def add_history(study: Study, experiments: Sequence[Experiment], encoder: Encoder, cost: str | None = None) -> None:
    """Add past experiments to a study as finished trials, except those that it already has.

    An experiment with the parameters and value of a finished trial is that trial; repeated ones are counted. A warning
    says if it has another known error or cost than the trial, which keeps its own. One without a result yet is a
    running trial, which gets the result when the experiment has one; so does a trial of ask and tell. If the user told
    such a trial, an experiment without a result is that trial too; of other finished trials it is a repetition.
    Warnings name stored experiments that are absent or have another value. ``cost`` is the name of the cost.
    """
    distributions = space_to_distributions(encoder.space)
    with search_lock(study):  # processes that start the same study add its history once
        matching = match(experiments, study.get_trials(deepcopy=False), cost)
        for trial, experiment in matching.told:
            for key, value in (_attributes(experiment, cost) | {ASKED_KEY: False}).items():
                set_trial_attribute(study, trial, key, value)
            for name, excess in experiment.constraints.items():
                set_constraint(study, trial, name, excess)
            study.tell(trial.number, experiment.values, _state(experiment))
        for experiment in matching.added:
            params = experiment.params
            study.add_trial(
                optuna.trial.create_trial(
                    state=_state(experiment),
                    values=experiment.values,
                    params=params,
                    distributions={name: distributions[name] for name in params},
                    user_attrs=in_pieces(SUGGESTION_KEY, {"phase": HISTORY, "config": params})
                    | _attributes(experiment, cost),
                    constraints=dict(experiment.constraints),
                )
            )
    _warn_of_kept(study, matching)


def _warn_of_kept(study: Study, matching: Matching) -> None:
    """Warn of trials that stay as they are although the history has them no more, or otherwise."""
    another = "give the history to a study with another name"
    for name, numbers in matching.changed.items():
        keep = "keep" if len(numbers) > 1 else "keeps"
        warn(
            f"{_which(study, numbers)} {keep} the stored {name}, which differs from that of the history: to use the "
            f"new one, {another}"
        )
    if untold := matching.untold:
        what, where, them = "an experiment", "is running at this configuration", "it"
        if len(untold) > 1:
            what, where, them = f"{len(untold)} experiments", "are running at these configurations", "them"
        warn(f"left out: {what} of the history, since {_which(study, untold)} {where}: tell {them}")
    finished = [trial for trial in matching.absent if trial.state not in (TrialState.RUNNING, TrialState.PRUNED)]
    left = _by_key(finished, lambda trial: _key(trial.params, None))
    if corrected := _take_corrected(left, matching.added, is_noisy(study)):
        warn(
            f"study {study.study_name!r} keeps the stored result of {listed(corrected)}, and the new one is another "
            f"trial: to replace results, {another}"
        )
    lacking = sorted(trial.number for same in left.values() for trial in same if is_history(trial))
    if lacking:
        what = "are past experiments" if len(lacking) > 1 else "is a past experiment"
        warn(
            f"{_which(study, lacking)}, which the history lacks, {what} that the model learns from: to start without, "
            f"{another}"
        )
    planned = [trial.number for trial in matching.absent if trial.state == TrialState.RUNNING and is_history(trial)]
    if planned:
        what = "are planned experiments" if len(planned) > 1 else "is a planned experiment"
        warn(
            f"{_which(study, planned)}, which the history lacks, {what} and still running: tell a result, or "
            "state=TrialState.PRUNED"
        )


def _take_corrected(left: Mapping[str, list[FrozenTrial]], added: Sequence[Experiment], noisy: bool) -> list[str]:
    """Remove trials of which the history has another result, and describe both results.

    ``left`` has trials by their parameters.
    """
    corrected = []
    for experiment in added:
        if experiment.pending:
            continue
        same = left.get(_key(experiment.params, None), [])
        repeated = noisy and experiment.values is not None  # another value of an own trial is one more evaluation
        kept = (trial for trial in same if not repeated or is_history(trial) or trial.state == TrialState.FAIL)
        if (trial := next(kept, None)) is not None:
            same.remove(trial)
            stored, new = (_value_text(values) for values in (finite_values(trial), experiment.values))
            corrected.append(f"trial {trial.number} ({stored}, in the history {new})")
    return corrected


def _by_key(trials: Iterable[FrozenTrial], key: Callable[[FrozenTrial], str]) -> dict[str, list[FrozenTrial]]:
    found: dict[str, list[FrozenTrial]] = {}
    for trial in trials:
        found.setdefault(key(trial), []).append(trial)
    return found


def _take(trials: list[FrozenTrial], experiment: Experiment) -> FrozenTrial | None:
    """Remove the first trial with the parameters of an experiment and return it; None without one."""
    found = next((trial for trial in trials if trial.params == experiment.params), None)
    if found is not None:
        trials.remove(found)
    return found


def _has_owner(trial: FrozenTrial) -> bool:
    """Return whether a trial is neither a past experiment nor one of ask and tell, which a history may tell."""
    return not (is_history(trial) or ASKED_KEY in trial.user_attrs)


def _state(experiment: Experiment) -> TrialState:
    if experiment.pending:
        return TrialState.RUNNING
    return TrialState.FAIL if experiment.values is None else TrialState.COMPLETE


def _known(experiment: Experiment, cost: str | None) -> dict[str, Any]:
    """Return the known errors and the cost of an experiment as attributes of a trial."""
    known: dict[str, Any] = {}
    if experiment.y_sd is not None:
        known[ERROR_KEY] = experiment.y_sd[0] if len(experiment.y_sd) == 1 else list(experiment.y_sd)
    if experiment.cost is not None and cost is not None:
        known[cost] = experiment.cost
    return known


def _attributes(experiment: Experiment, cost: str | None) -> dict[str, Any]:
    outside = {OUTSIDE_KEY: experiment.outside} if experiment.outside else {}
    asked = {ASKED_KEY: True} if experiment.pending else {}
    return _known(experiment, cost) | outside | asked


def _which(study: Study, numbers: Sequence[int]) -> str:
    return f"{trials_text(numbers)} of study {study.study_name!r}"


def _value_text(values: Sequence[float] | None) -> str:
    return "failed" if values is None else ", ".join(f"{value:g}" for value in values)


def _is_of_loop(trial: FrozenTrial) -> bool:
    """Return whether a trial belongs to a run of `minimize`, which tells it."""
    return WORKER_KEY in trial.user_attrs or EVALUATIONS_KEY in trial.user_attrs


def _different(trial: FrozenTrial, experiment: Experiment, cost: str | None) -> list[str]:
    """Return the names of the known errors, the cost and the constraints whose value a trial has not stored."""
    known = _known(experiment, cost).items()
    attributes = [name for name, value in known if trial.user_attrs.get(name) != value]
    bounded = experiment.constraints.items()
    return attributes + [f"constraint {name!r}" for name, value in bounded if trial.constraints.get(name) != value]


def _key(params: Mapping[str, Any], values: Sequence[float] | None) -> str:
    """Return a text that is equal for equal parameters and values; a database may lose the sign of zero."""
    unsigned = [(name, 0.0 + value if isinstance(value, float) else value) for name, value in sorted(params.items())]
    return repr((unsigned, None if values is None else [0.0 + value for value in values]))
