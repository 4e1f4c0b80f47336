"""Propose a configuration: fit the model to the finished trials, then maximise the acquisition under its posterior."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from ConfigSpace import Configuration
from optuna import Study
from optuna.trial import FrozenTrial
from threadpoolctl import threadpool_limits

from slayr_py.acquisition import Acquisition, Suggestion, suggest
from slayr_py.errors import InferenceError
from slayr_py.inference import GaussianProcess, Posterior, WarmStart
from slayr_py.inference.diagnostics.checks import reason
from slayr_py.inference.sampling.nuts import MOST
from slayr_py.inference.sampling.options import FitOptions
from slayr_py.inference.sampling.seeds import as_stan_seed
from slayr_py.space import Fixed, jsonable
from slayr_py.study.conditions import Conditions
from slayr_py.study.distributions import to_params
from slayr_py.study.fit_cache import FitCache
from slayr_py.study.storage.fit_records import last_warm_start
from slayr_py.study.storage.trials import Observations, excluded, pending
from slayr_py.study.storage.workers import search_lock

LOOP_OPTIONS = FitOptions(method="carried", warmup=300, draws=50, ess=50, retries=1, pointwise=False)
"""Fit options of the loop. Few draws are enough because the acquisition is a mean over draws, and a fit adds draws
until its effective sample size reaches ``ess``."""

LARGEST_ERROR = 0.1
"""Largest accepted Monte Carlo standard error of the acquisition at its maximum: a tenth of an improvement or, for the
confidence bound, of a standard deviation of the targets. Above it the model is fitted again with more draws, unless
the acquisition is `negligible`: when EI vanishes in a converged study, its relative error is large after every fit."""

NUTS_LIMIT = 1000
"""Number of observations above which the loop fits the posterior mode instead of sampling. A NUTS fit takes minutes
there, its time grows with the cube of their number, and the hyperparameters have little uncertainty left."""


AUDITS = frozenset(round(16 * 1.5**i) for i in range(12))
"""Numbers of observations at which the loop fits by NUTS as well where it could carry the posterior: 16, 24, 36, ...
The Pareto k of importance ratios cannot see a mode that no draw has visited."""


class Phase(NamedTuple):
    """What the sampler is doing, for a progress display."""

    name: str
    """"compiling", "fitting" or "maximising"; `minimize` adds "evaluating"."""

    trial: int | None
    """Number of the trial it is done for; None before the first."""

    diagnostics: Mapping[str, Any] | None = None
    """Diagnostics of the latest fit while maximising, else None."""

    detail: str = ""
    """Message of the toolchain during a long step."""


class Proposal(NamedTuple):
    """A configuration proposed by the model."""

    config: dict[str, Any]
    """Active parameters by name."""

    posterior: Posterior
    """The posterior under which the acquisition was maximised."""

    record: dict[str, Any]
    """The suggestion record of the trial: see `slayr_py.study.storage.attributes`."""


@dataclass(frozen=True)
class Proposer:
    """Fit the model and maximise the acquisition.

    Attributes
    ----------
    gp : GaussianProcess
    acquisition : Acquisition
    fit_options : FitOptions
    warm_starts, noisy : bool
        As in `StanGPSampler`.
    conditions : Conditions
        Fits the models of failures and constraints.
    fits : FitCache
    report, warn : callable
        Receive the phases of the work, and warnings for the user.
    """

    gp: GaussianProcess
    acquisition: Acquisition
    fit_options: FitOptions
    warm_starts: bool
    noisy: bool
    conditions: Conditions
    fits: FitCache
    report: Callable[[Phase], None]
    warn: Callable[[str], None]

    @contextmanager
    def proposal(
        self,
        study: Study,
        trial: FrozenTrial,
        observed: Observations,
        design: Sequence[Configuration],
        seed: int,
        of_acquisition: np.random.SeedSequence,
        fixed: Fixed | None = None,
    ) -> Iterator[Proposal]:
        """Propose a configuration and hold the search lock of the study until the ``with`` block ends.

        Store the proposal inside the block: a search in another process starts after the block and has to know of it.
        If the Monte Carlo error of the acquisition is above `LARGEST_ERROR` and the acquisition is not negligible, the
        fit continues with four times the draws and the search is repeated once.

        The random numbers of a fit follow from ``seed``, that of the study, and from the last trial that it is fitted
        to: suggestions from the same trials share one fit, also after the study has been resumed.

        Raises
        ------
        InferenceError
            If Stan fails.
        """
        options, seconds = self.fit_options, {"fit": 0.0, "acquisition": 0.0}
        of_fit = np.random.SeedSequence([seed, max(observed.numbers) + 1]).spawn(1)[0]
        abandoned: list[dict[str, Any]] = []
        if len(observed.y) > NUTS_LIMIT and options.method != "map":
            options = options.updated(method="map")
            self.warn(
                f"{len(observed.y)} observations are more than the {NUTS_LIMIT} for which the loop samples the "
                "hyperparameters: from now on it fits their posterior mode, in seconds instead of minutes"
            )
        start = None
        if self.warm_starts:
            start = last_warm_start(study, trial, self.gp, options.chains, observed.numbers)
        self.report(Phase("fitting", trial.number))
        clock = time.perf_counter()
        conditions = self.conditions.fitted(study, trial, options, seed, self.warm_starts)
        for stream in (of_fit, *of_fit.spawn(1)):
            self.report(Phase("fitting", trial.number))
            posterior = self._fitted_once(study, observed, as_stan_seed(stream), start, options)
            seconds["fit"] += time.perf_counter() - clock
            abandoned += posterior.record["abandoned"]
            self.report(Phase("maximising", trial.number, jsonable(posterior.check().asdict())))
            best = self._incumbent(posterior, observed, fixed)
            # Processes fit side by side but search one after another, so that each knows what the others evaluate.
            with search_lock(study):
                clock = time.perf_counter()
                found = suggest(
                    posterior,
                    self.acquisition,
                    best=best,
                    t=trial.number + 1 - len(design),
                    rng=np.random.default_rng(of_acquisition),
                    pending=pending(study, self.gp.encoder.space, trial, design),
                    # Failed trials too: a model that ignores failures would suggest their configurations again.
                    exclude=excluded(study, self.gp.encoder.space, observed.configs if self.noisy else ()),
                    conditions=[condition.posterior for condition in conditions],
                    fixed=fixed,
                )
                seconds["acquisition"] += time.perf_counter() - clock
                uncertain = found.error > LARGEST_ERROR and found.value >= self.acquisition.negligible
                more = self._more_draws(posterior) if stream is of_fit and uncertain else 0
                if not more:
                    record = self._record(posterior, found, best, abandoned, seconds)
                    if conditions:
                        record["feasible"] = found.feasible
                        record["conditions"] = {condition.name: condition.record() for condition in conditions}
                    yield Proposal(record["config"], posterior, record)
                    return
            clock = time.perf_counter()
            start, options = posterior.warm_start(), options.updated(draws=more)
            arguments = posterior.record["arguments"]
            why = f"Monte Carlo error {found.error:.3g} > {LARGEST_ERROR} of the acquisition at its maximum"
            then = {"then": f"from there with {more} draws a chain", "seconds": posterior.record["seconds"]}
            abandoned.append({"method": arguments["method"], "start": arguments["start"], "why": [why], **then})

    def _fitted_once(
        self, study: Study, observed: Observations, seed: int, start: WarmStart | None, options: FitOptions
    ) -> Posterior:
        """Return the fit to these trials; make it unless the last suggestion has made it."""
        data = observed.y.tobytes(), observed.y_sd.tobytes()
        key = (study.study_name, tuple(observed.numbers), *data, seed, options)
        return self.fits.get(key, lambda: self._fitted(observed, seed, start, options))

    def _fitted(self, observed: Observations, seed: int, start: WarmStart | None, options: FitOptions) -> Posterior:
        """Fit the model; if the posterior was carried and an audit is due, replace it by one from NUTS that passes."""
        data: dict[str, Any] = {"y_sd": observed.errors, "maximize": observed.maximize}
        posterior = self.gp.fit(observed.configs, observed.y, seed=seed, start=start, options=options, **data)
        if posterior.record["arguments"]["method"] != "carried" or len(observed.y) not in AUDITS:
            return posterior
        by_nuts, clock = options.updated(method="nuts"), time.perf_counter()
        try:
            audit = self.gp.fit(observed.configs, observed.y, seed=seed, start=start, options=by_nuts, **data)
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
                earlier, later = posterior.record["abandoned"], audit.record["abandoned"]
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

    def _more_draws(self, posterior: Posterior) -> int:
        """Return the number of draws per chain for a second fit, or 0 if more draws would not help.

        The error of an approximation does not shrink with more draws, and a fit whose diagnostics fail has already
        used the largest number.
        """
        arguments, first = posterior.record["arguments"], self.fit_options.draws
        if arguments["method"] != "nuts" or arguments["ess"] is None or not posterior.check().ok:
            return 0
        drawn = sum(arguments["rounds"])
        return min(4 * drawn, MOST * first) if drawn < MOST * first else 0

    def _record(
        self,
        posterior: Posterior,
        found: Suggestion,
        best: float | None,
        abandoned: list[dict[str, Any]],
        seconds: dict[str, float],
    ) -> dict[str, Any]:
        return {
            "phase": "model",
            "config": to_params(self.gp.encoder.configuration(found.config)),
            "kernel": self.gp.kernel.name,
            "method": posterior.record["arguments"]["method"],
            "fit": {
                "start": posterior.record["arguments"].get("start"),
                "draws": posterior.n_draws,
                "abandoned": abandoned,
            },
            "acquisition": {
                "name": self.acquisition.name,
                **self.acquisition.options(),
                "best": best,
                "value": float(found.value),
                "error": found.error if np.isfinite(found.error) else None,
            },
            "predicted": {"mean": float(found.mean), "sd": float(found.sd)},
            "diagnostics": posterior.check().asdict(),
            "observations": len(posterior.train),
            "seconds": seconds,
        }

    def _incumbent(self, posterior: Posterior, observed: Observations, fixed: Fixed | None = None) -> float | None:
        """Return the value to improve on, or None if no feasible value is known.

        With fixed values it is the best with these values, or the best prediction there if none was observed.
        """
        if observed.best is None:
            return None
        rows = observed.feasible if fixed is None else observed.feasible & fixed.hold(posterior.train)
        configs, y = posterior.train[rows], observed.y[rows]
        if len(y) and not self.noisy:
            return observed.best_of(y)
        if not len(y):
            assert fixed is not None
            encoded, allowed = self.gp.encoder.resolve(np.vstack([posterior.train.unit_values, fixed.example]), fixed)
            configs = encoded[allowed]
        # The smallest noisy value belongs to a lucky configuration rather than to the best one: improving on it would
        # mean improving on a measurement error. The best posterior mean of the latent function at an observed
        # configuration (under a warp, the best median) replaces it: the plug-in incumbent of Vazquez et al. (2008,
        # J. Phys. Conf. Ser. 135) and of Picheny, Wagner & Ginsbourger (2013, Struct. Multidiscip. Optim. 48).
        # One thread, as in the search that follows, so that the last bits do not depend on the machine.
        with threadpool_limits(limits=1, user_api="blas"):
            means = posterior.predict(configs).centre_and_spread()[0]
        return observed.best_of(means)


def largest_difference(one: Posterior, other: Posterior) -> tuple[float, str]:
    """Return the largest difference of the means of a coordinate in standard deviations of ``other``, and its name."""
    groups = (posterior.idata["unconstrained_posterior"].to_dataset() for posterior in (one, other))
    here, there = ({str(k): v.values.reshape(-1, *v.shape[2:]) for k, v in group.items()} for group in groups)
    apart = {k: np.max(np.abs(here[k].mean(0) - there[k].mean(0)) / there[k].std(0)) for k in there}
    worst = max(apart, key=lambda name: apart[name])
    return float(apart[worst]), worst.removeprefix("z_")
