"""What the trials of a study are to a model: observed, pending, or not to be suggested again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace
from optuna import Study
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from slayr_py.space.dimension import FloatArray
from slayr_py.study.distributions import to_configuration, to_params
from slayr_py.study.storage.attributes import suggestion_record


class Observations(NamedTuple):
    """The finished trials a model can learn from, in the order of their numbers."""

    numbers: list[int]
    """Of the n trials."""

    configs: list[Configuration]
    """n configurations."""

    y: FloatArray
    """Shape (n,): values, negated where the study maximises, so that less is better."""


def observations(study: Study, space: ConfigurationSpace, numbers: Iterable[int] | None = None) -> Observations:
    """Give the trials to fit: complete, finite, configurations of the space, and among ``numbers`` where given."""
    wanted = None if numbers is None else set(numbers)
    sign = -1.0 if study.direction == StudyDirection.MAXIMIZE else 1.0
    found: list[tuple[int, Configuration, float]] = []
    for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        config = given_config(trial, space)
        if config is None or trial.value is None or not np.isfinite(trial.value):
            continue
        if wanted is None or trial.number in wanted:
            found.append((trial.number, config, sign * trial.value))
    return Observations(
        [number for number, _, _ in found],
        [config for _, config, _ in found],
        np.array([y for _, _, y in found], dtype=np.float64),
    )


def pending(
    study: Study, space: ConfigurationSpace, current: FrozenTrial, design: Sequence[Configuration] = ()
) -> list[Configuration]:
    """Give the configurations of running trials but the current one; one that has none yet will get its design's."""
    configs = []
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        if trial.number != current.number:
            own = given_config(trial, space)
            configs.append(design[trial.number] if own is None and trial.number < len(design) else own)
    return [config for config in configs if config is not None]


def excluded(study: Study, space: ConfigurationSpace, repeatable: Iterable[Configuration] = ()) -> list[Configuration]:
    """Give the configurations that shall not be suggested again: all that were tried but the repeatable ones."""
    states = (TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED)
    tried = [given_config(trial, space) for trial in study.get_trials(deepcopy=False, states=states)]
    again = {repr(to_params(config)) for config in repeatable}
    return [config for config in tried if config is not None and repr(to_params(config)) not in again]


def given_config(trial: FrozenTrial, space: ConfigurationSpace) -> Configuration | None:
    """Give the configuration that a trial has or was given, or None if it is none of the space."""
    # A trial that has not suggested all of its parameters yet, or never will, still stands for what it was given.
    config = to_configuration(space, trial.params) if trial.params else None
    if config is not None:
        return config
    suggested = suggestion_record(trial).get("config")
    return to_configuration(space, {**suggested, **trial.params}) if suggested else None


def to_ranges(numbers: Iterable[int]) -> list[list[int]]:
    """Write trial numbers as ranges, first and last: nearly always all of a study's are meant."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ranges


def from_ranges(ranges: Iterable[Iterable[int]]) -> list[int]:
    """Read what :func:`to_ranges` wrote."""
    return [number for first, last in ranges for number in range(first, last + 1)]
