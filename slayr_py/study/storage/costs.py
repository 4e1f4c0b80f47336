"""Costs of trials: the user attribute with the name of the cost, a positive number."""

from __future__ import annotations

import math
from collections.abc import Container
from typing import Any, NamedTuple

import numpy as np
from ConfigSpace import ConfigurationSpace
from optuna import Study
from optuna.trial import FrozenTrial, TrialState

from slayr_py.arguments import real_or_nan
from slayr_py.errors import DataError
from slayr_py.space import FloatArray
from slayr_py.study.storage.attributes import ERROR_KEY, is_history, is_ours, study_record, suggestion_record
from slayr_py.study.storage.columns import OF_TRIALS, OF_TRIALS_PREFIXES
from slayr_py.study.storage.objectives import finite_values
from slayr_py.study.storage.reading import trials_of
from slayr_py.study.storage.trials import Results, results_of, trial_configuration, was_evaluated

SECONDS = "seconds"
"""Name of the cost that the loop measures: the duration of the evaluation."""


def check_cost_name(name: object, parameters: Container[str] = ()) -> None:
    """Check the name of a cost.

    Raises
    ------
    DataError
        If it is not text, or the name of a parameter, of another attribute or of a column of tables of trials.
    """
    if not isinstance(name, str) or not name.strip():
        raise DataError(
            f"cost is {name!r:.80}; give 'seconds' for the measured duration, or the name of a cost that the objective "
            "returns, as in return value, {'euros': 3.5} with cost='euros'"
        )
    if name in parameters:
        raise DataError(f"cost {name!r} is a parameter; return the cost of an evaluation under another name")
    if name == ERROR_KEY or is_ours(name):
        raise DataError(f"cost {name!r} is the name of another attribute of trials; choose another name")
    if name in OF_TRIALS or name.startswith(OF_TRIALS_PREFIXES):
        raise DataError(
            f"cost {name!r} is the name of a column of result.trials; return the cost of an evaluation under another "
            "name"
        )


def as_cost(value: object) -> float | None:
    """Return a cost as a float; None if it is not a finite positive number."""
    cost = real_or_nan(value)
    return cost if 0 < cost < math.inf else None


def cost_of(trial: FrozenTrial, name: str) -> float | None:
    """Return the cost of a trial; None if it has none that can be used."""
    return as_cost(trial.user_attrs.get(name))


def cost_name(study: Study) -> str | None:
    """Return the name of the cost of a study: of its last suggestion with one, or of its start; None without costs."""
    for trial in reversed(trials_of(study)):
        record = suggestion_record(trial).get("cost")
        if isinstance(record, dict) and isinstance(record.get("name"), str):
            return str(record["name"])
    name = (study_record(study) or {}).get("cost")
    return name if isinstance(name, str) else None


class Spent(NamedTuple):
    """Cost of the trials of a study, past experiments excepted."""

    total: float
    trials: int
    """Number of finished trials with a cost."""

    unknown: list[int]
    """Numbers of the finished trials without one."""

    def describe(self, name: str) -> str:
        """Return the total as text."""
        unknown = f"; unknown for {len(self.unknown)} trials" if self.unknown else ""
        return f"{self.total:.6g} {name} in {self.trials} trials{unknown}"


def spent(study: Study, name: str) -> Spent:
    """Return what the trials of a study have cost: complete, failed and pruned ones."""
    costs = costs_of_trials(study, name)
    unknown = [number for number, cost in costs.items() if math.isnan(cost)]
    known = [cost for cost in costs.values() if not math.isnan(cost)]
    return Spent(math.fsum(known), len(known), unknown)


def without_cost(study: Study, name: str) -> list[int]:
    """Return the numbers of the complete trials without a cost that can be used; without past experiments."""
    complete = trials_of(study, (TrialState.COMPLETE,))
    return [trial.number for trial in complete if cost_of(trial, name) is None and not is_history(trial)]


def costs_of_trials(study: Study, name: str) -> dict[int, float]:
    """Return the cost of each finished trial by its number, NaN if it has none; without past experiments."""
    finished = [trial for trial in trials_of(study) if trial.state.is_finished()]
    known = {trial.number: cost_of(trial, name) for trial in finished if not is_history(trial)}
    return {number: math.nan if cost is None else cost for number, cost in known.items()}


def log_costs(study: Study, space: ConfigurationSpace, name: str, numbers: Container[int] | None = None) -> Results:
    """Return the logarithms of the costs of trials whose whole evaluation has a cost, restricted to ``numbers``.

    Those are complete trials, and trials that failed because of their configuration. A pruned trial has only the cost
    of a part of its steps.
    """
    known: list[tuple[int, Any, float]] = []
    for trial in trials_of(study, (TrialState.COMPLETE, TrialState.FAIL)):
        if finite_values(trial) is None and not was_evaluated(trial):
            continue
        config = trial_configuration(trial, space)
        cost = cost_of(trial, name)
        if config is not None and cost is not None and (numbers is None or trial.number in numbers):
            known.append((trial.number, config, math.log(cost)))
    return results_of(known)


def cumulative(costs: dict[int, float], numbers: list[int]) -> FloatArray:
    """Return the cost (k,) that was spent up to and with each of these trials; an unknown cost counts as 0."""
    order = sorted(costs)
    totals = dict(zip(order, np.nancumsum([costs[number] for number in order]), strict=True))
    return np.asarray([totals[number] for number in numbers], dtype=np.float64)
