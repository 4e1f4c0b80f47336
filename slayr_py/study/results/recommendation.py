"""Recommend a configuration of a study: the best one evaluated, for a noisy objective by its posterior mean.

The best value of a noisy objective is partly noise: the mean value of its configuration is worse. The posterior mean is
shrunk towards the other observations. Values with known errors are noisy too. The values of an exact objective are what
they are: a model that takes a part of them for noise lacks details of the function. The same holds for the values of
constraints: of those that seem to be satisfied, the best objective belongs to one that hardly is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from ConfigSpace import ConfigurationSpace
from optuna import Study
from optuna.trial import FrozenTrial
from typing_extensions import Unpack

from slayr_py.errors import DataError
from slayr_py.inference import METHODS, FitKeywords, GaussianProcess, Method, Posterior, recorded_model
from slayr_py.space import Encoded, Encoder, Fixed
from slayr_py.study.inferred_space import InferredSpace
from slayr_py.study.model.feasibility import Failures, believed, probability_of_constraints
from slayr_py.study.model.fit_cache import FitCache
from slayr_py.study.model.options import LOOP_OPTIONS, SamplerOptions
from slayr_py.study.model.output_fits import OutputFits
from slayr_py.study.model.session import Session
from slayr_py.study.model.space_model import SpaceModel, stan_seed_of
from slayr_py.study.model.surrogate import GivenKernel
from slayr_py.study.results.refits import (
    RecordedFits,
    fitted_numbers,
    last_feasibility,
    last_fitted,
    recorded_fits,
    trials_of_feasibility,
)
from slayr_py.study.results.tables import comparable_trials, feasible_trials, fixed_values_text
from slayr_py.study.sampler import declared_space_of, fixed_for_results, space_of, stan_sampler_of, within_of
from slayr_py.study.storage.attributes import ignores_failures, study_record
from slayr_py.study.storage.distributions import to_params
from slayr_py.study.storage.objectives import Goal, goal_of
from slayr_py.study.storage.reading import trials_of
from slayr_py.study.storage.trials import Observations, constraint_results, has_known_error, observations

_SURE = 0.95  # a smaller one is told with the recommendation


class Recommendation(NamedTuple):
    """The best evaluated configuration: of a noisy objective the one with the best posterior mean."""

    config: dict[str, Any]
    """Active parameters by name."""

    mean: float
    """The observed value of an exact objective, in the user's units. Of a noisy one the posterior mean of the latent
    function there; under a warp the median."""

    sd: float
    """0 for an exact objective. Of a noisy one the posterior standard deviation of the latent function there; under a
    warp, see `Prediction.centre_and_spread`."""

    number: int
    """Number of the first feasible trial with this configuration, of an exact objective that of the best trial."""

    feasible: float = 1.0
    """Probability that the constraints hold there, by their models, if the objective is declared noisy; otherwise 1:
    the trial satisfies them."""

    @classmethod
    def observed(cls, best: FrozenTrial) -> Recommendation:
        """Return the best trial of an exact objective."""
        return cls(dict(best.params), float(best.values[0]), 0.0, best.number)

    def __str__(self) -> str:
        """Return the prediction and the trial, ``1.23 ± 0.04 at trial 7``, or the exact value and the trial.

        A probability of feasibility below 95% is added.
        """
        spread = f" ± {self.sd:.2g}" if self.sd else ""
        doubt = f" (feasible with probability {self.feasible:.2f})" if self.feasible < _SURE else ""
        return f"{self.mean:.6g}{spread} at trial {self.number}{doubt}"


def is_noisy(study: Study) -> bool:
    """Return whether the best value may be partly luck: the study is declared noisy, or it has errors.

    They are known errors of feasible values, as for the loop's `counts_as_noisy`.
    """
    return is_declared_noisy(study) or any(has_known_error(trial) for trial in feasible_trials(study))


def is_declared_noisy(study: Study) -> bool:
    """Return whether the objective was declared noisy."""
    sampler = stan_sampler_of(study)
    record = study_record(study) or {}
    return sampler.options.noisy if sampler is not None else record.get("noisy") is True


def is_exact(study: Study) -> bool:
    """Return whether the observed values are those of the objective: it is declared free of noise, and has no errors.

    Without a sampler or a record of this package nothing is known about the noise.
    """
    declared = stan_sampler_of(study) is not None or study_record(study) is not None
    return declared and not is_noisy(study)


def has_recommendation(study: Study) -> bool:
    """Return whether to show a recommendation by default: the values are noisy and there is a fit."""
    return is_noisy(study) and bool(fitted_numbers(study))


def as_believed(
    study: Study,
    observed: Sequence[Observations],
    models: Mapping[str, Posterior],
    encoded: Encoded,
    fixed: Fixed | None,
) -> Sequence[Observations]:
    """Return the observations of a study, with those as feasible that probably are if it is declared noisy."""
    return believed(observed, models, encoded, fixed) if is_declared_noisy(study) else observed


def comparable_rows(study: Study, observed: Observations) -> list[int]:
    """Return the rows of the observations that are feasible trials with the fixed values of the study's sampler."""
    comparable = {trial.number for trial in comparable_trials(study)}
    return [row for row, number in enumerate(observed.numbers) if observed.feasible[row] and number in comparable]


