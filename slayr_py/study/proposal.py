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
from slayr_py.inference import FitOptions, GaussianProcess, Posterior, StackedGaussianProcess, StackedPosterior
from slayr_py.space import Fixed, jsonable
from slayr_py.study.conditions import Condition, Conditions
from slayr_py.study.distributions import to_params
from slayr_py.study.fit_cache import FitCache
from slayr_py.study.loop_fits import KernelFit, LoopFits, fit_entries
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


class Phase(NamedTuple):
    """What the sampler is doing, for a progress display."""

    name: str
    """"compiling", "searching kernels", "fitting" or "maximising"; `minimize` adds "evaluating"."""

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

    posterior: Posterior | StackedPosterior
    """The posterior under which the acquisition was maximised."""

    record: dict[str, Any]
    """The suggestion record of the trial: see `slayr_py.study.storage.attributes`."""


class Fitted(NamedTuple):
    """The models behind a suggestion."""

    model: LoopFits
    fits: list[KernelFit]

    posterior: Posterior | StackedPosterior
    """Of the objective."""

    conditions: list[Condition]
    """Of failures and constraints."""

    stream: np.random.SeedSequence
    """Random numbers of the fits."""


@dataclass(frozen=True)
class Proposer:
    """Fit the model and maximise the acquisition.

    Attributes
    ----------
    acquisition : Acquisition
    fit_options : FitOptions
    warm_starts, noisy : bool
        As in `StanGPSampler`.
    conditions : Conditions
        Fits the models of failures and constraints.
    fits : FitCache
    report : callable
        Receives the phases of the work.
    warn : callable
        Receives a warning for the user and what it is about.
    """

    acquisition: Acquisition
    fit_options: FitOptions
    warm_starts: bool
    noisy: bool
    conditions: Conditions
    fits: FitCache
    report: Callable[[Phase], None]
    warn: Callable[[str, str], None]

    def fitted(
        self,
        gp: GaussianProcess | StackedGaussianProcess,
        study: Study,
        number: int,
        observed: Observations,
        seed: int,
    ) -> Fitted:
        """Fit ``gp`` and the conditions for trial ``number``.

        The random numbers of a fit follow from ``seed``, that of the study, and from the last trial that it is fitted
        to: suggestions from the same trials share one fit, also after the study has been resumed.

        Raises
        ------
        InferenceError
            If Stan fails.
        """
        options = self.fit_options
        stream = np.random.SeedSequence([seed, max(observed.numbers) + 1]).spawn(1)[0]
        if len(observed.y) > NUTS_LIMIT and options.method != "map":
            options = options.updated(method="map")
            self.warn(
                f"{len(observed.y)} observations are more than the {NUTS_LIMIT} for which the loop samples the "
                "hyperparameters: from now on it fits their posterior mode, in seconds instead of minutes",
                "",
            )
        model = LoopFits(gp, observed, self.fits, self.warn)
        fits = model.planned(options)
        if self.warm_starts:
            fits = model.continued(study, number, fits)
        self.report(Phase("fitting", number))
        conditions = self.conditions.fitted(study, number, options, seed, self.warm_starts)
        fits = model.made(study, fits, stream)
        return Fitted(model, fits, model.combined(fits, stream), conditions, stream)

    @contextmanager
    def proposal(
        self,
        gp: GaussianProcess | StackedGaussianProcess,
        study: Study,
        trial: FrozenTrial,
        observed: Observations,
        design: Sequence[Configuration],
        seed: int,
        of_acquisition: np.random.SeedSequence,
        fixed: Fixed | None = None,
    ) -> Iterator[Proposal]:
        """Fit ``gp``, propose a configuration and hold the search lock of the study until the ``with`` block ends.

        Store the proposal inside the block: a search in another process starts after the block and has to know of it.
        If the Monte Carlo error of the acquisition is above `LARGEST_ERROR` and the acquisition is not negligible, the
        fit continues with four times the draws and the search is repeated once.

        Raises
        ------
        InferenceError
            If Stan fails.
        """
        seconds = {"fit": 0.0, "acquisition": 0.0}
        clock = time.perf_counter()
        model, fits, posterior, conditions, of_fit = self.fitted(gp, study, trial.number, observed, seed)
        for condition in conditions:
            condition.store(study, trial, self.warm_starts)
        for stream in (of_fit, *of_fit.spawn(1)):
            if stream is not of_fit:
                self.report(Phase("fitting", trial.number))
                fits = model.made(study, fits, stream)
                posterior = model.combined(fits, stream)
            seconds["fit"] += time.perf_counter() - clock
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
                    pending=pending(study, gp.encoder.space, trial, design),
                    # Failed trials too: a model that ignores failures would suggest their configurations again.
                    exclude=excluded(study, gp.encoder.space, observed.configs if self.noisy else ()),
                    feasibility=[condition.posterior for condition in conditions],
                    fixed=fixed,
                )
                seconds["acquisition"] += time.perf_counter() - clock
                uncertain = found.error > LARGEST_ERROR and found.value >= self.acquisition.negligible
                why = f"Monte Carlo error {found.error:.3g} > {LARGEST_ERROR} of the acquisition at its maximum"
                repeats = stream is of_fit and uncertain
                more = model.with_more_draws(fits, posterior, self.fit_options.draws, why) if repeats else None
                if more is None:
                    record = self._record(fits, posterior, found, best, seconds)
                    if conditions:
                        record["feasible"] = found.feasible
                        record["conditions"] = {condition.name: condition.record() for condition in conditions}
                    yield Proposal(record["config"], posterior, record)
                    return
            clock = time.perf_counter()
            fits = more

    def _record(
        self,
        fits: Sequence[KernelFit],
        posterior: Posterior | StackedPosterior,
        found: Suggestion,
        best: float | None,
        seconds: dict[str, float],
    ) -> dict[str, Any]:
        return {
            "phase": "model",
            "config": to_params(posterior.encoder.configuration(found.config)),
            **fit_entries(fits, posterior),
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

    def _incumbent(
        self, posterior: Posterior | StackedPosterior, observed: Observations, fixed: Fixed | None = None
    ) -> float | None:
        """Return the value to improve on, or None if no feasible value is known.

        With fixed values it is the best with these values, or the best prediction there if none was observed.
        """
        if observed.best is None:
            return None
        rows = observed.feasible if fixed is None else observed.feasible & fixed.hold(posterior.train)
        configs = posterior.train[rows]
        y = observed.y[rows]
        if len(y) and not self.noisy:
            return observed.best_of(y)
        if not len(y):
            assert fixed is not None
            encoded, allowed = posterior.encoder.resolve(np.vstack([posterior.train.unit_values, fixed.example]), fixed)
            configs = encoded[allowed]
        # The smallest noisy value belongs to a lucky configuration rather than to the best one: improving on it would
        # mean improving on a measurement error. The best posterior mean of the latent function at an observed
        # configuration (under a warp, the best median) replaces it: the plug-in incumbent of Vazquez et al. (2008,
        # J. Phys. Conf. Ser. 135) and of Picheny, Wagner & Ginsbourger (2013, Struct. Multidiscip. Optim. 48).
        # One thread, as in the search that follows, so that the last bits do not depend on the machine.
        with threadpool_limits(limits=1, user_api="blas"):
            means = posterior.predict(configs).centre_and_spread()[0]
        return observed.best_of(means)
