"""Fits behind a suggestion: the objective under one kernel, or under each kernel of a stack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from optuna import Study

from slayr_py.errors import InferenceError
from slayr_py.inference import (
    LARGEST_GROWTH,
    METHODS,
    AbandonedAttempt,
    Attempt,
    FitOptions,
    GaussianProcess,
    Outcome,
    Posterior,
    as_stan_seed,
    failure,
    part_stream,
    reason,
    unreliability,
)
from slayr_py.study.model.fit_cache import FitCache, fit_key, fit_to
from slayr_py.study.storage.fit_records import LastStart, last_warm_start, part_name
from slayr_py.study.storage.suggestion import FitEntry, KernelEntries, StackPart
from slayr_py.study.storage.trials import Observations

AUDITS = frozenset(round(16 * 1.5**i) for i in range(12))
"""Numbers of observations from which on the next fit is also made from a cold start, if the loop carried the posterior
or started chains from the last fit: 16, 24, 36, ... No diagnostic can see a mode that no draw has visited."""

_AUDITED = {"carried": "the carried posterior", "warm": "the fit from a warm start"}


@dataclass(frozen=True)
class PlannedFit:
    """A planned fit of one kernel to the trials of a study.

    Attributes
    ----------
    gp : GaussianProcess
    name : str
        Name of the fit in the attributes of a trial; empty unless the study has several objectives, or the kernel is a
        part of a stack.
    options : FitOptions
    last : LastStart, optional
        The last fit, from which this one starts.
    abandoned : tuple of AbandonedAttempt
        Attempts of the fits that this one continues.
    """

    gp: GaussianProcess
    name: str
    options: FitOptions
    last: LastStart | None = None
    abandoned: tuple[AbandonedAttempt, ...] = ()


@dataclass(frozen=True)
class CompletedFit:
    """A completed fit.

    Attributes
    ----------
    plan : PlannedFit
    posterior : Posterior
    """

    plan: PlannedFit
    posterior: Posterior

    @property
    def abandoned(self) -> list[AbandonedAttempt]:
        """Discarded attempts, also of the fits that this one continues."""
        return [*self.plan.abandoned, *self.posterior.record["abandoned"]]

    def more_draws(self, first: int) -> int:
        """Return the number of draws per chain for a second fit, or 0 if more draws would not help.

        The error of an approximation does not shrink with more draws, and a fit whose diagnostics fail has already
        used the largest number. ``first`` is the number of draws of a first fit.
        """
        arguments = self.posterior.record["arguments"]
        has_chains = METHODS[arguments["method"]].has_chains
        if not has_chains or arguments["ess"] is None or not self.posterior.check().ok:
            return 0
        drawn = sum(arguments["rounds"])
        return min(4 * drawn, LARGEST_GROWTH * first) if drawn < LARGEST_GROWTH * first else 0

    def extend(self, draws: int, why: str) -> PlannedFit:
        """Return the plan to continue this fit with more draws per chain."""
        record = self.posterior.record
        outcome = Outcome(Attempt.recorded(record), self.posterior, (why,), record["seconds"])
        entry = outcome.entry(f"from there with {draws} draws a chain")
        last = LastStart(self.posterior.warm_start(), len(self.posterior.train))
        options = self.plan.options.updated(draws=draws)
        return replace(self.plan, options=options, last=last, abandoned=(*self.abandoned, entry))


@dataclass(frozen=True)
class LoopFits:
    """Fit the model of the objective to the finished trials.

    Attributes
    ----------
    gp : GaussianProcess
    study : optuna.Study
    observed : Observations
    cache : FitCache
    warn : callable
        Receives a warning for the user and what it is about.
    name : str
        Name of the fit of one of several objectives, see `Goal.fit_name`.
    """

    gp: GaussianProcess
    study: Study
    observed: Observations
    cache: FitCache
    warn: Callable[[str, str], None]
    name: str = ""

    def plan(self, options: FitOptions) -> list[PlannedFit]:
        """Return a fit for each kernel.

        The parts of a stack need pointwise densities. They are not retried: the stack leaves out a part that fails.
        """
        if not self.gp.is_stack:
            return [PlannedFit(self.gp, self.name, options)]
        options = options.updated(pointwise=True, retries=0)
        return [PlannedFit(gp, part_name(gp.model.kernel, self.name), options) for gp in self.gp.parts]

    def resume(self, number: int, plan: Sequence[PlannedFit]) -> list[PlannedFit]:
        """Return the plan with each fit starting from the last one of its kernel before trial ``number``."""
        numbers = self.observed.numbers
        lasts = [last_warm_start(self.study, number, fit.gp, fit.options, numbers, fit.name) for fit in plan]
        return [replace(fit, last=last) for fit, last in zip(plan, lasts, strict=True)]

    def fit(
        self, plan: Sequence[PlannedFit | CompletedFit], stream: np.random.SeedSequence
    ) -> tuple[list[CompletedFit], Posterior]:
        """Run the fits of a plan and combine their posteriors.

        Raises
        ------
        InferenceError
            If Stan fails for all of them, or no part of a stack has finite leave-one-out densities.
        """
        fits = self.fit_all(plan, stream)
        return fits, self.combine(fits, stream)

    def fit_all(self, plan: Sequence[PlannedFit | CompletedFit], stream: np.random.SeedSequence) -> list[CompletedFit]:
        """Run the planned fits and keep the completed ones; drop parts of a stack for which Stan fails.

        Raises
        ------
        InferenceError
            If Stan fails for all of them.
        """
        fits: list[CompletedFit] = []
        failures: dict[str, InferenceError] = {}
        for fit in plan:
            if isinstance(fit, CompletedFit):
                fits.append(fit)
                continue
            try:
                fits.append(self._fit(fit, stream))
            except InferenceError as error:
                if not self.gp.is_stack:
                    raise
                failures[fit.gp.model.kernel.short_name] = error
        if not fits:
            raise InferenceError("; ".join(f"{name}: {why}" for name, why in failures.items()))
        for name, why in failures.items():
            self.warn(f"kernel {name} is left out of the stack because its fit failed: {why}", name)
        return fits

    def combine(self, fits: Sequence[CompletedFit], stream: np.random.SeedSequence) -> Posterior:
        """Return the posterior of the only kernel, or the stack of those whose diagnostics pass.

        If the diagnostics of all kernels fail, the stack uses all and its diagnostics fail too. Unreliable
        leave-one-out densities are a message only: with the few draws and observations of a loop they would leave out
        kernels by chance.

        Raises
        ------
        InferenceError
            If no part has finite leave-one-out densities.
        """
        if not self.gp.is_stack:
            return fits[0].posterior
        used: list[Posterior] = []
        failed: list[Posterior] = []
        doubts: list[str] = []
        failures: list[str] = []
        for posterior in (fit.posterior for fit in fits):
            name = posterior.kernel.short_name
            loo = posterior.parts[0].leave_one_out
            if why := failure(posterior.check(), loo):
                failures.append(f"{name}: {why}")
                failed += [posterior] if np.all(np.isfinite(loo.elpd)) else []
                continue
            used.append(posterior)
            if why := unreliability(loo):
                doubts.append(f"{name}: uncertain weight: {why}")
        if not used and not failed:
            raise InferenceError(f"no kernel of the stack can be used. {'. '.join(failures)}")
        action = "left out" if used else "used although all fail"
        messages = [*doubts, *(f"{action}: {why}" for why in failures)]
        return Posterior.stack(used or failed, seed=as_stan_seed(stream), messages=messages)

    def extend(
        self, fits: Sequence[CompletedFit], posterior: Posterior, first: int, why: str
    ) -> list[PlannedFit | CompletedFit] | None:
        """Return the plan to continue the fits that the posterior uses, or None if more draws would not help any."""
        used = posterior.used
        more = [fit.more_draws(first) if any(fit.posterior is part for part in used) else 0 for fit in fits]
        if not any(more):
            return None
        return [fit.extend(draws, why) if draws else fit for fit, draws in zip(fits, more, strict=True)]

    def _fit(self, fit: PlannedFit, stream: np.random.SeedSequence) -> CompletedFit:
        """Fit one kernel to these trials, unless the cache has the fit."""
        seed = as_stan_seed(part_stream(stream, fit.gp.model.kernel) if self.gp.is_stack else stream)
        data = [self.observed.y, self.observed.y_sd]
        key = fit_key(self.study, fit.name, self.observed, data, seed, fit.options)
        # The next number may fall within a batch. A fit that continues another one of the same data has its audit.
        before = 0 if fit.last is None else fit.last.observations
        audit = any(before < number <= len(self.observed.y) for number in AUDITS)
        attempt = Attempt(fit.options, seed, None if fit.last is None else fit.last.start)
        return CompletedFit(fit, self.cache.get(key, lambda: self._fit_and_audit(fit.gp, attempt, audit)))

    def _fit_and_audit(self, gp: GaussianProcess, attempt: Attempt, due: bool) -> Posterior:
        """Fit the model; if an audit is due and no attempt started cold, replace the fit by one from a cold start.

        An audit starts at the prior, by importance sampling in steps or by chains, so that it can find a mode that no
        draw has visited. If chains disagree, importance sampling from the draws of all of them weights the modes. An
        audit is not retried: the fit before, which passed, is kept if it fails.
        """
        observed = self.observed

        def fit(attempt: Attempt) -> Posterior:
            return fit_to(gp, observed, attempt.options, attempt.seed, attempt.start)

        posterior = fit(attempt)
        record = posterior.record
        start = record["arguments"].get("start")
        cold = attempt.start is None or any(entry["start"] == "cold" for entry in record["abandoned"])
        if not due or cold or start not in _AUDITED:
            return posterior
        audit = Outcome.of(replace(attempt, start=None, options=attempt.options.updated(retries=0)), fit)
        if audit.fitted is None or not audit.ok:
            failed = replace(audit, why=tuple(f"audit: {reason(why)}" for why in audit.why))
            return _after(posterior, [*record["abandoned"], failed.entry(f"back to {_AUDITED[start]}")])
        worst, name = largest_difference(posterior, audit.fitted)
        why = f"audit: {name} differs by {worst:.2f} posterior standard deviations"
        audited = Outcome(Attempt.recorded(record), posterior, (why,), record["seconds"])
        entry = audited.entry(Attempt.recorded(audit.fitted.record).after(audited.attempt))
        return _after(audit.fitted, [*record["abandoned"], entry, *audit.fitted.record["abandoned"]])


def _after(posterior: Posterior, abandoned: list[AbandonedAttempt]) -> Posterior:
    """Return a fit whose record has these attempts before it."""
    part = posterior.parts[0]
    return Posterior.of(replace(part, record=part.record | {"abandoned": abandoned}))


def fit_entries(fits: Sequence[CompletedFit], posterior: Posterior) -> KernelEntries:
    """Return the entries of the suggestion record that describe the fits."""
    if not posterior.is_stack:
        return {"kernel": posterior.kernel.name, "method": _method(fits[0]), "fit": _entry(fits[0])}
    parts: list[StackPart] = []
    for (name, weight), part in zip(posterior.weights.items(), posterior.posteriors, strict=True):
        fit = next(fit for fit in fits if fit.posterior is part)
        seed = part.record["arguments"]["seed"]
        checks = part.check().asdict()
        parts.append(
            {
                "kernel": str(name),
                "weight": weight,
                "method": _method(fit),
                "fit": _entry(fit),
                "seed": seed,
                "diagnostics": checks,
            }
        )
    return {
        "kernel": "stack",
        "method": _joint_method(parts),
        "fit": {"start": None, "draws": posterior.n_draws, "abandoned": []},
        "stack": {"parts": parts, "messages": list(posterior.messages)},
    }


def entries_of_all(parts: Sequence[KernelEntries]) -> KernelEntries:
    """Return the entries of the suggestion record that describe the fits of several objectives together.

    ``parts`` are the `fit_entries` of each objective.
    """
    starts = {part["fit"]["start"] for part in parts}
    draws = sum(part["fit"]["draws"] for part in parts)
    start = starts.pop() if len(starts) == 1 else None
    return {
        "kernel": parts[0]["kernel"],
        "method": _joint_method(parts),
        "fit": {"start": start, "draws": draws, "abandoned": []},
    }


def _method(fit: CompletedFit) -> str:
    return str(fit.posterior.record["arguments"]["method"])


def _joint_method(parts: Sequence[KernelEntries | StackPart]) -> str:
    methods = {part["method"] for part in parts}
    return methods.pop() if len(methods) == 1 else "mixed"


def _entry(fit: CompletedFit) -> FitEntry:
    start = fit.posterior.record["arguments"].get("start")
    return {"start": start, "draws": fit.posterior.n_draws, "abandoned": fit.abandoned}


def largest_difference(posterior: Posterior, reference: Posterior) -> tuple[float, str]:
    """Return the largest difference of the means of a coordinate, and its name.

    The unit is the standard deviation of the coordinate in the reference.
    """
    fits = (each.parts[0].contents.coordinates for each in (posterior, reference))
    here, there = ({name: v.reshape(-1, *v.shape[2:]) for name, v in fit.items()} for fit in fits)
    apart = {k: np.max(np.abs(here[k].mean(0) - there[k].mean(0)) / there[k].std(0)) for k in there}
    worst = max(apart, key=lambda name: apart[name])
    return float(apart[worst]), worst.removeprefix("z_")
