"""Repeat the fits behind a study's suggestions from the records of its trials."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from optuna import Study
from optuna.trial import FrozenTrial

from slayr_py.errors import DataError, StorageError
from slayr_py.inference import Posterior, Replay
from slayr_py.inference.observed import Observed, observe
from slayr_py.inference.records.record import data_digest
from slayr_py.inference.replay import posterior_again, recorded_model, replay
from slayr_py.study.storage.attributes import FIT_KEY, START_KEY, study_record, suggestion_record
from slayr_py.study.storage.fit_records import stored_kernel
from slayr_py.study.storage.trials import from_ranges, observations, to_ranges


def posterior_of(study: Study, number: int, progress: Callable[[str], None] | None = None) -> Posterior:
    """Repeat the fit behind a trial's suggestion and return its posterior.

    Parameters
    ----------
    study : optuna.Study
        Created by `minimize` or `create_study`.
    number : int
        Number of the trial.
    progress : callable, optional
        Called with the name of each phase.

    Returns
    -------
    Posterior
        In the user's units and direction. If its draws are not bit-identical to the
        original ones, as on another machine or with another toolchain, a warning is issued.

    Raises
    ------
    DataError
        If there is no such trial, or it has no fit: it is in the initial design, or its fit failed.
    StorageError
        If the stored record of the fit is damaged, or its observations are missing.
    ToolchainError, InferenceError
        If Stan cannot be run, or fails.
    """
    record, observed = recorded_fit(study, number)
    posterior = posterior_again(record, observed, progress)
    if posterior.record["draws_sha256"] != record["draws_sha256"]:
        warnings.warn(
            f"the posterior of trial {number} is not bit-identical to that of its suggestion: `slayr replay` with "
            f"--trial {number} shows the differences",
            RuntimeWarning,
            stacklevel=2,
        )
    return posterior


def replay_trial(
    study: Study, number: int, progress: Callable[[str], None] | None = None
) -> tuple[dict[str, Any], Replay]:
    """Repeat the fit behind a trial's suggestion; return its record and the comparison with it.

    Parameters and errors as in :func:`posterior_of`.
    """
    record, observed = recorded_fit(study, number)
    return record, replay(record, observed.data, progress)


def recorded_fit(study: Study, number: int) -> tuple[dict[str, Any], Observed]:
    """Return the complete record of the fit behind a trial's suggestion, and its observations.

    Raises
    ------
    DataError, StorageError
        As in :func:`posterior_of`.
    """
    reduced = _fit_record(study, _trial(study, number))
    try:
        record = dict(reduced) if "space" in reduced else {"space": _space(study), **reduced}
        record["kernel"] = stored_kernel(study, record["kernel"])
        if set(record["start"] or ()) == {"trial"}:
            record["start"] = _trial(study, record["start"]["trial"]).user_attrs[START_KEY]
        ranges = record.pop("trials")
        if any(last >= len(study.get_trials(deepcopy=False)) for _, last in ranges):
            raise StorageError(
                f"trial {number} was suggested from a fit to trials {ranges!r:.200}, which study {study.study_name!r} "
                "does not have: restore a copy of it"
            )
        numbers = from_ranges(ranges)
        model = recorded_model(record)
        values = observations(study, model.encoder.space, numbers)
        if missing := sorted(set(numbers).difference(values.numbers)):
            raise StorageError(
                f"trial {number} was suggested from a fit to trials {', '.join(map(str, missing))} among others, which "
                f"are missing or not finished in study {study.study_name!r}: restore a copy of it"
            )
        arguments = record["arguments"]
        observed = observe(
            model,
            values.configs,
            values.y,
            arguments["method"] == "map",
            arguments.get("pointwise", True),
            values.maximize,
            values.errors,
        )
        if data_digest(observed.data, record["format"]) != record["data_sha256"]:
            raise StorageError(
                f"the configurations or values of trials {ranges} of study {study.study_name!r} have changed since "
                f"trial {number} was suggested from them: restore a copy of it"
            )
        return record, observed
    except StorageError:
        raise
    except Exception as error:  # a damaged record can raise any type of error
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


def _fit_record(study: Study, trial: FrozenTrial) -> Mapping[str, Any]:
    record = trial.user_attrs.get(FIT_KEY)
    if isinstance(record, Mapping):
        return record
    phase = suggestion_record(trial).get("phase", "another sampler")
    fitted = ", ".join(f"{first} to {last}" for first, last in to_ranges(fitted_numbers(study)))
    known = f"trials with a fit: {fitted}" if fitted else "no trial of this study has one"
    raise DataError(f"trial {trial.number} of study {study.study_name!r} has no fit (its phase: {phase}); {known}")


def _space(study: Study) -> dict[str, Any]:
    about = study_record(study)
    if about is None:
        raise KeyError("the study's own record")
    return {key: about[key] for key in ("space", "graphs") if key in about}
