"""Suggest without a declared space: infer the parameters from the complete trials of a study.

Parameters that occur in the same trials form a group. The group that every trial has is the relative search space of
Optuna: one model suggests all of its parameters together. Another group, such as the parameters of one branch of the
objective, gets a model of its own, fitted to the trials that have it, when the first of its parameters is requested.
Everything else is drawn at random: parameters that no complete trial has, groups with too few trials, and requests for
another range than in the last complete trial.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from optuna import Study, Trial
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.trial import FrozenTrial, TrialState
from typing_extensions import Unpack

from slayr_py.errors import DataError, listed
from slayr_py.inference import FitKeywords, Posterior
from slayr_py.space import WITHIN, Encoder, within_text
from slayr_py.study.loop import suggest_next
from slayr_py.study.model.fit_cache import Cache
from slayr_py.study.model.options import SamplerOptions
from slayr_py.study.model.session import Session
from slayr_py.study.model.space_model import SpaceModel, stan_seed_of
from slayr_py.study.model.surrogate import check_inferable
from slayr_py.study.storage.attributes import (
    FIT_KEY,
    given_values,
    store_suggestion,
    store_treatment_of_failures,
    study_record,
    suggestion_record,
)
from slayr_py.study.storage.flat_space import to_space
from slayr_py.study.storage.grids import warn_of_grids
from slayr_py.study.storage.objectives import Goal
from slayr_py.study.storage.optuna_private import contains, set_trial_attribute, stored_trial
from slayr_py.study.storage.suggesting import draw_independent
from slayr_py.study.storage.trials import observations

_MOST_MODELS = 8  # a study whose ranges change all the time would keep a model for each of them


class InferredSpace:
    """The strategy of a sampler without a space: a model for each group of parameters that trials have in common.

    Parameters
    ----------
    options : SamplerOptions
    session : Session

    Raises
    ------
    DataError
        For an unknown kernel, or an option that needs a declared space.
    """

    def __init__(self, options: SamplerOptions, session: Session) -> None:
        check_inferable(options.kernel)
        if options.initial_configs is not None:
            raise DataError("initial_configs needs a space: enqueue the configurations with study.enqueue_trial")
        if options.fixed is not None:
            raise DataError("fixed needs a space: use optuna.samplers.PartialFixedSampler({...}, StanGPSampler())")
        if options.within is not None:
            raise DataError("within needs a space: StanGPSampler(space, within=[...])")
        if options.prior is not None:
            raise DataError("prior needs a space: StanGPSampler(space, prior={...})")
        if options.default:
            raise DataError("default needs a space: enqueue the configuration with study.enqueue_trial")
        drawn = int(np.random.SeedSequence().generate_state(1)[0])
        self.seed = drawn if options.seed is None else options.seed
        self._options = options
        self._session = session
        self._models: Cache[SpaceModel | None] = Cache(_MOST_MODELS)

    def after_evaluation(self, study: Study, trial: FrozenTrial) -> None:
        """Do nothing: there are no constraints on inputs."""

    def bind(self, study: Study) -> int:
        """Return the seed; the study records nothing."""
        return self.seed

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Record whether failures are modelled; the objective asks for the values of an enqueued trial later.

        A warning names the constraints on inputs of a study that was started with a space.
        """
        if within := (study_record(study) or {}).get(WITHIN):
            started = f"study {study.study_name!r} was started within {within_text(within)}"
            text = f"{started}, which a sampler without a space ignores"
            self._session.warn(f"{text}; give StanGPSampler the space and within=", about=text)
        store_treatment_of_failures(study, ignores=self._options.failures == "ignore")

    def relative_space(self, study: Study) -> dict[str, BaseDistribution]:
        """Return the parameters that all complete trials have."""
        return groups(study)[0]

    def relative(
        self, study: Study, trial: FrozenTrial, search_space: Mapping[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Suggest the parameters of the relative search space together, given those that have values."""
        given = given_values(study, trial)
        common, *branches = groups(study)
        fixed = {name: each for name, each in common.items() if name in given}
        config = suggestion_record(trial).get("config", {})
        if search_space.keys() - config.keys() - given.keys():
            if (model := self._model({**fixed, **search_space})) is not None:
                model.warn_of_constraints(study)
                self._warn_of_branches(branches)
                record = suggest_next(model, study, trial, self.seed)
                model.warn_of_repetition(study, trial, record)
                config = record["config"]
        elif fixed and not config:
            known = {name: given[name] for name in fixed}
            store_suggestion(study, trial, {"phase": "enqueued", "config": known})
        return {name: _within(config[name], search_space[name]) for name in search_space if name in config}

    def _warn_of_branches(self, branches: Iterable[Iterable[str]]) -> None:
        """Warn once of parameters that only some trials have, which the model of the others does not see."""
        if names := sorted(name for group in branches for name in group):
            self._session.warn(
                f"only some trials have {listed(names)}: the model of the other parameters takes their effect for "
                "noise, and converges slowly. Declare the space with its conditions: StanGPSampler(space)",
                about="branches",
            )

    def independent(self, study: Study, trial: FrozenTrial, name: str, distribution: BaseDistribution) -> Any:
        """Suggest the group of a parameter and return its value, or draw it at random."""
        with self._session.lock:
            stored = stored_trial(study, trial)
            suggested = suggestion_record(stored).get("config", {})
            if name not in suggested:
                for group in groups(study):
                    if group.get(name) == distribution:
                        known = (stored.params | suggested).keys() - given_values(study, stored).keys()
                        rest = {key: value for key, value in group.items() if key not in known}
                        suggested = self._suggest_group(study, stored, rest)
            if name in suggested and contains(distribution, suggested[name]):
                return suggested[name]
            return draw_independent(study, trial, name, distribution, self.seed)

    def ask_batch(self, study: Study, q: int) -> list[Trial]:
        """Raise `DataError`: the parameters of a trial are not known before the objective asks for them."""
        raise DataError("a batch needs a declared space: StanGPSampler(space)")

    def fit_all(self, study: Study, seed: int | None, goal: Goal, **fit: Unpack[FitKeywords]) -> Posterior:
        """Fit the parameters that all complete trials have: see `StanGPSampler.fit`."""
        if (model := self._model(groups(study)[0])) is None:
            raise DataError(
                f"study {study.study_name!r} has no parameter in common to all trials, so there is nothing to fit; "
                "declare the space: StanGPSampler(space)"
            )
        warn_of_grids(model.space)
        return model.fit(study, stan_seed_of(self.seed) if seed is None else seed, goal, **fit)

    def _model(self, distributions: Mapping[str, BaseDistribution], main: bool = True) -> SpaceModel | None:
        """Return the model of these parameters; None if none of them can be modelled.

        Only fits of the main group store and use warm starts.
        """
        key = repr((sorted(distributions.items()), main))
        return self._models.get(key, lambda: self._new_model(distributions, main))

    def _new_model(self, distributions: Mapping[str, BaseDistribution], main: bool) -> SpaceModel | None:
        space = to_space(distributions)
        if len(space) == 0:
            return None
        options = replace(self._options, warm_starts=self._options.warm_starts and main)
        return SpaceModel(Encoder(space), options, self._session)

    def _suggest_group(self, study: Study, trial: FrozenTrial, group: Mapping[str, BaseDistribution]) -> dict[str, Any]:
        """Suggest a group and add it to the suggestion of a trial; return that, or nothing if there are few trials."""
        model = self._model(group, main=False)
        if model is None:
            return {}
        observed = observations(study, model.space)
        if len(observed.numbers) + len(observed.penalties) < model.design.size:
            return {}
        # Groups would otherwise have the same points of a Sobol sequence.
        stream = np.random.SeedSequence([self.seed, zlib.crc32(repr(sorted(group)).encode())])
        before = suggestion_record(trial)
        fits = {key: value for key, value in trial.user_attrs.items() if key.startswith(FIT_KEY)}
        seed = int(stream.generate_state(1)[0])
        config: dict[str, Any] = suggest_next(model, study, trial, seed)["config"]
        if before:  # the record and the fit of a trial belong to its main group
            store_suggestion(study, trial, {**before, "config": {**before["config"], **config}})
        for key, fit in fits.items():
            set_trial_attribute(study, trial, key, fit)
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
    by_trials: dict[tuple[int, ...], dict[str, BaseDistribution]] = {tuple(trial.number for trial in trials): {}}
    for name in sorted(latest):
        if not latest[name].single():
            by_trials.setdefault(tuple(occurs[name]), {})[name] = latest[name]
    return list(by_trials.values())


def _within(value: Any, distribution: BaseDistribution) -> Any:
    """Return a value within the bounds of its distribution, which ConfigSpace has rounded."""
    if isinstance(distribution, FloatDistribution):
        return min(max(value, distribution.low), distribution.high)
    return value
