"""Sort the trials of a study for a model: observed, pending, or not to be suggested again."""

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
    """The finished trials that a model is fitted to, in the order of their numbers."""

    numbers: list[int]
    """Numbers of the n trials."""

    configs: list[Configuration]
    """n configurations."""

    y: FloatArray
    """Shape (n,): values in the user's units."""

    maximize: bool
    """Whether larger values are better."""

    @property
    def best(self) -> float:
        """Return the best value."""
        return float(self.y.max() if self.maximize else self.y.min())


def observations(study: Study, space: ConfigurationSpace, numbers: Iterable[int] | None = None) -> Observations:
    """Return the complete trials with a finite value and a configuration of the space, restricted to ``numbers``."""
    wanted = None if numbers is None else set(numbers)
    found: list[tuple[int, Configuration, float]] = []
    for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        config = trial_configuration(trial, space)
        if config is None or trial.value is None or not np.isfinite(trial.value):
            continue
        if wanted is None or trial.number in wanted:
            found.append((trial.number, config, trial.value))
    return Observations(
        [number for number, _, _ in found],
        [config for _, config, _ in found],
        np.array([y for _, _, y in found], dtype=np.float64),
        study.direction == StudyDirection.MAXIMIZE,
    )


def pending(
    study: Study, space: ConfigurationSpace, current: FrozenTrial, design: Sequence[Configuration] = ()
) -> list[Configuration]:
    """Return the configurations of the other running trials; one without a suggestion yet counts with its design's."""
    configs = []
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        if trial.number != current.number:
            own = trial_configuration(trial, space)
            configs.append(design[trial.number] if own is None and trial.number < len(design) else own)
    return [config for config in configs if config is not None]


def excluded(study: Study, space: ConfigurationSpace, repeatable: Iterable[Configuration] = ()) -> list[Configuration]:
    """Return the configurations of finished trials, except the repeatable ones: they are not suggested again."""
    states = (TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED)
    tried = [trial_configuration(trial, space) for trial in study.get_trials(deepcopy=False, states=states)]
    again = {repr(to_params(config)) for config in repeatable}
    return [config for config in tried if config is not None and repr(to_params(config)) not in again]


def trial_configuration(trial: FrozenTrial, space: ConfigurationSpace) -> Configuration | None:
    """Return the configuration of a trial, or None if it is not one of the space."""
    config = to_configuration(space, trial.params) if trial.params else None
    if config is not None:
        return config
    # A trial that has not asked for all of its parameters, and may never do so, has the suggested configuration.
    suggested = suggestion_record(trial).get("config")
    return to_configuration(space, {**suggested, **trial.params}) if suggested else None


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
    """Return the trial numbers in the ranges of :func:`to_ranges`."""
    return [number for first, last in ranges for number in range(first, last + 1)]
