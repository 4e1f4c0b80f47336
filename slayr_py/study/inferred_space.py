"""Suggest without a declared space: infer the parameters from the complete trials of a study.

Parameters that occur in the same trials form a group. The group that every trial has is the relative search space of
Optuna: one model suggests all of its parameters together. Another group, such as the parameters of one branch of the
objective, gets a model of its own, fitted to the trials that have it, when the first of its parameters is requested.
Everything else is drawn at random: parameters that no complete trial has, groups with too few trials, and requests for
another range than that of the last complete trial.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer
from ConfigSpace.hyperparameters import Hyperparameter
from optuna import Study
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import RandomSampler
from optuna.trial import FrozenTrial, TrialState

from slayr_py.study.distributions import grid_parameter, levels
from slayr_py.study.storage.attributes import FIT_KEY, store_suggestion, suggestion_record
from slayr_py.study.storage.optuna_private import contains, set_trial_attribute, stored_trial
from slayr_py.study.storage.trials import observations

_MOST_MODELS = 8  # a study whose ranges change all the time would keep a model for each of them


class Model(Protocol):
    """What suggests configurations of a space: a `StanGPSampler` with that space."""

    space: ConfigurationSpace
    n_initial: int

    def _suggest(self, study: Study, trial: FrozenTrial, seed: int) -> dict[str, Any]: ...


M = TypeVar("M", bound=Model)


class InferredSpaces(Generic[M]):
    """The models of the spaces that were inferred from the trials of a study, and what they suggest.

    Parameters
    ----------
    make : callable
        Makes the model of a space. The second argument tells whether its fits may store and use warm starts.
    seed : int
        Of all random numbers.
    """

    def __init__(self, make: Callable[[ConfigurationSpace, bool], M], seed: int) -> None:
        self.seed = seed
        self._make = make
        self._models: dict[str, M] = {}

    def model(self, distributions: Mapping[str, BaseDistribution], main: bool = True) -> M | None:
        """Return the model of these parameters; None if none of them can be modelled."""
        key = repr((sorted(distributions.items()), main))
        if key not in self._models:
            space = to_space(distributions)
            if len(space) == 0:
                return None
            if len(self._models) == _MOST_MODELS:
                del self._models[next(iter(self._models))]
            self._models[key] = self._make(space, main)
        return self._models[key]

    def relative(
        self, study: Study, trial: FrozenTrial, search_space: Mapping[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Suggest the parameters of the relative search space together."""
        config = suggestion_record(trial).get("config", {})
        if not search_space.keys() <= config.keys() and (model := self.model(search_space)) is not None:
            config = model._suggest(study, trial, self.seed)["config"]
        return {name: _within(config[name], search_space[name]) for name in search_space if name in config}

    def independent(self, study: Study, trial: FrozenTrial, name: str, distribution: BaseDistribution) -> Any:
        """Suggest the group of a parameter and return its value, or draw it at random."""
        stored = stored_trial(study, trial)
        suggested = suggestion_record(stored).get("config", {})
        if name not in suggested:
            for group in groups(study):
                if group.get(name) == distribution:
                    rest = {key: value for key, value in group.items() if key not in stored.params | suggested}
                    suggested = self._suggest_group(study, stored, rest)
        if name in suggested and contains(distribution, suggested[name]):
            return suggested[name]
        stream = np.random.SeedSequence([self.seed, trial.number, zlib.crc32(name.encode())])
        draw = RandomSampler(seed=int(stream.generate_state(1)[0]))
        return draw.sample_independent(study, trial, name, distribution)

    def _suggest_group(self, study: Study, trial: FrozenTrial, group: Mapping[str, BaseDistribution]) -> dict[str, Any]:
        """Suggest a group and add it to the suggestion of a trial; return that, or nothing if there are few trials."""
        model = self.model(group, main=False)
        if model is None or len(observations(study, model.space).numbers) < model.n_initial:
            return {}
        # Groups would otherwise have the same points of a Sobol sequence.
        own = np.random.SeedSequence([self.seed, zlib.crc32(repr(sorted(group)).encode())]).generate_state(1)
        before = suggestion_record(trial)
        fit = trial.user_attrs.get(FIT_KEY)
        config: dict[str, Any] = model._suggest(study, trial, int(own[0]))["config"]
        if before:  # the record and the fit of a trial are those of its main group
            store_suggestion(study, trial, {**before, "config": {**before["config"], **config}})
        if fit is not None:
            set_trial_attribute(study, trial, FIT_KEY, fit)
        return config


def groups(study: Study) -> list[dict[str, BaseDistribution]]:
    """Return the groups of parameters that occur in the same complete trials, with their latest distributions.

    The group that occurs in all trials with parameters is the first; it is empty if there is no such group. Parameters
    with a single value are omitted.
    """
    latest: dict[str, BaseDistribution] = {}
    occurs: dict[str, list[int]] = {}
    trials = [trial for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)) if trial.distributions]
    for trial in trials:
        latest |= trial.distributions
        for name in trial.distributions:
            occurs.setdefault(name, []).append(trial.number)
    found: dict[tuple[int, ...], dict[str, BaseDistribution]] = {tuple(trial.number for trial in trials): {}}
    for name in sorted(latest):
        if not latest[name].single():
            found.setdefault(tuple(occurs[name]), {})[name] = latest[name]
    return list(found.values())


def to_space(distributions: Mapping[str, BaseDistribution]) -> ConfigurationSpace:
    """Return a flat space of the parameters that ConfigSpace can represent; a grid becomes an integer."""
    space = ConfigurationSpace()
    for name, distribution in sorted(distributions.items()):
        try:
            space.add(_parameter(name, distribution))
        except (ValueError, TypeError):
            continue  # a range below ConfigSpace's precision, choices that are equal, choices that are objects
    return space


def _parameter(name: str, distribution: BaseDistribution) -> Hyperparameter[Any, Any]:
    if isinstance(distribution, CategoricalDistribution):
        parameter = Categorical(name, list(distribution.choices))
        levels(parameter)  # raises an error for choices that a study cannot store
        return parameter
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    if isinstance(distribution, IntDistribution) and distribution.step == 1:
        return Integer(name, (distribution.low, distribution.high), log=distribution.log)
    if distribution.step is not None:
        return grid_parameter(name, distribution)
    return Float(name, (distribution.low, distribution.high), log=distribution.log)


def _within(value: Any, distribution: BaseDistribution) -> Any:
    """Return a value within the bounds of its distribution, which ConfigSpace has rounded."""
    if isinstance(distribution, FloatDistribution):
        return min(max(value, distribution.low), distribution.high)
    return value
