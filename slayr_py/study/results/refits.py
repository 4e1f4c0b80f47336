"""The fits behind a study's suggestions, run again from the records that trials keep."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from optuna import Study
from optuna.trial import FrozenTrial

from slayr_py.errors import DataError, StorageError
from slayr_py.inference import Posterior, Replay
from slayr_py.inference.observed import Observed, observe
from slayr_py.inference.records.record import digest
from slayr_py.inference.replay import posterior_again, recorded_model, replay
from slayr_py.study.storage.attributes import FIT_KEY, START_KEY, study_record, suggestion_record
from slayr_py.study.storage.trials import from_ranges, observations, to_ranges


def posterior_of(study: Study, number: int, progress: Callable[[str], None] | None = None) -> Posterior:
    """Give the posterior behind a trial's suggestion, by running its fit again.

    Parameters
    ----------
    study : optuna.Study
        Made by `minimize` or `create_study`.
    number : int
        Of the trial.
    progress : callable, optional
        Called with the name of each phase.

    Returns
    -------
    Posterior
        Of the values to be minimised: negated ones where the study maximises. The same draws to the last bit, or a
        warning that they are not: another machine or toolchain.

    Raises
    ------
    DataError
        No such trial, or none with a fit: one of the initial design, or whose fit failed.
    StorageError
        What the study keeps of the fit is damaged, or its observations are not there any more.
    ToolchainError, InferenceError
        Stan cannot be run, or fails.
    """
    record, observed = recorded_fit(study, number)
    posterior = posterior_again(record, observed, progress)
    if posterior.record["draws_sha256"] != record["draws_sha256"]:
        warnings.warn(
            f"the posterior of trial {number} is not that of its suggestion to the last bit: `slayr replay` with "
            f"--trial {number} says what differs",
            RuntimeWarning,
            stacklevel=2,
        )
    return posterior


def replay_trial(
    study: Study, number: int, progress: Callable[[str], None] | None = None
) -> tuple[dict[str, Any], Replay]:
    """Run the fit behind a trial's suggestion again and compare it with its record, which comes back too.

    Parameters and errors as of :func:`posterior_of`.
    """
    record, observed = recorded_fit(study, number)
    return record, replay(record, observed.data, progress)


def recorded_fit(study: Study, number: int) -> tuple[dict[str, Any], Observed]:
    """Give the whole record of the fit behind a trial's suggestion, and what it was fitted to.

    Raises
    ------
    DataError, StorageError
        As of :func:`posterior_of`.
    """
    stored = _stored(study, _trial(study, number))
    try:
        record: dict[str, Any] = {"space": _space(study), **stored}
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
                f"study {study.study_name!r} does not have any more, or not as finished ones: restore a copy of it"
            )
        observed = observe(model, values.configs, values.y, omit_jacobian=record["arguments"]["method"] == "map")
        if digest(observed.data) != record["data_sha256"]:
            raise StorageError(
                f"the configurations or values of trials {ranges} of study {study.study_name!r} are not those that "
                f"trial {number} was suggested from: restore a copy of it"
            )
        return record, observed
    except StorageError:
        raise
    except Exception as error:  # what a damaged record can lead to has no end
        raise StorageError(
            f"study {study.study_name!r} is damaged: the record of the fit of trial {number}, {type(error).__name__}: "
            f"{error}. Restore a copy of it"
        ) from error


def last_fitted(study: Study) -> int:
    """Give the number of the last trial with a fit.

    Raises
    ------
    DataError
        There is none.
    """
    if not (numbers := _fitted(study)):
        raise DataError(f"study {study.study_name!r} has no trial with a fit yet: the initial design comes first")
    return numbers[-1]


def _fitted(study: Study) -> list[int]:
    return [trial.number for trial in study.get_trials(deepcopy=False) if FIT_KEY in trial.user_attrs]


def _trial(study: Study, number: int) -> FrozenTrial:
    trials = {trial.number: trial for trial in study.get_trials(deepcopy=False)}
    if number not in trials:
        raise DataError(f"study {study.study_name!r} has no trial {number!r}; it has {len(trials)}, counted from 0")
    return trials[number]


def _stored(study: Study, trial: FrozenTrial) -> Mapping[str, Any]:
    stored = trial.user_attrs.get(FIT_KEY)
    if isinstance(stored, Mapping):
        return stored
    phase = suggestion_record(trial).get("phase", "another sampler's")
    fitted = ", ".join(f"{first} to {last}" for first, last in to_ranges(_fitted(study)))
    known = f"trials with one: {fitted}" if fitted else "no trial of this study has one"
    raise DataError(f"trial {trial.number} of study {study.study_name!r} has no fit (its phase: {phase}); {known}")


def _space(study: Study) -> dict[str, Any]:
    about = study_record(study)
    if about is None:
        raise KeyError("the study's own record")
    return {key: about[key] for key in ("space", "graphs") if key in about}
