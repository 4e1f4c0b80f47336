"""Repeat the fits behind a study's suggestions from the records of its trials."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from optuna import Study
from optuna.trial import FrozenTrial

from slayr_py.errors import DataError, StorageError, level_outside, listed
from slayr_py.inference import (
    METHODS,
    Observed,
    Posterior,
    Replay,
    array_digest,
    observe,
    posterior_again,
    recorded_model,
    replay as replay_record,
)
from slayr_py.study.model.costs import fit_name
from slayr_py.study.model.feasibility import feasibility_results
from slayr_py.study.sampler import within_of
from slayr_py.study.storage.attributes import FIT_KEY, suggestion_record
from slayr_py.study.storage.costs import log_costs
from slayr_py.study.storage.fit_records import keys, space_of_fit, with_stored_once
from slayr_py.study.storage.grids import warn_of_grids
from slayr_py.study.storage.objectives import goal_of, goals_of
from slayr_py.study.storage.pieces import stored
from slayr_py.study.storage.suggestion import SuggestionRecord, was_linear
from slayr_py.study.storage.trials import Results, from_ranges, observations, to_ranges
from slayr_py.threads import ignoring_underflow


class RecordedFit(NamedTuple):
    """The complete record of a fit, and its observations."""

    record: dict[str, Any]
    observed: Observed
    numbers: list[int]
    """Numbers of its trials."""


class RecordedFits(NamedTuple):
    """The fits behind a suggestion; a stack has one for each part."""

    fits: list[RecordedFit]
    stack: Mapping[str, Any] | None
    """The record of the stack: see `slayr_py.study.storage.attributes.FIT_KEY`."""

    @property
    def numbers(self) -> list[int]:
        """Numbers of the trials that were fitted."""
        return self.fits[0].numbers

    def repeat(self, progress: Callable[[str], None] | None) -> Posterior:
        """Repeat the fits; a stack gets the recorded weights."""
        posteriors = [posterior_again(fit.record, fit.observed, progress) for fit in self.fits]
        if self.stack is None:
            return posteriors[0]
        weights = [part["weight"] for part in self.stack["parts"]]
        return Posterior.stack(posteriors, weights, self.stack["seed"], self.stack["messages"])


@ignoring_underflow
def posterior_of(
    study: Study, number: int, progress: Callable[[str], None] | None = None, objective: int | str | None = None
) -> Posterior:
    """Repeat the fit behind a trial's suggestion and return its posterior.

    Parameters
    ----------
    study : optuna.Study
        Created by `minimize` or `create_study`.
    number : int
        Number of the trial.
    progress : callable, optional
        Called with the name of each phase.
    objective : int or str, optional
        Number or name of one of several objectives.

    Returns
    -------
    Posterior
        In the user's units and direction. If its draws are not bit-identical to the
        original ones, as on another machine or with another toolchain, a warning is issued.

    Raises
    ------
    DataError
        If there is no such trial, or it has no fit: it is in the initial design, or its fit failed; or if the study has
        several objectives and none is given.
    StorageError
        If the stored record of the fit is damaged, or its observations are missing.
    ToolchainError, InferenceError
        If Stan cannot be run, or fails.
    """
    recorded = recorded_fits(study, number, goal_of(study, objective).number)
    posterior = recorded.repeat(progress)
    warn_of_grids(posterior.encoder.space)
    pairs = zip(posterior.parts, recorded.fits, strict=True)
    if any(part.record["draws_sha256"] != fit.record["draws_sha256"] for part, fit in pairs):
        warnings.warn(
            f"the posterior of trial {number} is not bit-identical to the posterior of its suggestion: `slayr replay` "
            f"with --trial {number} shows the differences",
            RuntimeWarning,
            stacklevel=level_outside(),
        )
    return posterior


@ignoring_underflow
def replay(study: Study, number: int, progress: Callable[[str], None] | None = None) -> tuple[Replay, ...]:
    """Repeat the fit of every kernel behind a trial's suggestion and compare the results with the records.

    Parameters and errors as in :func:`posterior_of`.

    Returns
    -------
    tuple of Replay
        One for each kernel, more than one for a stack, of each objective in their order.
    """
    fits = [fit for goal in goals_of(study) for fit in recorded_fits(study, number, goal.number).fits]
    return tuple(replay_record(fit.record, fit.observed.data, progress) for fit in fits)


def recorded_fits(study: Study, number: int, objective: int = 0) -> RecordedFits:
    """Return the fits of an objective behind a trial's suggestion.

    Raises
    ------
    DataError, StorageError
        As in :func:`posterior_of`.
    """
    trial = _trial(study, number)
    _check_fit(study, trial)
    with _report_damage(study, number):
        fit_key, start_key = keys(goals_of(study)[objective].fit_name)
        reduced = stored(trial.user_attrs, fit_key)
        stack = reduced.get("stack")
        parts = [(reduced, start_key)]
        if stack is not None:
            parts = [(stored(trial.user_attrs, fit_key), start_key) for fit_key, start_key in _keys_of_parts(stack)]
        return RecordedFits([_recorded_fit(study, number, objective, *part) for part in parts], stack)


def _keys_of_parts(stack: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the attributes of the fit and of the start of each part of a recorded stack."""
    parts = [(keys(part["fit"]), float(part["weight"])) for part in stack["parts"]]
    if not parts or not isinstance(stack["seed"], int) or not isinstance(stack["messages"], list):
        raise ValueError("it has no parts, seed or messages")
    return [key for key, _ in parts]


