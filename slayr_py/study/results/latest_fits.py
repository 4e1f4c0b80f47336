"""Posteriors given all finished trials of a study, whose last suggestion may have been fitted to fewer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ConfigSpace import ConfigurationSpace
from optuna import Study
from typing_extensions import Unpack

from slayr_py.errors import DataError
from slayr_py.inference import METHODS, FitKeywords, GaussianProcess, Method, Posterior, recorded_model
from slayr_py.space import Encoder
from slayr_py.study.inferred_space import InferredSpace
from slayr_py.study.model.feasibility import Failures
from slayr_py.study.model.fit_cache import FitCache
from slayr_py.study.model.options import LOOP_OPTIONS, SamplerOptions
from slayr_py.study.model.output_fits import OutputFits
from slayr_py.study.model.session import Session
from slayr_py.study.model.space_model import SpaceModel, stan_seed_of
from slayr_py.study.model.surrogate import GivenKernel
from slayr_py.study.results.noise import is_declared_noisy
from slayr_py.study.results.refits import (
    RecordedFits,
    fitted_numbers,
    last_feasibility,
    last_fitted,
    recorded_fits,
    trials_of_feasibility,
)
from slayr_py.study.sampler import declared_space_of, space_of, stan_sampler_of, within_of
from slayr_py.study.storage.attributes import ignores_failures, study_record
from slayr_py.study.storage.objectives import Goal, goal_of
from slayr_py.study.storage.reading import trials_of
from slayr_py.study.storage.trials import observations


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
