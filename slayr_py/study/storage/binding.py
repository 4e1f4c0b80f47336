"""Bind a sampler to a study: record it in a new study, or compare it with the record of an old one."""

from __future__ import annotations

from typing import Any

import numpy as np
from optuna import Study
from optuna.distributions import check_distribution_compatibility

from slayr_py.acquisition import prior_text
from slayr_py.errors import DataError, SpaceError
from slayr_py.space import WITHIN, Encoder, encoder_to_json, within_text
from slayr_py.study.storage.attributes import STUDY_KEY, space_difference, study_record
from slayr_py.study.storage.distributions import space_to_distributions
from slayr_py.study.storage.pieces import store_in_study


def bind_study(study: Study, encoder: Encoder, seed: int | None, options: dict[str, Any]) -> int:
    """Record space, seed and options in a new study, or check that a recorded study has this space and seed.

    Parameters
    ----------
    study : optuna.Study
    encoder : Encoder
        Of the declared space.
    seed : int or None
        None takes the seed of the study; a new study draws one.
    options : dict
        Further entries of the record: kernel, acquisition, n_initial, noisy, prior and cost.

    Returns
    -------
    int
        The seed of the study.

    Raises
    ------
    SpaceError
        If the study was started with another space or other constraints on inputs, or a new study has trials of
        another sampler whose parameters are of another kind.
    DataError
        If the study was started with another seed or prior.
    """
    record = study_record(study)
    if record is None:
        _check_parameters(study, encoder)
        drawn = seed if seed is not None else int(np.random.SeedSequence().generate_state(1)[0])
        store_in_study(study, STUDY_KEY, {**encoder_to_json(encoder), "seed": drawn, **options})
        # Two workers may start a study at the same time: the later record wins, and every trial reads it again.
        record = study_record(study)
        assert record is not None
    if difference := space_difference(record["space"], encoder.space):
        raise SpaceError(
            f"study {study.study_name!r} was started with another space: {difference}; "
            "resume it with its own space, or choose another study name and give the trials that belong to the new "
            f"space as history=, from sl.study.load(storage, {study.study_name!r}).trials"
        )
    if (started := record.get(WITHIN, [])) != encoder.within:
        raise SpaceError(
            f"study {study.study_name!r} was started within {within_text(started)}, not {within_text(encoder.within)}; "
            "resume it with its own constraints on inputs, or choose another study name and give its trials as history="
        )
    if (prior := record.get("prior")) != options["prior"]:
        before, now = (prior_text(each) if each else "no prior" for each in (prior, options["prior"]))
        raise DataError(
            f"study {study.study_name!r} was started with {before}, not {now}; resume it with its own prior=, or "
            "choose another study name and give its trials as history="
        )
    if seed is not None and record["seed"] != seed:
        raise DataError(
            f"study {study.study_name!r} was started with seed {record['seed']}, not {seed}; "
            "omit the seed to resume it, or choose another study name"
        )
    if record.get("noisy") != options["noisy"]:
        # The summaries of a loaded study follow what was declared last.
        store_in_study(study, STUDY_KEY, {**record, "noisy": options["noisy"]})
    return int(record["seed"])


def _check_parameters(study: Study, encoder: Encoder) -> None:
    """Raise `SpaceError` if the trials that a study has already leave no place for the parameters of a space.

    Optuna allows other bounds, but no other kind, scale or choices of a parameter.
    """
    declared = space_to_distributions(encoder.space)
    used = {name: each for trial in study.get_trials(deepcopy=False) for name, each in trial.distributions.items()}
    for name in declared.keys() & used.keys():
        try:
            check_distribution_compatibility(used[name], declared[name])
        except ValueError:
            raise SpaceError(
                f"study {study.study_name!r} has trials with the parameter {name!r} as {used[name]}, which is declared "
                f"as {declared[name]}: choose another study name and give the trials that belong to the space as "
                "history=study.trials_dataframe()"
            ) from None