def last_feasibility(study: Study) -> dict[str, Posterior]:
    """Repeat the fits of the models of failures and constraints behind the last fitted suggestion, if there is one."""
    numbers = fitted_numbers(study)
    return feasibility_of(study, numbers[-1]) if numbers else {}


def trials_of_feasibility(study: Study) -> dict[str, tuple[list[int], list[int]]]:
    """Return what the models of `last_feasibility` were fitted to, by their names.

    They are the numbers of their trials, and of the complete ones among these that count as failures.
    """
    if not (numbers := fitted_numbers(study)):
        return {}
    trial = _trial(study, numbers[-1])
    record = suggestion_record(trial)
    with _report_damage(study, trial.number):
        fits = {name: stored(trial.user_attrs, keys(name)[0]) for name in record.get("conditions", {})}
        return {name: (from_ranges(fit["trials"]), _penalties(record, name)) for name, fit in fits.items()}


def _penalties(record: SuggestionRecord, name: str) -> list[int]:
    """Return the numbers of the complete trials that count as failures in a model of feasibility."""
    entry = record.get("conditions", {}).get(name)
    return from_ranges(entry.get("penalties", ())) if isinstance(entry, Mapping) else []


@ignoring_underflow
def feasibility_of(study: Study, number: int) -> dict[str, Posterior]:
    """Repeat the fits of the models of failures and constraints behind a trial's suggestion.

    Returns
    -------
    dict of str to Posterior
        By the names of the models; empty if only the objective was modelled.

    Raises
    ------
    DataError, StorageError, ToolchainError, InferenceError
        As in :func:`posterior_of`.
    """
    suggestion = suggestion_record(_trial(study, number))
    names = suggestion.get("conditions")
    posteriors = {}
    for name in names if isinstance(names, Mapping) else ():
        with _report_damage(study, number):
            penalties = _penalties(suggestion, name)
        read = partial(feasibility_results, name=name, penalties=penalties, linear=was_linear(suggestion, name))
        posteriors[name] = _output_again(study, number, name, read)
    return posteriors


@ignoring_underflow
def cost_model_of(study: Study, number: int) -> Posterior | None:
    """Repeat the fit of the logarithm of the cost behind a trial's suggestion; None if costs were not modelled.

    Raises
    ------
    DataError, StorageError, ToolchainError, InferenceError
        As in :func:`posterior_of`.
    """
    recorded = suggestion_record(_trial(study, number)).get("cost")
    if not isinstance(recorded, Mapping):
        return None
    name = str(recorded["name"])
    return _output_again(study, number, fit_name(name), partial(log_costs, name=name))


def _output_again(study: Study, number: int, name: str, read: Callable[..., Results]) -> Posterior:
    """Repeat the fit of a further output, whose results are read from the trials with the recorded numbers."""
    with _report_damage(study, number):
        fit_key, start_key = keys(name)
        record = _complete(study, stored(_trial(study, number).user_attrs, fit_key), start_key)
        numbers = set(from_ranges(record.pop("trials")))
        model = recorded_model(record, within_of(study))
        results = read(study, model.encoder.space, numbers=numbers)
        observed = observe(model, results.configs, results.values, *_observation_options(record))
    return results.limited(posterior_again(record, observed))