def recommend(study: Study, posterior: Posterior) -> Recommendation:
    """Return the feasible configuration with the smallest posterior mean, the largest one if the study maximises.

    It is that of a noisy objective: see `Recommendation.observed`. If the objective is declared noisy, so are the
    values of constraints, and the best of the trials that seem feasible is often one that is not. So only
    configurations are compared which are more probably feasible than not by the models of the constraints (or the most
    probable one, if there is none). If the study's sampler has fixed values, only configurations with these values are
    compared.

    Parameters
    ----------
    study : optuna.Study
        Has a finished trial with a finite value.
    posterior : Posterior
        Of its values.
    """
    encoder = posterior.encoder
    observed = observations(study, encoder.space)
    models: dict[str, Posterior] = {}
    if is_declared_noisy(study) and constraint_results(study, encoder.space):
        models = feasibility_of_all(study, encoder)
        fixed = fixed_for_results(study, encoder)
        (observed,) = believed([observed], models, encoder.encode(observed.configs), fixed)
    first: dict[str, int] = {}
    for row in comparable_rows(study, observed):
        first.setdefault(repr(to_params(observed.configs[row])), row)
    if not first:
        which = f"feasible trial{fixed_values_text(study)}"
        raise DataError(f"study {study.study_name!r} has no {which} to recommend")
    rows = list(first.values())
    configs = [observed.configs[row] for row in rows]
    means, sds = posterior.predict(configs).centre_and_spread()
    best = int(np.argmax(means) if observed.maximize else np.argmin(means))
    found = to_params(configs[best]), float(means[best]), float(sds[best]), observed.numbers[rows[best]]
    feasible = probability_of_constraints(models, encoder.encode([configs[best]]))
    return Recommendation(*found, float(feasible[0]))


def posterior_of_all(
    study: Study,
    progress: Callable[[str], None] | None = None,
    objective: int | str | None = None,
    space: ConfigurationSpace | None = None,
    **fit: Unpack[FitKeywords],
) -> Posterior:
    """Return the posterior of the only or of one ``objective``, given all finished trials of a study.

    If the last suggestion was fitted to all of them, its fit is repeated, unless other options ``fit`` are given.
    Otherwise the study's sampler fits its model. If the study was loaded without its sampler, the model of the last
    suggestion is fitted. If the sampler has inferred the parameters, its model is fitted in ``space``.

    Raises
    ------
    DataError
        If no trial can be fitted, the study has neither a `StanGPSampler` nor a fit in a declared space, or several
        objectives and none is given.
    StorageError
        If the record of the last fit is damaged.
    ToolchainError, InferenceError
        If Stan cannot be run, or fails.
    """
    goal = goal_of(study, objective)
    if space is not None and (inferred := _inferred_in(study, space)) is not None:
        model, seed = inferred
        return _fitted(model, study, seed, goal, **fit)
    record = study_record(study)
    numbers = [] if record is None else fitted_numbers(study)
    last = recorded_fits(study, numbers[-1], goal.number) if numbers else None
    if not fit and last is not None and last.numbers == observations(study, space_of(study)).numbers:
        return last.repeat(progress)
    if (declared := declared_space_of(study)) is not None:
        return declared.fit_all(study, None, goal, **fit)
    if record is None:
        raise DataError(
            f"study {study.study_name!r} has no fit in a declared space and its sampler is {study.sampler}: only a "
            "StanGPSampler has a posterior; load the study with sampler=StanGPSampler(space)"
        )
    if last is None:
        raise DataError(
            f"study {study.study_name!r} has no fit yet, and is without the sampler that makes one: open it by "
            "slayr_py.study.create_study(space, storage=..., study_name=...), or evaluate more trials"
        )
    return _fitted(_recorded_model(study, last), study, int(record["seed"]), goal, **fit)


def has_warp(posterior: Posterior) -> bool:
    """Return whether a model of the posterior has a warp."""
    return any(part.model.warp != "none" for part in posterior.parts)


