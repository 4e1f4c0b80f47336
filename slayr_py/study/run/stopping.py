"""Stop a study when the remaining gain is small."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from optuna import Study
from optuna.trial import FrozenTrial

from slayr_py.acquisition import draw_fronts, sample_regret
from slayr_py.arguments import check_number, check_probability
from slayr_py.errors import DataError, InferenceError
from slayr_py.space import FloatArray, jsonable
from slayr_py.study.declared_space import DeclaredSpace
from slayr_py.study.model.incumbent import counts_as_noisy, front_task
from slayr_py.study.model.prediction_error import inflation_of
from slayr_py.study.model.proposer import FittedModels
from slayr_py.study.model.space_model import SpaceModel
from slayr_py.study.sampler import declared_space_of
from slayr_py.study.storage.attributes import REGRET_KEY, regret_records, stopping_record
from slayr_py.study.storage.objectives import given_reference, goals_of
from slayr_py.study.storage.optuna_private import is_in_loop, partly_fixed
from slayr_py.study.storage.trials import Observations, known_infeasible
from slayr_py.threads import ignoring_underflow, one_thread

_STREAM = 3  # third word of the entropy, beside the seed of a study and a number of observations


class RegretEstimate(NamedTuple):
    """Posterior of the regret of the best configuration so far."""

    incumbent: int | None
    """Number of the trial with the best configuration; None with several objectives, whose front has many."""

    observations: int
    """Number of trials that the model was fitted to."""

    epsilon: float
    """Negligible regret, in the objective's units; with several objectives in the product of their units."""

    target: float
    """Probability at which the study may stop."""

    probability: float
    """Probability that the regret is below epsilon."""

    mean: float
    """Posterior mean of the regret, in the objective's units."""

    upper: float
    """Quantile of the regret with the probability ``target``: an epsilon for which the study could stop now.

    It is a bound under the model; the page "Stopping" of the documentation has its measured coverage."""

    inflation: float
    """Factor on the posterior standard deviations of the function, see `Regret`; the largest of several objectives."""

    stop: bool
    """Whether ``probability`` is at least ``target``."""

    def __str__(self) -> str:
        """Return the probability: ``P(regret < 0.1) = 0.83``."""
        return f"P(regret < {self.epsilon:g}) = {self.probability:.2f}"


@dataclass(frozen=True)
class Regret:
    """Stop when the best value still to be found is close enough to the best one so far.

    The regret is the difference between the function at the best evaluated configuration and its optimum. Functions
    drawn from the posterior give its distribution. The rule stops a study when P(regret < epsilon) is at least
    ``probability`` (Wilson 2024). With several objectives the regret is the hypervolume that the evaluated
    configurations lack: the volume that the front of the drawn functions dominates within the reference point, minus
    the volume that the same functions dominate at the evaluated configurations.

    Parameters
    ----------
    epsilon : float
        Negligible regret, in the objective's units; with several objectives a hypervolume, in the product of their
        units, as `Result.hypervolume`.
    probability : float, default 0.95
        Wanted probability, in (0, 1).

    Raises
    ------
    DataError
        If an argument is illegal.

    Notes
    -----
    Use it as ``minimize(..., stop=Regret(0.01))``, or as a callback of Optuna whose study has a `StanGPSampler` with a
    space: ``study.optimize(objective, n_trials=100, callbacks=[Regret(0.01)])``. In ask and tell `decide` returns the
    estimate, or None, and its ``stop`` tells whether the rule holds. It starts after the initial design.
    It shares the fit with the next suggestion. Each estimate is stored in the study: see `slayr_py.study.regret_table`.
    The regret refers to the latent function, without noise, at feasible configurations with the values of ``fixed=``.
    If the objective is exact, evaluated configurations leave none.

    The standard deviations of the drawn functions are multiplied by the root mean squared standardised error of the
    suggestions' predictions, if it is above 1: a model that has been too certain is trusted less. The probability is
    still only as right as the model: a function with features that no evaluation has shown can have a larger regret.
    """

    epsilon: float
    probability: float = 0.95

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_number("epsilon", self.epsilon))
        probability = check_probability("probability", self.probability)
        object.__setattr__(self, "probability", probability)

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """Stop the loop of the study if the rule holds: a callback of Optuna.

        Ask and tell has no loop to stop: `decide` tells whether the rule holds.
        """
        estimate = self.decide(study)
        if estimate is not None and estimate.stop and is_in_loop(study):
            study.stop()

    def decide(self, study: Study) -> RegretEstimate | None:
        """Return the stored estimate by which this rule, or a stricter one, has stopped the study, else a new one.

        Trials that were running at a stop finish after it, and an estimate with their values may no longer hold. An
        estimate with other ``fixed=`` values or another ``reference_point`` does not count. Returns and raises what
        `estimate` does.
        """
        rule = {"epsilon": self.epsilon, "target": self.probability, "about": _about(study, _declared(study))}
        stored = stopping_record((record for _, record in regret_records(study)), rule)
        if stored is not None:
            return RegretEstimate(*(stored[name] for name in RegretEstimate._fields))
        return self.estimate(study)

    @ignoring_underflow
    def estimate(self, study: Study) -> RegretEstimate | None:
        """Estimate the regret of a study and store the estimate.

        Returns
        -------
        RegretEstimate or None
            None before the end of the initial design, without a feasible value, or if Stan fails.

        Raises
        ------
        DataError
            If the study's sampler is not a `StanGPSampler` with a space.
        ToolchainError
            If Stan cannot be run here.
        """
        declared = _declared(study)
        try:
            sampled = self._sample(study, declared)
        except InferenceError:  # the next suggestion meets the same failure and reports it
            return None
        if sampled is None:
            return None
        observed, best, inflation, regret = sampled
        probability = float(np.mean(regret < self.epsilon))
        estimate = RegretEstimate(
            best,
            len(observed.numbers),
            self.epsilon,
            self.probability,
            probability,
            float(regret.mean()),
            float(np.quantile(regret, self.probability)),
            inflation,
            probability >= self.probability,
        )
        key = f"{REGRET_KEY}:{max(observed.numbers)}:{estimate.observations}"
        record = {**estimate._asdict(), "about": _about(study, declared)}
        before = study.user_attrs.get(key, {})
        about_differs = before.get("about") != record["about"]
        same_rule = all(before.get(name) == record[name] for name in ("epsilon", "target"))
        # A stop by another rule, which is looser, is replaced only by a stop or by an estimate about something else.
        if estimate.stop or before.get("stop") is not True or about_differs or same_rule:
            study.set_user_attr(key, record)
        return estimate

    def _sample(self, study: Study, declared: DeclaredSpace) -> Sampled | None:
        with declared.next_models(study) as models:
            if models is None:
                return None
            observed, fitted = models
            stream = np.random.SeedSequence([declared.bind(study), max(observed[0].numbers), _STREAM])
            # One thread, so that the last bits do not depend on the machine.
            with one_thread():
                sample = _sample_one if len(observed) == 1 else _sample_several
                model = declared.rescaled(fitted.posterior.encoder.logarithmic)
                return sample(study, model, observed, fitted, np.random.default_rng(stream))