def _complete(study: Study, reduced: Mapping[str, Any], start_key: str) -> dict[str, Any]:
    """Return a stored record of a fit with the parts that the study stores only once."""
    record = with_stored_once(study, reduced)
    record["space"] = space_of_fit(study, record)
    if set(record["start"] or ()) == {"trial"}:
        earlier = _trial(study, record["start"]["trial"])
        record["start"] = stored(earlier.user_attrs, start_key)
        if record["start"] is None:
            raise ValueError(f"trial {earlier.number} has no attribute {start_key!r}")
    return record


def _observation_options(record: Mapping[str, Any]) -> tuple[bool, bool]:
    """Return whether a recorded fit is a posterior mode, and whether it has pointwise densities."""
    arguments = record["arguments"]
    return METHODS[arguments["method"]].point_estimate, arguments.get("pointwise", True)


def _recorded_fit(study: Study, number: int, objective: int, reduced: Mapping[str, Any], start_key: str) -> RecordedFit:
    """Return a fit of a trial from its stored record; ``start_key`` is the attribute of warm starts."""
    record = _complete(study, reduced, start_key)
    ranges = record.pop("trials")
    if any(last >= len(study.get_trials(deepcopy=False)) for _, last in ranges):
        raise StorageError(
            f"trial {number} was suggested from a fit to trials {ranges!r:.200}, which study {study.study_name!r} "
            "does not have: restore a copy of it"
        )
    numbers = from_ranges(ranges)
    model = recorded_model(record, within_of(study))
    values = observations(study, model.encoder.space, numbers, objective)
    if missing := sorted(set(numbers).difference(values.numbers)):
        raise StorageError(
            f"trial {number} was suggested from a fit to trials {listed(missing)} among others, which "
            f"are missing or not finished in study {study.study_name!r}: restore a copy of it"
        )
    options = _observation_options(record)
    observed = observe(model, values.configs, values.y, *options, values.maximize, values.errors)
    if array_digest(observed.data) != record["data_sha256"]:
        raise StorageError(
            f"the configurations or values of trials {ranges} of study {study.study_name!r} have changed since "
            f"trial {number} was suggested from them: restore a copy of it"
        )
    return RecordedFit(record, observed, numbers)


@contextmanager
def _report_damage(study: Study, number: int) -> Iterator[None]:
    """Raise `StorageError` for every error in reading a record, which can be of any type if the record is damaged."""
    try:
        yield
    except StorageError:
        raise
    except Exception as error:
        raise StorageError(
            f"study {study.study_name!r} is damaged: the record of the fit of trial {number}, {type(error).__name__}: "
            f"{error}. Restore a copy of it"
        ) from error


def last_fitted(study: Study) -> int:
    """Return the number of the last trial with a fit.

    Raises
    ------
    DataError
        If no trial has a fit.
    """
    if not (numbers := fitted_numbers(study)):
        raise DataError(f"study {study.study_name!r} has no trial with a fit yet: its initial design is not finished")
    return numbers[-1]


def fitted_numbers(study: Study) -> list[int]:
    """Return the numbers of the trials with a fit."""
    return [trial.number for trial in study.get_trials(deepcopy=False) if FIT_KEY in trial.user_attrs]


def _trial(study: Study, number: int) -> FrozenTrial:
    trials = {trial.number: trial for trial in study.get_trials(deepcopy=False)}
    if number not in trials:
        raise DataError(f"study {study.study_name!r} has no trial {number!r}; it has {len(trials)}, numbered from 0")
    return trials[number]


def _check_fit(study: Study, trial: FrozenTrial) -> None:
    if isinstance(trial.user_attrs.get(FIT_KEY), Mapping):
        return
    phase = suggestion_record(trial).get("phase", "another sampler")
    fitted = ", ".join(f"{first} to {last}" for first, last in to_ranges(fitted_numbers(study)))
    known = f"trials with a fit: {fitted}" if fitted else "no trial of this study has one"
    raise DataError(f"trial {trial.number} of study {study.study_name!r} has no fit (its phase: {phase}); {known}")
