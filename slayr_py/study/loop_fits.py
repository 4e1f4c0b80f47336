"""Fits behind a suggestion: the objective under one kernel, or under each kernel of a stack."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from optuna import Study

from slayr_py.errors import InferenceError
from slayr_py.inference import (
    MOST,
    FitOptions,
    GaussianProcess,
    Posterior,
    WarmStart,
    as_stan_seed,
    failure,
    part_stream,
    reason,
    unreliability,
)
from slayr_py.kernels import label
from slayr_py.study.fit_cache import FitCache
from slayr_py.study.storage.fit_records import last_warm_start, part_name
from slayr_py.study.storage.trials import Observations

AUDITS = frozenset(round(16 * 1.5**i) for i in range(12))
"""Numbers of observations at which the loop fits by NUTS as well where it could carry the posterior: 16, 24, 36, ...
The Pareto k of importance ratios cannot see a mode that no draw has visited."""


@dataclass(frozen=True)
class KernelFit:
    """Fit of one kernel to the trials of a study, planned or made.

    Attributes
    ----------
    gp : GaussianProcess
    name : str
        Of the fit in the attributes of a trial; empty unless the kernel is a part of a stack.
    options : FitOptions
    start : WarmStart, optional
    posterior : Posterior, optional
        None until the fit is made.
    abandoned : tuple of mappings
        Discarded attempts.
    """

    gp: GaussianProcess
    name: str
    options: FitOptions
    start: WarmStart | None = None
    posterior: Posterior | None = None
    abandoned: tuple[dict[str, Any], ...] = ()

    def made(self, posterior: Posterior) -> KernelFit:
        """Return the fit with its posterior."""
        return replace(self, posterior=posterior, abandoned=(*self.abandoned, *posterior.record["abandoned"]))

    def more_draws(self, first: int) -> int:
        """Return the number of draws per chain for a second fit, or 0 if more draws would not help.

        The error of an approximation does not shrink with more draws, and a fit whose diagnostics fail has already
        used the largest number. ``first`` is the number of draws of a first fit.
        """
        assert self.posterior is not None
        arguments = self.posterior.record["arguments"]
        if arguments["method"] != "nuts" or arguments["ess"] is None or not self.posterior.check().ok:
            return 0
        drawn = sum(arguments["rounds"])
        return min(4 * drawn, MOST * first) if drawn < MOST * first else 0

    def continued(self, draws: int, why: str) -> KernelFit:
        """Return the plan to continue this fit with more draws per chain."""
        assert self.posterior is not None
        record = self.posterior.record
        then = {"then": f"from there with {draws} draws a chain", "seconds": record["seconds"]}
        entry = {"method": record["arguments"]["method"], "start": record["arguments"]["start"], "why": [why], **then}
        options = self.options.updated(draws=draws)
        return KernelFit(self.gp, self.name, options, self.posterior.warm_start(), None, (*self.abandoned, entry))


@dataclass(frozen=True)
class LoopFits:
    """Make the fits of a model to the finished trials.

    Attributes
    ----------
    gp : GaussianProcess
    observed : Observations
    cache : FitCache
    warn : callable
        Receives a warning for the user and what it is about.
    """

    gp: GaussianProcess
    observed: Observations
    cache: FitCache
    warn: Callable[[str, str], None]

    def planned(self, options: FitOptions) -> list[KernelFit]:
        """Return a fit for each kernel; the parts of a stack need pointwise densities."""
        if not self.gp.is_stack:
            return [KernelFit(self.gp, "", options)]
        options = options.updated(pointwise=True)
        return [KernelFit(gp, part_name(gp.model.kernel), options) for gp in self.gp.parts]

    def continued(self, study: Study, number: int, plan: Sequence[KernelFit]) -> list[KernelFit]:
        """Return the plan with each fit starting from the last one of its kernel before trial ``number``."""
        numbers = self.observed.numbers
        starts = [last_warm_start(study, number, fit.gp, fit.options.chains, numbers, fit.name) for fit in plan]
        return [replace(fit, start=start) for fit, start in zip(plan, starts, strict=True)]

    def made(self, study: Study, plan: Sequence[KernelFit], stream: np.random.SeedSequence) -> list[KernelFit]:
        """Make the fits of a plan that are not made yet; drop parts of a stack for which Stan fails.

        Raises
        ------
        InferenceError
            If Stan fails for all of them.
        """
        made: list[KernelFit] = []
        failures: dict[str, InferenceError] = {}
        for fit in plan:
            if fit.posterior is not None:
                made.append(fit)
                continue
            own = part_stream(stream, fit.gp.model.kernel) if fit.name else stream
            try:
                made.append(fit.made(self._cached(study, fit, as_stan_seed(own))))
            except InferenceError as error:
                if not fit.name:
                    raise
                failures[label(fit.gp.model.kernel)] = error
        if not made:
            raise InferenceError("; ".join(f"{name}: {why}" for name, why in failures.items()))
        for name, why in failures.items():
            self.warn(f"the kernel {name} is left out of the stack, as its fit fails: {why}", name)
        return made

    def combined(self, fits: Sequence[KernelFit], stream: np.random.SeedSequence) -> Posterior:
        """Return the posterior of the only kernel, or the stack of those whose diagnostics pass.

        If those of all kernels fail, all are used, and so does the stack. Unreliable leave-one-out densities are a
        message only: with the few draws and observations of a loop they would leave out kernels by chance.

        Raises
        ------
        InferenceError
            If no part has finite leave-one-out densities.
        """
        posteriors = [fit.posterior for fit in fits if fit.posterior is not None]
        if not self.gp.is_stack:
            return posteriors[0]
        used: list[Posterior] = []
        failed: list[Posterior] = []
        doubts: list[str] = []
        failures: list[str] = []
        for posterior in posteriors:
            name = label(posterior.kernel)
            loo = posterior.parts[0].leave_one_out
            if why := failure(posterior, loo):
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

    def with_more_draws(
        self, fits: Sequence[KernelFit], posterior: Posterior, first: int, why: str
    ) -> list[KernelFit] | None:
        """Return the plan to continue the fits that the posterior uses, or None if more draws would not help any."""
        used = posterior.used
        more = [fit.more_draws(first) if any(fit.posterior is part for part in used) else 0 for fit in fits]
        if not any(more):
            return None
        return [fit.continued(draws, why) if draws else fit for fit, draws in zip(fits, more, strict=True)]

    def _cached(self, study: Study, fit: KernelFit, seed: int) -> Posterior:
        """Return the fit to these trials; make it unless the last suggestion has made it."""
        data = self.observed.y.tobytes(), self.observed.y_sd.tobytes()
        key = (study.study_name, fit.name, tuple(self.observed.numbers), *data, seed, fit.options)
        return self.cache.get(key, lambda: self._fitted(fit, seed))

    def _fitted(self, fit: KernelFit, seed: int) -> Posterior:
        """Fit the model; if the posterior was carried and an audit is due, replace it by one from NUTS that passes."""
        observed = self.observed
        options = fit.options
        data: dict[str, Any] = {"y_sd": observed.errors, "maximize": observed.maximize}
        posterior = fit.gp.fit(observed.configs, observed.y, seed=seed, start=fit.start, options=options, **data)
        if posterior.record["arguments"]["method"] != "carried" or len(observed.y) not in AUDITS:
            return posterior
        by_nuts = options.updated(method="nuts")
        clock = time.perf_counter()
        try:
            audit = fit.gp.fit(observed.configs, observed.y, seed=seed, start=fit.start, options=by_nuts, **data)
        except InferenceError as error:
            failures = [str(error)]
        else:
            failures = list(audit.check().messages)
            if not failures:
                worst, of = largest_difference(posterior, audit)
                entry = {
                    "method": "carried",
                    "start": "carried",
                    "why": [f"audit: {of} differs by {worst:.2f} posterior standard deviations"],
                    "then": "NUTS from a warm start",
                    "seconds": posterior.record["seconds"],
                }
                earlier = posterior.record["abandoned"]
                later = audit.record["abandoned"]
                audit.record["abandoned"] = [*earlier, entry, *later]
                return audit
        entry = {
            "method": "nuts",
            "start": "warm",
            "why": [f"audit: {reason(message)}" for message in failures],
            "then": "back to the carried posterior",
            "seconds": round(time.perf_counter() - clock, 3),
        }
        posterior.record["abandoned"] = [*posterior.record["abandoned"], entry]
        return posterior


def fit_entries(fits: Sequence[KernelFit], posterior: Posterior) -> dict[str, Any]:
    """Return the entries of the suggestion record that describe the fits: kernel, method, fit and stack."""
    if not posterior.is_stack:
        return {"kernel": posterior.kernel.name, **_described(fits[0])}
    parts = []
    for (name, weight), one in zip(posterior.weights.items(), posterior.posteriors, strict=True):
        fit = next(fit for fit in fits if fit.posterior is one)
        seed = one.record["arguments"]["seed"]
        checks = one.check().asdict()
        parts.append({"kernel": name, "weight": weight, **_described(fit), "seed": seed, "diagnostics": checks})
    methods = {part["method"] for part in parts}
    return {
        "kernel": "stack",
        "method": methods.pop() if len(methods) == 1 else "mixed",
        "fit": {"start": None, "draws": posterior.n_draws, "abandoned": []},
        "stack": {"parts": parts, "messages": list(posterior.messages)},
    }


def _described(fit: KernelFit) -> dict[str, Any]:
    assert fit.posterior is not None
    arguments = fit.posterior.record["arguments"]
    about = {"start": arguments.get("start"), "draws": fit.posterior.n_draws, "abandoned": list(fit.abandoned)}
    return {"method": arguments["method"], "fit": about}


def largest_difference(one: Posterior, other: Posterior) -> tuple[float, str]:
    """Return the largest difference of the means of a coordinate in standard deviations of ``other``, and its name."""
    groups = (posterior.idata["unconstrained_posterior"].to_dataset() for posterior in (one, other))
    here, there = ({str(k): v.values.reshape(-1, *v.shape[2:]) for k, v in group.items()} for group in groups)
    apart = {k: np.max(np.abs(here[k].mean(0) - there[k].mean(0)) / there[k].std(0)) for k in there}
    worst = max(apart, key=lambda name: apart[name])
    return float(apart[worst]), worst.removeprefix("z_")
