"""Ask an Optuna trial for every active parameter of a space."""

from __future__ import annotations

from typing import Any

from ConfigSpace import ConfigurationSpace
from optuna import Trial
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from slayr_py.study.distributions import check_enqueued, is_active, space_to_distributions
from slayr_py.study.storage.optuna_private import enqueued_values


def suggest_all(trial: Trial, space: ConfigurationSpace) -> dict[str, Any]:
    """Suggest every active parameter of a space in a trial, parents before children; return them by name.

    Raises
    ------
    EnqueuedError
        If the trial was enqueued with a value that does not belong to the space. Nothing has been suggested then.
    """
    check_enqueued(space, enqueued_values(trial))
    params: dict[str, Any] = {}
    for name, distribution in space_to_distributions(space).items():
        if is_active(space, name, params):
            params[name] = _suggest(trial, name, distribution)
    return params


def _suggest(trial: Trial, name: str, distribution: BaseDistribution) -> Any:
    if isinstance(distribution, FloatDistribution):
        return trial.suggest_float(name, distribution.low, distribution.high, log=distribution.log)
    if isinstance(distribution, IntDistribution):
        return trial.suggest_int(name, distribution.low, distribution.high, log=distribution.log)
    assert isinstance(distribution, CategoricalDistribution)
    return trial.suggest_categorical(name, distribution.choices)
