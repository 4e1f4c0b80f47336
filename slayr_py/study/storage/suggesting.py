"""Ask an Optuna trial for every active parameter of a space, and draw single parameters at random."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace
from optuna import Study, Trial
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import RandomSampler
from optuna.trial import FrozenTrial, TrialState

from slayr_py.errors import EnqueuedError, SpaceError
from slayr_py.space import Encoder, Fixed, is_active, without_inactive
from slayr_py.study.storage.attributes import set_failure
from slayr_py.study.storage.distributions import plain_value, space_to_distributions, to_configuration
from slayr_py.study.storage.grids import as_declared
from slayr_py.study.storage.optuna_private import enqueued_values
from slayr_py.study.storage.requests import check_enqueued


def suggest_all(trial: Trial, space: ConfigurationSpace, encoder: Encoder | None = None) -> dict[str, Any]:
    """Suggest every active parameter of a space in a trial, parents before children; return them by name.

    Raises
    ------
    EnqueuedError
        If the trial was enqueued with a value that does not belong to the space, or with values that no configuration
        of the encoder has together. Nothing has been suggested then.
    """
    enqueued = enqueued_values(trial)
    check_enqueued(space, enqueued)
    if encoder is not None and enqueued and not (encoder.region is None and to_configuration(space, enqueued)):
        try:
            fix_given(encoder, enqueued, "enqueued: ")
        except SpaceError as error:
            raise EnqueuedError(str(error)) from None
    params: dict[str, Any] = {}
    for name, distribution in space_to_distributions(space).items():
        if is_active(space, name, params):
            params[name] = plain_value(distribution, _suggest(trial, name, distribution))
    return params


def fix_given(encoder: Encoder, given: Mapping[str, Any], where: str = "") -> Fixed | None:
    """Return the fixed values of a trial that has been given values; None if none of them is to be modelled.

    Values of parameters that are not modelled, or inactive with the other values, are ignored.

    Raises
    ------
    SpaceError
        For an illegal value, or values that no configuration has together.
    """
    known = {name: value for name, value in given.items() if name in encoder.names}
    try:
        known = as_declared(encoder.space, without_inactive(encoder.space, known))
    except (ValueError, TypeError) as error:
        raise SpaceError(f"{where}{error}") from None
    return encoder.fix(known, where) if known else None


def suggest_or_fail(study: Study, trial: Trial, space: ConfigurationSpace, encoder: Encoder | None) -> None:
    """Suggest every active parameter as `suggest_all`; a trial that was enqueued wrongly fails.

    Raises
    ------
    EnqueuedError
        As in `suggest_all`, after the trial has failed.
    """
    try:
        suggest_all(trial, space, encoder)
    except EnqueuedError as error:
        set_failure(trial, str(error))
        study.tell(trial, state=TrialState.FAIL)
        raise


def _suggest(trial: Trial, name: str, distribution: BaseDistribution) -> Any:
    if isinstance(distribution, FloatDistribution):
        return trial.suggest_float(name, distribution.low, distribution.high, log=distribution.log)
    if isinstance(distribution, IntDistribution):
        return trial.suggest_int(name, distribution.low, distribution.high, log=distribution.log)
    assert isinstance(distribution, CategoricalDistribution)
    return trial.suggest_categorical(name, distribution.choices)


def draw_independent(study: Study, trial: FrozenTrial, name: str, distribution: BaseDistribution, seed: int) -> Any:
    """Draw the value of a parameter at random, from the stream of a study's seed, a trial and the parameter."""
    stream = np.random.SeedSequence([seed, trial.number, zlib.crc32(name.encode())])
    draw = RandomSampler(seed=int(stream.generate_state(1)[0]))
    return draw.sample_independent(study, trial, name, distribution)