def without_warp(posterior: Posterior, **fit: Unpack[FitKeywords]) -> Posterior:
    """Return the posterior of the same models without their warp, given the same observations.

    A warp fits the values near the best one, where a study has most of them. Far from all observations, where its
    transformed function is uncertain by a standard deviation, the function in the user's units is uncertain by a factor
    of exp(a), so that averages over the whole space are those of the few largest values of unobserved regions, and
    medians there may be wrong by orders of magnitude.

    Parameters
    ----------
    posterior : Posterior
    **fit
        Options of the fit instead of the loop's.
    """
    if not has_warp(posterior):
        return posterior
    note = "without the warp of the study's model, for predictions over the whole space"
    models = [part.model.without_warp(note) for part in posterior.parts]
    gp = GaussianProcess.of(models, models[0].kernel if len(models) == 1 else None)
    options = LOOP_OPTIONS.updated(method=_method_of(posterior.parts[0].record)).updated(**fit)
    y = posterior.y_mean + posterior.y_sd * posterior.targets.y
    return gp.fit(posterior.train, y, options=options, seed=posterior.seed, maximize=posterior.maximize)


def _method_of(record: Mapping[str, Any]) -> Method:
    """Return the method of a recorded fit if it is a point estimate, otherwise that of the loop."""
    recorded: Method = record["arguments"]["method"]
    return recorded if METHODS[recorded].point_estimate else LOOP_OPTIONS.method


def _fitted(model: SpaceModel, study: Study, seed: int, goal: Goal, **fit: Unpack[FitKeywords]) -> Posterior:
    """Fit a model to all finished trials of a study with this seed, as its sampler does."""
    model.warn_of_trials(study)
    return model.fit(study, stan_seed_of(seed), goal, **fit)


def feasibility_of_all(study: Study, encoder: Encoder) -> dict[str, Posterior]:
    """Return the models of failures and constraints given all finished trials, by name.

    If those behind the last fitted suggestion have seen all of these trials, and have the scales of the ``encoder``,
    that of the posterior of the objective, their fits are repeated. Otherwise they are fitted anew, and always those of
    inferred parameters.
    """
    inferred = _inferred_in(study, encoder.space)
    model, seed = inferred or _declared_or_recorded(study)
    penalties = observations(study, encoder.space).penalties
    if inferred is None:
        data = model.proposer.feasibility.data(study, penalties)
        seen = {name: (results.numbers, list(results.penalties)) for name, results in data.items()}
        if seen == trials_of_feasibility(study):
            last = last_feasibility(study)
            if all(each.encoder.logarithmic == encoder.logarithmic for each in last.values()):
                return last
    try:
        model = model.rescaled(encoder.logarithmic)
    except DataError:  # the study was resumed with a kernel that was learned on the declared scales
        model = _recorded_model(study, recorded_fits(study, last_fitted(study)))
    model.prepare()
    fits = OutputFits(FitCache(), study, len(trials_of(study)), seed, warm_starts=False)
    return {fit.name: fit.posterior for fit in model.proposer.feasibility.fit_all(fits, model.options.fit, penalties)}


def _declared_or_recorded(study: Study) -> tuple[SpaceModel, int]:
    """Return the model of the study's sampler, otherwise one like that of the last fit, and the seed of the study."""
    if (declared := declared_space_of(study)) is not None:
        return declared, declared.bind(study)
    record = study_record(study) or {}
    return _recorded_model(study, recorded_fits(study, last_fitted(study))), int(record["seed"])


def _inferred_in(study: Study, space: ConfigurationSpace) -> tuple[SpaceModel, int] | None:
    """Return the model of a sampler that has inferred the parameters, in a space, and its seed; None for others."""
    sampler = stan_sampler_of(study)
    if sampler is None or study_record(study) is not None:
        return None
    strategy = sampler.strategy
    if not isinstance(strategy, InferredSpace):
        return None
    return SpaceModel(Encoder(space), sampler.options, Session()), strategy.seed


def _recorded_model(study: Study, last: RecordedFits) -> SpaceModel:
    """Return a model like that of a recorded fit, or like the models of a recorded stack."""
    within = within_of(study)
    models = [recorded_model(fit.record, within) for fit in last.fits]
    kernel = models[0].kernel
    gp = GaussianProcess.of(models, None if last.stack else kernel)  # with the priors of each part
    failures: Failures = "ignore" if ignores_failures(study) else "learn"
    options = SamplerOptions.of(
        noisy=is_declared_noisy(study), method=_method_of(last.fits[0].record), failures=failures
    )
    searches = (study_record(study) or {}).get("kernel", {}).get("name") == "search"
    surrogate = GivenKernel(gp, kernel, chooses_warp=not (options.noisy or searches))
    return SpaceModel(gp.encoder, options, Session(), surrogate)