def _declared(study: Study) -> DeclaredSpace:
    """Return the strategy of a study's sampler, which has the model."""
    declared = declared_space_of(study)
    if declared is None:
        raise DataError(
            f"the stopping rule needs a model: the sampler of study {study.study_name!r} must be a "
            f"StanGPSampler(space), not {study.sampler}"
        )
    return declared


def _about(study: Study, declared: DeclaredSpace) -> Any:
    """Return what a regret refers to, see `REGRET_KEY`."""
    reference = declared.options.reference_point
    point = None if reference is None else given_reference(reference, goals_of(study)).tolist()
    return jsonable({"fixed": {**(declared.options.fixed or {}), **partly_fixed(study)}, "reference_point": point})


class Sampled(NamedTuple):
    """Draws of the regret."""

    observed: Observations
    best: int | None
    """Number of the best trial of one objective."""
    inflation: float
    regret: FloatArray


def _sample_one(
    study: Study,
    model: SpaceModel,
    observed: Sequence[Observations],
    fitted: FittedModels,
    rng: np.random.Generator,
) -> Sampled | None:
    """Draw the regret of the best configuration; None without one."""
    first = observed[0]
    row = _incumbent(study, fitted, first, model)
    if row is None:
        return None
    feasibility = [fit.posterior for fit in fitted.feasibility]
    inflation = inflation_of(study, fitted.posterior, first)
    incumbent = fitted.posterior.train[[row]]
    encoder = fitted.posterior.encoder
    fixed = model.fixed_for_run(study)
    excluded = None
    if not counts_as_noisy(model.options, observed):
        evaluated = fitted.posterior.train[first.usable(fitted.posterior.train, fixed)]
        excluded = evaluated.concatenate(encoder.encode(known_infeasible(study, encoder.space, first.penalties)))
    regret = sample_regret(fitted.posterior, incumbent, rng, feasibility, fixed, inflation, excluded)
    return Sampled(first, first.numbers[row], inflation, regret)


def _sample_several(
    study: Study,
    model: SpaceModel,
    observed: Sequence[Observations],
    fitted: FittedModels,
    rng: np.random.Generator,
) -> Sampled | None:
    """Draw the hypervolume that the evaluated configurations lack; None without a feasible one."""
    options = model.options
    feasibility = [fit.posterior for fit in fitted.feasibility]
    fixed = model.fixed_for_run(study)
    noisy = counts_as_noisy(options, observed)
    seen = fitted.believed(observed, options, fixed)
    task = front_task(study, seen, fitted.posteriors, feasibility, fixed, noisy, options.reference_point)
    if task is None:
        return None
    return Sampled(observed[0], None, max(task.scales), draw_fronts(task, rng).gained)


def _incumbent(study: Study, fitted: FittedModels, observed: Observations, model: SpaceModel) -> int | None:
    """Return the row of the best feasible observation; noisy ones are compared by their posterior means."""
    posterior = fitted.posterior
    fixed = model.fixed_for_run(study)
    (observed,) = fitted.believed([observed], model.options, fixed)
    rows = np.flatnonzero(observed.usable(posterior.train, fixed))
    if not len(rows):
        return None
    noisy = counts_as_noisy(model.options, [observed])
    values = posterior.predict(posterior.train[rows]).centre_and_spread()[0] if noisy else observed.y[rows]
    return int(rows[np.argmax(values) if observed.maximize else np.argmin(values)])
