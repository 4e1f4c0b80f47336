"""Propose a configuration: fit the model to the finished trials and maximise the acquisition under its posterior."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from ConfigSpace import Configuration
from optuna import Study
from optuna.trial import FrozenTrial
from threadpoolctl import threadpool_limits

from slayr_py.acquisition import Suggestion, suggest
from slayr_py.inference import METHODS, GaussianProcess, Posterior
from slayr_py.kernels import NOISE
from slayr_py.space import Fixed, jsonable
from slayr_py.study.model.feasibility import FeasibilityFit, FeasibilityModels
from slayr_py.study.model.fit_cache import FitCache
from slayr_py.study.model.loop_fits import KernelFit, LoopFits, fit_entries
from slayr_py.study.model.options import LARGEST_NOISE, NOISELESS, SamplerOptions
from slayr_py.study.model.session import Phase, Session
from slayr_py.study.storage.attributes import suggestion_record
from slayr_py.study.storage.distributions import to_params
from slayr_py.study.storage.search_lock import search_lock
from slayr_py.study.storage.trials import Observations, excluded, pending, with_configuration

LARGEST_ERROR = 0.1
"""Largest accepted Monte Carlo standard error of the acquisition at its maximum: a tenth of an improvement or, for the
confidence bound, of a standard deviation of the targets. Above it the model is fitted again with more draws, unless
the acquisition is `negligible`: when EI vanishes in a converged study, its relative error is large after every fit."""

LEAST_FEASIBLE = 0.3
"""Probability of feasibility below which no more than two suggestions in a row may be. Where the models are wrong, the
acquisition may be largest in a corner that fails again and again."""

_IN_A_ROW = 2

NUTS_LIMIT = 1000
"""Number of observations above which the loop fits the posterior mode instead of sampling. A NUTS fit takes minutes
there, its time grows with the cube of their number, and the hyperparameters have little uncertainty left."""


class Fitted(NamedTuple):
    """The models behind a suggestion."""

    model: LoopFits
    fits: list[KernelFit]

    posterior: Posterior
    """Posterior of the objective."""

    feasibility: list[FeasibilityFit]
    """Models of failures and constraints."""

    stream: np.random.SeedSequence
    """Random numbers of the fits."""

    def extend(self, first: int, why: str) -> list[KernelFit] | None:
        """Plan four times the draws, with ``first`` draws of a first fit; None if more draws would not help."""
        return self.model.extend(self.fits, self.posterior, first, why)

    def refit(self, plan: list[KernelFit]) -> Fitted:
        """Return these models with the fits of the plan."""
        fits, posterior = self.model.fit(plan, self.stream.spawn(1)[0])
        return self._replace(fits=fits, posterior=posterior)


@dataclass(frozen=True)
class Proposer:
    """Fit the model and maximise the acquisition.

    Attributes
    ----------
    options : SamplerOptions
    feasibility : FeasibilityModels
        Fits the models of failures and constraints.
    fits : FitCache
    session : Session
    """

    options: SamplerOptions
    feasibility: FeasibilityModels
    fits: FitCache
    session: Session

    def fit(
        self,
        gp: GaussianProcess,
        study: Study,
        number: int,
        observed: Observations,
        seed: int,
    ) -> Fitted:
        """Fit ``gp`` and the models of feasibility for trial ``number``.

        The seed of the study, ``seed``, and the last fitted trial determine the random numbers of a fit. Suggestions
        from the same trials therefore share one fit, also after the study has been resumed.

        Raises
        ------
        InferenceError
            If Stan fails.
        """
        options = self.options.fit
        stream = np.random.SeedSequence([seed, max(observed.numbers) + 1]).spawn(1)[0]
        if len(observed.y) > NUTS_LIMIT and not METHODS[options.method].point_estimate:
            options = options.updated(method="map")
            self.session.warn(
                f"{len(observed.y)} observations are more than the {NUTS_LIMIT} for which the loop samples the "
                "hyperparameters: from now on it fits their posterior mode, in seconds instead of minutes",
                "",
            )
        model = LoopFits(gp.with_errors(observed.errors), study, observed, self.fits, self.session.warn)
        plan = model.plan(options)
        if self.options.warm_starts:
            plan = model.resume(number, plan)
        self.session.report(Phase("fitting", number))
        feasibility = self.feasibility.fit_all(study, number, options, seed, self.options.warm_starts)
        fits, posterior = model.fit(plan, stream)
        self._warn_of_noise(posterior)
        return Fitted(model, fits, posterior, feasibility, stream)

    def _warn_of_noise(self, posterior: Posterior) -> None:
        """Warn once if the model finds noise in an objective that was not declared noisy.

        That is the case if under all kernels 99% of the draws have more noise than the prior `NOISELESS` allows. The
        default prior gives this a probability of 95%, so that 95% of the draws would be no evidence. A point estimate
        says nothing about the others.
        """
        if self.options.noisy or NOISE.name in (self.options.priors or {}):
            return
        draws = [part.draws[NOISE.name] for part in posterior.parts if part.n_draws > 1]
        if not draws:
            return
        low = min(float(np.quantile(each, 0.01)) for each in draws)
        if low > LARGEST_NOISE:
            median = float(np.median(np.concatenate(draws)))
            self.session.warn(
                f"the model explains a part of the values by noise, whose standard deviation is {median:.2g} of the "
                f"values' (at least {low:.2g} with 99% probability): declare noisy=True, or rule noise out with "
                f"priors={{{NOISE.name!r}: {NOISELESS}}}",
                "noise",
            )


@dataclass
class Proposal(AbstractContextManager["Proposal"]):
    """A proposal in the making: the fit, the search, and what is recorded about them.

    Processes fit and search side by side. Each then takes the search lock of the study, searches again if another one
    has chosen a configuration meanwhile, and holds the lock until the ``with`` block ends. Store the proposal inside
    the block.

    Attributes
    ----------
    proposer : Proposer
    study : optuna.Study
    trial : FrozenTrial
    observed : Observations
    design : sequence of Configuration
        The initial design.
    stream : SeedSequence
        Random numbers of the search.
    fixed : Fixed, optional
        Values that the configuration has to have.
    """

    proposer: Proposer
    study: Study
    trial: FrozenTrial
    observed: Observations
    design: Sequence[Configuration]
    stream: np.random.SeedSequence
    fixed: Fixed | None = None
    _seconds: dict[str, float] = field(default_factory=lambda: {"fit": 0.0, "acquisition": 0.0})
    _lock: ExitStack = field(default_factory=ExitStack)
    _best: float | None = None
    _known: set[int] = field(default_factory=set)

    def __exit__(self, *error: object) -> None:
        self._lock.close()

    def fit(self, gp: GaussianProcess, seed: int) -> Fitted:
        """Fit ``gp`` and the models of feasibility, each until its diagnostics pass; see `Proposer.fit`."""
        with _timed(self._seconds, "fit"):
            fitted = self.proposer.fit(gp, self.study, self.trial.number, self.observed, seed)
            for fit in fitted.feasibility:
                fit.store(self.study, self.trial, self.proposer.options.warm_starts)
        return fitted

    def search(self, fitted: Fitted) -> Suggestion:
        """Maximise the acquisition."""
        diagnostics = jsonable(fitted.posterior.check().asdict())
        self.proposer.session.report(Phase("maximising", self.trial.number, diagnostics))
        self._best = self.incumbent(fitted.posterior)
        return self._search(fitted)

    def settle(self, fitted: Fitted, suggestion: Suggestion) -> Suggestion:
        """Take the search lock; return the suggestion, or a new one if others have chosen since the search."""
        self._lock.enter_context(search_lock(self.study))
        if with_configuration(self.study, self.trial) <= self._known:
            return suggestion
        return self._search(fitted)

    def _search(self, fitted: Fitted) -> Suggestion:
        space = fitted.posterior.encoder.space
        repeatable = self.observed.configs if self.proposer.options.noisy else ()
        self._known = with_configuration(self.study, self.trial)
        with _timed(self._seconds, "acquisition"):
            return suggest(
                fitted.posterior,
                self.proposer.options.criterion,
                best=self._best,
                t=self.trial.number + 1 - len(self.design),
                rng=np.random.default_rng(self.stream),
                pending=pending(self.study, space, self.trial, self.design),
                # Failed trials too: a model that ignores failures would suggest their configurations again.
                exclude=excluded(self.study, space, repeatable),
                feasibility=[fit.posterior for fit in fitted.feasibility],
                least_feasible=self._least_feasible(),
                fixed=self.fixed,
            )

    def fit_more_draws(self, fitted: Fitted, suggestion: Suggestion) -> Fitted | None:
        """Continue the fit with four times the draws if the acquisition is uncertain and more draws would help.

        It is uncertain if its Monte Carlo error is above `LARGEST_ERROR`, unless the acquisition is negligible.
        """
        negligible = self.proposer.options.criterion.negligible
        uncertain = suggestion.error > LARGEST_ERROR and suggestion.value >= negligible
        if not uncertain:
            return None
        why = f"Monte Carlo error {suggestion.error:.3g} > {LARGEST_ERROR} of the acquisition at its maximum"
        plan = fitted.extend(self.proposer.options.fit.draws, why)
        if plan is None:
            return None
        self.proposer.session.report(Phase("fitting", self.trial.number))
        with _timed(self._seconds, "fit"):
            return fitted.refit(plan)

    def record(self, fitted: Fitted, suggestion: Suggestion) -> dict[str, Any]:
        """Return the suggestion record of the trial: see `slayr_py.study.storage.attributes`."""
        posterior = fitted.posterior
        record = {
            "phase": "model",
            "config": to_params(posterior.encoder.configuration(suggestion.config)),
            **fit_entries(fitted.fits, posterior),
            "acquisition": {
                "name": self.proposer.options.criterion.name,
                **self.proposer.options.criterion.options(),
                "best": self._best,
                "value": float(suggestion.value),
                "error": suggestion.error if np.isfinite(suggestion.error) else None,
            },
            "predicted": {"mean": float(suggestion.mean), "sd": float(suggestion.sd)},
            "diagnostics": posterior.check().asdict(),
            "observations": len(posterior.train),
            "seconds": self._seconds,
        }
        if suggestion.note:
            record["note"] = suggestion.note
        if fitted.feasibility:
            record["feasible"] = suggestion.feasible
            record["conditions"] = {fit.name: fit.record() for fit in fitted.feasibility}
        return record

    def _least_feasible(self) -> float:
        """Return `LEAST_FEASIBLE` if the last two suggestions were below it, else 0.

        The records of the earlier trials decide, so that a resumed study makes the same suggestions. An entry that is
        not a number, as another program may write, counts as feasible.
        """
        records = [suggestion_record(t) for t in self.study.get_trials(deepcopy=False) if t.number < self.trial.number]
        last = [record.get("feasible") for record in records if record.get("phase") == "model"][-_IN_A_ROW:]
        small = [isinstance(value, int | float) and value < LEAST_FEASIBLE for value in last]
        return LEAST_FEASIBLE if len(small) == _IN_A_ROW and all(small) else 0.0

    def incumbent(self, posterior: Posterior) -> float | None:
        """Return the value to improve on, or None if no feasible value is known.

        With fixed values it is the best with these values, or the best prediction there if none was observed.
        """
        observed = self.observed
        fixed = self.fixed
        if observed.best is None:
            return None
        rows = observed.feasible if fixed is None else observed.feasible & fixed.hold(posterior.train)
        configs = posterior.train[rows]
        y = observed.y[rows]
        if len(y) and not self.proposer.options.noisy:
            return observed.best_of(y)
        if not len(y):
            assert fixed is not None
            encoded, allowed = posterior.encoder.resolve(np.vstack([posterior.train.unit_values, fixed.example]), fixed)
            configs = encoded[allowed]
        # The smallest noisy value is partly measurement error, so improvement must not be measured from it. The best
        # posterior mean of the latent function at an observed configuration (under a warp, the best median) replaces
        # it: the plug-in incumbent of Vazquez et al. (2008, J. Phys. Conf. Ser. 135) and of Picheny, Wagner &
        # Ginsbourger (2013, Struct. Multidiscip. Optim. 48).
        # One thread, as in the search that follows, so that the last bits do not depend on the machine.
        with threadpool_limits(limits=1, user_api="blas"):
            means = posterior.predict(configs).centre_and_spread()[0]
        return observed.best_of(means)


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    """Add the time of the ``with`` block to an entry."""
    clock = time.perf_counter()
    yield
    seconds[name] += time.perf_counter() - clock
