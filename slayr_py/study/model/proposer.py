"""Fit the models behind a suggestion: of the objectives, of failures and of constraints."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from optuna import Study
from optuna.trial import FrozenTrial

from slayr_py.acquisition import OptimumPrior
from slayr_py.inference import METHODS, Diagnostics, FitOptions, GaussianProcess, Posterior, worst_of
from slayr_py.kernels import NOISE
from slayr_py.space import Fixed
from slayr_py.study.model.costs import CostModel
from slayr_py.study.model.feasibility import FeasibilityModels, believed
from slayr_py.study.model.fit_cache import FitCache
from slayr_py.study.model.loop_fits import CompletedFit, LoopFits
from slayr_py.study.model.options import LARGEST_NOISE, NOISELESS, SamplerOptions
from slayr_py.study.model.output_fits import OutputFit, OutputFits
from slayr_py.study.model.session import Phase, Session
from slayr_py.study.storage.fit_records import store_fit, store_fits_of_objectives
from slayr_py.study.storage.objectives import Goal, goals_of
from slayr_py.study.storage.trials import Observations, far_values_text

NUTS_LIMIT = 1000
"""Number of observations above which the loop fits the posterior mode instead of sampling. A NUTS fit takes minutes
there, its time grows with the cube of their number, and the hyperparameters have little uncertainty left."""


class ObjectiveFit(NamedTuple):
    """The model of one objective behind a suggestion."""

    goal: Goal
    model: LoopFits
    fits: list[CompletedFit]
    posterior: Posterior

    stream: np.random.SeedSequence
    """Random numbers of the fits."""

    def extended(self, first: int, why: str) -> ObjectiveFit | None:
        """Fit again with four times the draws, ``first`` of a first fit; None if more draws would not help."""
        plan = self.model.extend(self.fits, self.posterior, first, why)
        if plan is None:
            return None
        fits, posterior = self.model.fit(plan, self.stream.spawn(1)[0])
        return self._replace(fits=fits, posterior=posterior)


class FittedModels(NamedTuple):
    """The models behind a suggestion."""

    objectives: tuple[ObjectiveFit, ...]

    feasibility: list[OutputFit]
    """Models of failures and constraints."""

    cost: OutputFit | None = None
    """Model of the logarithm of the cost."""

    @property
    def outputs(self) -> list[OutputFit]:
        """Return the models of further outputs."""
        return self.feasibility if self.cost is None else [*self.feasibility, self.cost]

    @property
    def posterior(self) -> Posterior:
        """Posterior of the only or the first objective."""
        return self.objectives[0].posterior

    @property
    def posteriors(self) -> list[Posterior]:
        """Posteriors of the objectives."""
        return [fit.posterior for fit in self.objectives]

    def check(self) -> Diagnostics:
        """Return the worst diagnostics of the objectives."""
        if len(self.objectives) == 1:
            return self.posterior.check()
        return worst_of({fit.goal.name: fit.posterior.check() for fit in self.objectives})

    def believed(
        self, observed: Sequence[Observations], options: SamplerOptions, fixed: Fixed | None
    ) -> Sequence[Observations]:
        """Return the observations; of a noisy study, with those as feasible that probably are: see `believed`."""
        if not options.noisy:
            return observed
        return believed(observed, {fit.name: fit.posterior for fit in self.feasibility}, self.posterior.train, fixed)

    def store(self, study: Study, trial: FrozenTrial, warm_starts: bool) -> None:
        """Store the fits of the objectives in the trial whose suggestion uses them."""
        for fit in self.objectives:
            store_fit(study, trial, fit.posterior, fit.model.observed.numbers, warm_starts, fit.goal.fit_name)
        if len(self.objectives) > 1:
            store_fits_of_objectives(study, trial, self.objectives[0].model.observed.numbers)


@dataclass(frozen=True)
class Proposer:
    """Fit the models that a suggestion needs.

    Attributes
    ----------
    options : SamplerOptions
    feasibility : FeasibilityModels
        Fits the models of failures and constraints.
    cost : CostModel, optional
    fits : FitCache
    session : Session
    prior : OptimumPrior, optional
        The belief about the location of the optimum.
    """

    options: SamplerOptions
    feasibility: FeasibilityModels
    cost: CostModel | None
    fits: FitCache
    session: Session
    prior: OptimumPrior | None = None

    def fit(
        self,
        gp: GaussianProcess,
        study: Study,
        number: int,
        observed: Sequence[Observations],
        seed: int,
    ) -> FittedModels:
        """Fit ``gp`` to each objective, and the models of feasibility and of the cost, for trial ``number``.

        The seed of the study, ``seed``, and the last fitted trial determine the random numbers of a fit. Suggestions
        from the same trials therefore share one fit, also after the study has been resumed.

        Raises
        ------
        InferenceError
            If Stan fails.
        """
        options = self.options.fit
        n = len(observed[0].numbers)
        if n > NUTS_LIMIT and not METHODS[options.method].point_estimate:
            options = options.updated(method="map")
            self.session.warn(
                f"{n} observations are more than the {NUTS_LIMIT} for which the loop samples the "
                "hyperparameters: from now on it fits their posterior mode, in seconds instead of minutes",
                "",
            )
        self.session.report(Phase("fitting", number))
        outputs = OutputFits(self.fits, study, number, seed, self.options.warm_starts)
        feasibility = self.feasibility.fit_all(outputs, options, observed[0].penalties)
        cost = None if self.cost is None else self.cost.fit(outputs, options)
        pairs = zip(goals_of(study), observed, strict=True)
        fits = tuple(self._fit(gp, study, number, goal, values, options, seed) for goal, values in pairs)
        return FittedModels(fits, feasibility, cost)

    def _fit(
        self,
        gp: GaussianProcess,
        study: Study,
        number: int,
        goal: Goal,
        observed: Observations,
        options: FitOptions,
        seed: int,
    ) -> ObjectiveFit:
        """Fit ``gp`` to one objective."""
        warn_of_far_values(self.session, goal, observed)
        name = goal.fit_name
        entropy = [seed, max(observed.numbers) + 1, *([zlib.crc32(name.encode())] if name else [])]
        stream = np.random.SeedSequence(entropy).spawn(1)[0]
        model = LoopFits(gp.with_errors(observed.errors), study, observed, self.fits, self.session.warn, name)
        plan = model.plan(options)
        if self.options.warm_starts:
            plan = model.resume(number, plan)
        fits, posterior = model.fit(plan, stream)
        self._warn_of_noise(posterior)
        return ObjectiveFit(goal, model, fits, posterior, stream)

    def _warn_of_noise(self, posterior: Posterior) -> None:
        """Warn once if the model finds noise in an objective that was not declared noisy.

        That is the case if under all kernels 99% of the draws have more noise than the prior `NOISELESS` allows. The
        prior of noisy data gives this a probability of 95%, so that 95% of the draws would be no evidence. A point
        estimate says nothing about the others.
        """
        if self.options.noisy or NOISE.name in (self.options.priors or {}):
            return
        draws = [part.draws[NOISE.name] for part in posterior.parts if part.n_draws > 1]
        if not draws:
            return
        low = min(float(np.quantile(each, 0.01)) for each in draws)
        if low > LARGEST_NOISE:
            median = float(np.median(np.concatenate(draws)))
            past = ""
            if any(part.model.priors[NOISE.name] != NOISELESS for part in posterior.parts):
                past = (
                    ", or past experiments have other units or are of another function. For exact past experiments "
                    f"rule noise out with priors={{{NOISE.name!r}: {NOISELESS}}}"
                )
            self.session.warn(
                f"the model explains a part of the values by noise, whose standard deviation is {median:.2g} of the "
                f"values' (at least {low:.2g} with 99% probability). If evaluations of one configuration differ, "
                "declare noisy=True. Otherwise the function has details between the trials that the kernel does not "
                f"describe{past}",
                "noise",
            )


def warn_of_far_values(session: Session, goal: Goal, observed: Observations) -> None:
    """Warn once that values of an objective are far worse than all others, and what becomes of them."""
    if text := far_values_text(goal, observed):
        way_out = (
            "With failures='ignore' the model sees smaller values instead"
            if observed.penalties
            else "If such a value stands for a failure, let the objective raise an error or return NaN: the study then "
            "learns where it fails"
        )
        session.warn(f"{text}. {way_out}", about=f"far values {goal.fit_name}")
