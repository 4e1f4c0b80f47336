"""The initial design of a space, and space-filling points for a study that has nothing to fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from ConfigSpace import Configuration
from optuna import Study
from optuna.trial import FrozenTrial

from slayr_py.acquisition import OptimumPrior, enumeration
from slayr_py.errors import SpaceError
from slayr_py.inference import as_stan_seed
from slayr_py.space import Encoder, Fixed
from slayr_py.study.model.exhaustion import avoided
from slayr_py.study.model.feasibility import Failures
from slayr_py.study.storage.attributes import is_history
from slayr_py.study.storage.distributions import to_params
from slayr_py.study.storage.reading import reading_once, trials_of
from slayr_py.study.storage.trials import pending, trial_configuration

_OF_PRIOR = 4  # of so many points, one is drawn from a prior: more would cost much if it is wrong
_FILLING = 64  # size of the Sobol sequence in which to look for a new point


def default_configuration(encoder: Encoder, fixed: Fixed | None) -> Configuration:
    """Return ConfigSpace's default configuration with the fixed values.

    Raises
    ------
    SpaceError
        If it violates a constraint on inputs, or is forbidden with the fixed values.
    """
    default = encoder.space.get_default_configuration()
    if fixed is None:
        encoded = encoder.encode([default])
    else:
        there = encoder.encode([default])
        genotype = np.where(there.active, there.unit_values, fixed.example)
        encoded, allowed = encoder.unconstrained.resolve(genotype, fixed)
        if not allowed[0]:
            raise SpaceError(
                f"default=True, but the default configuration is illegal with the fixed values {dict(fixed.values)}; "
                "leave default= out, or give initial_configs="
            )
    if broken := encoder.broken(encoded)[0]:
        raise SpaceError(
            f"default=True, but of the default configuration {broken}; change the defaults of the space, or leave "
            "default= out"
        )
    return encoder.decode(encoded)[0]


@dataclass(frozen=True)
class Design:
    """The configurations that a study evaluates before it fits a model.

    Attributes
    ----------
    encoder : Encoder
    size : int
        Number of points.
    fixed : Fixed, optional
        Parameters that keep their values.
    given : list of Configuration, optional
        The user's design, which replaces the Sobol design.
    noisy : bool
        Whether a configuration may be evaluated again.
    failures : {"learn", "ignore"}
    default : Configuration, optional
        The configuration to evaluate first; the given design starts with it.
    prior : OptimumPrior, optional
        The belief from which a quarter of the points of the Sobol design are drawn, the first ones.
    """

    encoder: Encoder
    size: int
    fixed: Fixed | None
    given: list[Configuration] | None
    noisy: bool
    failures: Failures = "learn"
    default: Configuration | None = None
    prior: OptimumPrior | None = None
    _points: dict[int, list[Configuration]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def points(self, seed: int) -> list[Configuration]:
        """Return the design of a study with this seed, without repetitions."""
        if self.given is not None:
            return self.given
        if seed not in self._points:
            points = [] if self.default is None else [self.default]
            if self.prior is not None:
                wanted = max(1, self.size // _OF_PRIOR)
                points += self.prior.design(min(wanted, self.size - len(points)), seed, self.fixed)
            points += self.encoder.sobol(self.size - len(points), seed, self.fixed)
            self._points[seed] = list({repr(to_params(point)): point for point in points}.values())
        return self._points[seed]

    def with_history(self, study: Study, seed: int) -> list[Configuration]:
        """Return the configurations of the first trials by number, with the past experiments among them.

        Past experiments take the numbers of points of the Sobol design, which is that much shorter. They delay the
        initial configurations of the user, all of which are evaluated, and the default configuration.
        """
        points = self.points(seed)
        delayed = points[: self.default is not None] if self.given is None else points
        if not delayed:
            return points
        configs = delayed.copy()
        for trial in filter(is_history, trials_of(study)):
            past = trial_configuration(trial, self.encoder.space)
            if trial.number < len(configs) and past is not None:
                configs.insert(trial.number, past)
        return configs + points[len(configs) :]

    def evaluate_at(
        self,
        study: Study,
        trial: FrozenTrial,
        point: Configuration,
        stream: np.random.SeedSequence,
        fixed: Fixed | None,
    ) -> dict[str, Any]:
        """Return the active parameters of a point of the design, or of a new point if that one cannot be used.

        A point cannot be used if it is illegal with the fixed values of the trial. A point of the Sobol design cannot
        be used either if it was evaluated before, for example because the user had enqueued it.
        """
        config = self._with_context(point, fixed)
        if config is None or (self.given is None and config in self.unavailable(study, trial, fixed)):
            return self.fill(study, trial, stream, fixed)
        return config

    def fill(
        self, study: Study, trial: FrozenTrial, stream: np.random.SeedSequence, fixed: Fixed | None
    ) -> dict[str, Any]:
        """Return the active parameters of the first new point of another Sobol sequence.

        If it has none, a small discrete space is searched for one. Without any, the first point is repeated.
        """
        try:
            points = self.encoder.sobol(_FILLING, as_stan_seed(stream), fixed)
        except SpaceError:  # forbidden clauses leave too few points
            points = self.encoder.sobol(1, as_stan_seed(stream), fixed)
        unavailable = {frozenset(config.items()) for config in self.unavailable(study, trial, fixed)}
        configs = map(to_params, chain(points, self._enumerated(fixed)))
        new = (config for config in configs if frozenset(config.items()) not in unavailable)
        return next(new, to_params(points[0]))

    def _enumerated(self, fixed: Fixed | None) -> Iterator[Configuration]:
        """Yield all configurations of a small discrete space, once they are asked for."""
        if (genotypes := enumeration(self.encoder, fixed)) is not None:
            encoded, allowed = self.encoder.resolve(genotypes, fixed)
            yield from self.encoder.decode(encoded[allowed])

    def unavailable(self, study: Study, trial: FrozenTrial, fixed: Fixed | None) -> list[dict[str, Any]]:
        """Return the configurations of running trials and, unless the objective is noisy, those to be avoided."""
        with reading_once(study):
            running = pending(study, self.encoder.space, trial)
            tried = [] if self.noisy else avoided(study, self.encoder, fixed, self.failures, running)
        return [to_params(config) for config in (*running, *tried)]

    def _with_context(self, point: Configuration, fixed: Fixed | None) -> dict[str, Any] | None:
        """Return a point of the design with the fixed values of a trial, or None if it would be illegal."""
        if fixed is self.fixed or fixed is None:
            return to_params(point)
        there = self.encoder.encode([point])
        genotype = np.where(there.active, there.unit_values, fixed.example)
        encoded, allowed = self.encoder.resolve(genotype, fixed)
        return to_params(self.encoder.decode(encoded)[0]) if allowed[0] else None
