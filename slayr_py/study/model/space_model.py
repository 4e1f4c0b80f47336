"""The model of one space: its initial design, its surrogate, and the fits and searches for suggestions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from ConfigSpace import Configuration
from optuna import Study
from optuna.trial import FrozenTrial, TrialState
from typing_extensions import Unpack

from slayr_py.acquisition import OptimumPrior
from slayr_py.errors import DataError, SpaceError, listed
from slayr_py.inference import FitKeywords, Posterior, as_stan_seed
from slayr_py.space import Encoder, Fixed, function_names
from slayr_py.study.model.costs import CostModel
from slayr_py.study.model.design import Design, default_configuration
from slayr_py.study.model.exhaustion import Everything
from slayr_py.study.model.feasibility import FeasibilityModels
from slayr_py.study.model.fit_cache import Cache, FitCache, fit_to
from slayr_py.study.model.loop_fits import LoopFits
from slayr_py.study.model.options import SamplerOptions
from slayr_py.study.model.proposal import Proposal
from slayr_py.study.model.proposer import Proposer, warn_of_far_values
from slayr_py.study.model.scales import Scales, better_scales, given_up_text, scales_text
from slayr_py.study.model.session import Phase, Session
from slayr_py.study.model.surrogate import Surrogate, surrogate_of
from slayr_py.study.storage.attributes import CONTEXT_KEY, OUTSIDE_KEY, given_values, has_history
from slayr_py.study.storage.costs import check_cost_name
from slayr_py.study.storage.objectives import Goal
from slayr_py.study.storage.optuna_private import enqueued_values, partly_fixed
from slayr_py.study.storage.reading import trials_of
from slayr_py.study.storage.suggesting import fix_given
from slayr_py.study.storage.suggestion import SuggestionRecord
from slayr_py.study.storage.trials import (
    Observations,
    has_known_error,
    is_tried,
    left_out,
    observations_of_all,
    trial_configuration,
    trials_text,
    violated_by_all,
    without_constraints,
)


class SpaceModel:
    """The model of one space, which suggests its configurations.

    Parameters
    ----------
    encoder : Encoder
        Of the space.
    options : SamplerOptions
    session : Session
        Of the sampler.
    surrogate : Surrogate, optional
        By default that of the options, which is another one for a study with past experiments.

    Attributes
    ----------
    encoder : Encoder
    space : ConfigurationSpace
    options : SamplerOptions
    fixed : Fixed or None
        Parameters that keep their values.
    prior : OptimumPrior or None
        The belief about the location of the optimum.
    design : Design
    surrogate : Surrogate
    proposer : Proposer

    Raises
    ------
    SpaceError
        For an initial configuration that does not belong to the space, a default configuration that violates a
        constraint on inputs, an illegal fixed value, or an unknown parameter or level of a prior.
    DataError
        For an unknown kernel, or one that does not fit the space, an illegal prior, or a cost with the name of a
        parameter.
    """

    def __init__(
        self, encoder: Encoder, options: SamplerOptions, session: Session, surrogate: Surrogate | None = None
    ) -> None:
        self.encoder = encoder
        self.space = encoder.space
        self.options = options
        self.session = session
        self.fixed = None if options.fixed is None else encoder.fix(options.fixed, "fixed: ")
        self.prior = None if options.prior is None else OptimumPrior.of(options.prior, encoder)
        given = None if options.initial_configs is None else self._initial_configs(options.initial_configs)
        if given is not None and options.n_initial not in (None, len(given)):
            session.warn(
                f"n_initial={options.n_initial} has no effect: initial_configs= has {len(given)} configurations",
                about="n_initial",
            )
        default = default_configuration(encoder, self.fixed) if options.default else None
        if given is not None and default is not None:
            given = [default, *(config for config in given if config != default)]
        size = options.design_size(len(encoder.names)) if given is None else len(given)
        self._size = size
        self.design = Design(encoder, size, self.fixed, given, options.noisy, options.failures, default, self.prior)
        self._given = surrogate
        if surrogate is None:
            surrogate = surrogate_of(encoder, options, options.all_priors, size, session)
        self.surrogate = surrogate
        if options.cost is not None:
            check_cost_name(options.cost, encoder.space)
        kernel = self.surrogate.first_kernel
        feasibility = FeasibilityModels(encoder, kernel, options.constraint_priors, options.failures)
        cost = None if options.cost is None else CostModel(encoder, kernel, options.cost, session)
        self.proposer = Proposer(options, feasibility, cost, FitCache(), session, self.prior)
        self._prepared = False
        self._scales: Cache[Scales] = Cache()
        self._rescaled: dict[tuple[str, ...], SpaceModel] = {}
        self._replaced: Cache[Fixed | None] = Cache()

    def _initial_configs(self, configs: Iterable[Mapping[str, Any]] | pd.DataFrame) -> list[Configuration]:
        """Return the initial configurations of the user with the fixed values, without those that these make equal."""
        rows = self.encoder.rows(configs)
        kept = {} if self.fixed is None else self.fixed.values
        given = [self.encoder.configuration({**row, **kept} if isinstance(row, Mapping) else row) for row in rows]
        for i, broken in enumerate(self.encoder.broken(self.encoder.encode(given))):
            if broken:
                raise SpaceError(f"initial configuration {i}: {broken}")
        if self.fixed is None:
            return given
        replaced = [self.fixed.differing(row) for row in rows]
        first: dict[Configuration, int] = {}
        equal = [i for i, config in enumerate(given) if replaced[first.setdefault(config, i)] != replaced[i]]
        self._warn_of_replaced(kept, replaced, equal)
        return [config for i, config in enumerate(given) if i not in equal]

    def _warn_of_replaced(
        self, kept: Mapping[str, Any], replaced: Sequence[Mapping[str, Any]], equal: Sequence[int]
    ) -> None:
        """Warn of values of initial configurations that are not evaluated, and of those that became equal."""
        shown = [f"{i} ({name}={row[name]!r})" for i, row in enumerate(replaced) for name in sorted(row)]
        if shown:
            values = ", ".join(f"{name}={value!r}" for name, value in kept.items())
            left_out = f"; left out since they equal earlier ones: {listed(equal)}" if equal else ""
            self.session.warn(
                f"fixed values ({values}) replace those of the initial configurations {listed(shown)}{left_out}",
                about="replaced",
            )

    @cached_property
    def surrogate_with_history(self) -> Surrogate:
        """The surrogate of a study with past experiments, whose noise has the default prior unless the user gives one.

        Past experiments may be noisy even if the objective is not. Unlike the loop's own evaluations they need not have
        neighbours, whose values would show the noise.
        """
        if self._given is not None:
            return self._given
        return surrogate_of(self.encoder, self.options, self.options.priors or {}, self._size, self.session)

    def surrogate_of(self, study: Study) -> Surrogate:
        """Return the surrogate of a study, with or without past experiments."""
        return self.surrogate_with_history if has_history(study) else self.surrogate

    def at_scales(self, study: Study, observed: Sequence[Observations]) -> SpaceModel:
        """Return the model with the logarithmic scales that the values so far choose, itself if these are declared.

        A surrogate that does not choose scales warns of better ones; one that was given, of a recorded fit, has those
        of the fit. ``observed`` has all trials of each objective. The programs are prepared before.
        """
        self.prepare()
        if self._given is not None:
            return self
        surrogate = self.surrogate_of(study)
        found = better_scales(study, surrogate.plain, observed, self._scales)
        if found is None:
            return self
        if not found.names:
            if found.given_up and surrogate.chooses_scales:
                self.session.warn(given_up_text(found), about=f"scales given up at {found.n}")
            return self
        if not surrogate.chooses_scales:
            self.session.warn(scales_text(found, self.encoder, None), about="scales")
            return self
        self.session.warn(scales_text(found, self.encoder, surrogate.first_kernel), about=f"scales {found.names}")
        return self.rescaled((*self.encoder.logarithmic, *found.names))

    def rescaled(self, names: Sequence[str]) -> SpaceModel:
        """Return the model with logarithmic scales of these numbers, and the same initial design."""
        encoder = self.encoder.rescaled(names)
        if encoder is self.encoder:
            return self
        if (other := self._rescaled.get(encoder.logarithmic)) is None:
            other = self._rescaled[encoder.logarithmic] = self._on(encoder)
        return other

    def _on(self, encoder: Encoder) -> SpaceModel:
        other = copy(self)
        other.encoder = encoder
        other.fixed = None if self.fixed is None else encoder.refix(self.fixed)
        other.surrogate = self.surrogate.on(encoder)
        other.surrogate_with_history = self.surrogate_with_history.on(encoder)
        feasibility = replace(self.proposer.feasibility, encoder=encoder)
        cost = None if self.proposer.cost is None else replace(self.proposer.cost, encoder=encoder)
        other.proposer = replace(self.proposer, feasibility=feasibility, cost=cost, fits=FitCache())
        return other

    def propose(
        self,
        study: Study,
        trial: FrozenTrial,
        observed: Sequence[Observations],
        before: Set[int],
        design: Sequence[Configuration],
        stream: np.random.SeedSequence,
        fixed: Fixed | None,
    ) -> Proposal:
        """Return the proposal of a trial in the making, with values fixed on any scale; see `Proposal`."""
        kept = None if fixed is None else self.encoder.refix(fixed)
        return Proposal(self.proposer, study, trial, observed, before, design, stream, kept)

    def prepare(self) -> None:
        """Find or install CmdStan and compile the programs, once.

        Raises
        ------
        ToolchainError
            If there is no compiler or no CmdStan.
        """
        if not self._prepared:
            report = self.session.report
            report(Phase("compiling", None))
            self.surrogate.prepare(lambda detail: report(Phase("compiling", None, detail=detail)))
            self._prepared = True

    def warn_of_trials(self, study: Study) -> None:
        """Warn once for every reason to leave complete trials out of the fit, and see `warn_of_constraints`."""
        for reason, numbers in left_out(study, self.space).items():
            text = f"{trials_text(numbers)} of study {study.study_name!r} {reason}: left out of the fit"
            self.session.warn(text, about=reason)
        self._warn_of_added(study)
        self.warn_of_constraints(study)

    def warn_of_constraints(self, study: Study) -> None:
        """Warn once of trials without the value of a constraint, and of constraints without a bound that never hold."""
        numbers, names = without_constraints(study)
        if numbers:
            which = "1 trial has" if len(numbers) == 1 else f"{len(numbers)} trials have"
            every = len(numbers) == len(trials_of(study, (TrialState.COMPLETE,)))
            none = ", and as no trial has all constraints, there is no best configuration" if every else ""
            self.session.warn(
                f"{which} no value of constraint {' or '.join(map(repr, names))}: the model learns from their values, "
                f"but they are never the best{none}; slayr_py.study.tell(..., constraints={{name: excess}}) stores one",
                about="constraints",
            )
        for name, smallest in violated_by_all(study).items():
            self.session.warn(
                f"no trial satisfies the constraint {name!r} so far: its smallest excess is {smallest:.3g}, and it "
                "holds where this is at most 0. Without constraints=, each number beside the value is an excess",
                about=f"violated {name}",
            )

    def _warn_of_added(self, study: Study) -> None:
        """Warn once of complete trials that violate constraints on inputs and are not marked: they cannot be any more.

        They were added to the study, told without the sampler, or suggested when a function was another one.
        """
        if self.encoder.region is None:
            return
        complete = trials_of(study, (TrialState.COMPLETE,))
        unmarked = [trial for trial in complete if OUTSIDE_KEY not in trial.user_attrs]
        unchecked = [trial for trial in unmarked if self.is_unchecked(study, trial)]
        read = [(trial.number, trial_configuration(trial, self.space)) for trial in unchecked]
        known = [(number, config) for number, config in read if config is not None]
        texts = self.encoder.outside([config for _, config in known])
        found = {number: text for (number, _), text in zip(known, texts, strict=True) if text}
        if found:
            numbers = list(found)
            first = f" (trial {numbers[0]})" * (len(found) > 1)
            one = "it" if len(found) == 1 else "they"
            changed = " or before a function was changed" * bool(function_names(self.encoder.within))
            self.session.warn(
                f"{trials_text(numbers)}, added or told without the sampler{changed}: {found[numbers[0]]}{first}, but "
                f"{one} may be the best; past experiments given as history= never are",
                about=f"added {study.study_name} {numbers}",
            )

    def is_unchecked(self, study: Study, trial: FrozenTrial) -> bool:
        """Return whether this is the first time that a trial is compared with the constraints on inputs."""
        return self.session.is_first(f"{study.study_name}, checked {trial.number}")

    def warn_of_repetition(self, study: Study, trial: FrozenTrial, record: SuggestionRecord) -> None:
        """Warn once if a suggestion repeats a configuration of an exact study, because no other is left.

        Initial configurations and fixed values of all parameters are repeated because the user wants it.
        """
        fixed = self.fixed_for_suggestion(study, trial)
        chosen = record["phase"] == "initial" and self.design.given is not None
        if chosen or self.options.noisy or not self.encoder.free(fixed).any():
            return
        others = [each for each in trials_of(study) if each.number != trial.number]
        tried = [each for each in others if is_tried(each, self.options.failures)]
        same = next((each for each in tried if each.params == record["config"]), None)
        if same is None or any(map(has_known_error, tried)):
            return
        everything = Everything(self.encoder, fixed)
        exhausted = everything.are_tried(study, self.options.failures)
        reason = f"{everything} evaluated or running" if exhausted else "no other one was found"
        self.session.warn(
            f"trial {trial.number} repeats the configuration of trial {same.number}: {reason}. End the study, or "
            "declare noisy=True if evaluations of one configuration differ",
            about="repetition",
        )

    def fit(self, study: Study, seed: int, goal: Goal, **fit: Unpack[FitKeywords]) -> Posterior:
        """Fit the model to an objective of all finished trials, with the options ``fit`` instead of the loop's.

        Raises
        ------
        DataError
            If no trial can be fitted, or an option is illegal.
        InferenceError
            If Stan fails.
        """
        options = self.options.fit.updated(pointwise=True).updated(**fit)
        every = observations_of_all(study, self.space)
        observed = every[goal.number]
        if not observed.configs:
            raise DataError(f"study {study.study_name!r} has no finished trial with a finite value: nothing to fit")
        warn_of_far_values(self.session, goal, observed)
        scaled = self.at_scales(study, every)
        gp = scaled.surrogate_of(study).latest(study, observed)
        if gp.is_stack:
            fits = LoopFits(gp, study, observed, FitCache(), self.session.warn)
            return fits.fit(fits.plan(options), np.random.SeedSequence(seed))[1]
        return fit_to(gp, observed, options, seed)

    def fixed_for_context(self, context: Mapping[str, Any]) -> Fixed:
        """Return the fixed values of a trial with a context, whose values replace the sampler's.

        Raises
        ------
        SpaceError
            For an unknown parameter, an illegal value, or values that no configuration has together.
        """
        given = self.encoder.fix(context, "context: ")
        return given if self.fixed is None else self.encoder.fix({**self.fixed.values, **given.values}, "context: ")

    def fixed_for_comparison(self, study: Study, trial: FrozenTrial) -> Fixed | None:
        """Return the fixed values of trials to compare one with: of its context, otherwise those of the run.

        The values of a `PartialFixedSampler`, which Optuna gives every trial, belong to the context.
        """
        context = trial.user_attrs.get(CONTEXT_KEY)
        if not context:
            return self.fixed_for_run(study)
        partly = {name: value for name, value in partly_fixed(study).items() if name in self.encoder.names}
        return self.fixed_for_context({**context, **partly})

    def fixed_for_run(self, study: Study) -> Fixed | None:
        """Return the fixed values of a run: of the sampler, replaced by those of a `PartialFixedSampler` around it."""
        return self._fixed_by(partly_fixed(study))

    def fixed_for_suggestion(self, study: Study, trial: FrozenTrial) -> Fixed | None:
        """Return the fixed values of a trial that is to be suggested.

        They are those of `fixed_for_comparison`; without a context, values that were enqueued replace them.
        """
        if trial.user_attrs.get(CONTEXT_KEY):
            return self.fixed_for_comparison(study, trial)
        return self._fixed_by(given_values(study, trial), enqueued_values(trial))

    def _fixed_by(self, *given: Mapping[str, Any]) -> Fixed | None:
        """Return the sampler's fixed values, replaced by the first of the given ones that a configuration has.

        Values of the sampler that cannot occur together with them are ignored, with a warning. The last results are
        kept, since it takes thousands of calls of a function among the constraints on inputs to find that it excludes
        values.
        """
        if not given[0].keys() & set(self.encoder.names):
            return self.fixed
        return self._replaced.get(repr((self.encoder.logarithmic, given)), lambda: self._replaced_by(given))

    def _replaced_by(self, given: Sequence[Mapping[str, Any]]) -> Fixed | None:
        kept = {} if self.fixed is None else dict(self.fixed.values)
        with suppress(SpaceError):
            if (fixed := fix_given(self.encoder, {**kept, **given[0]})) is not None:
                return fixed
        for values in given:
            with suppress(SpaceError):
                if (fixed := fix_given(self.encoder, values)) is not None:
                    if ignored := {name: value for name, value in kept.items() if name not in fixed.values}:
                        text = f"the fixed values {ignored} are ignored where {dict(fixed.values)} are given"
                        self.session.warn(f"{text}: no configuration has all of them", about=f"ignored {ignored}")
                    return fixed
        return self.fixed  # the given values are illegal: `suggest_all` would have failed the trial, Optuna has not


def stan_seed_of(seed: int) -> int:
    """Return the seed of the Stan run that fits all trials of a study with this seed."""
    return as_stan_seed(np.random.SeedSequence(seed))
