"""Propose a configuration: fit the model to the finished trials and maximise the acquisition under its posterior."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence, Set
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Literal, cast

import numpy as np
from ConfigSpace import Configuration
from optuna import Study
from optuna.trial import FrozenTrial

from slayr_py.acquisition import OptimumPrior, Outcomes, SearchKeywords, Suggestion, suggest, suggest_tradeoff
from slayr_py.inference import GaussianProcess, Posterior
from slayr_py.kernels import NOISE
from slayr_py.space import Encoded, Encoder, Fixed, jsonable
from slayr_py.study.model.exhaustion import avoided
from slayr_py.study.model.incumbent import Front, Incumbent, counts_as_noisy, front_of, incumbent
from slayr_py.study.model.loop_fits import entries_of_all, fit_entries
from slayr_py.study.model.proposer import FittedModels, Proposer
from slayr_py.study.model.session import Phase
from slayr_py.study.storage.attributes import is_history, suggestion_record
from slayr_py.study.storage.distributions import to_params
from slayr_py.study.storage.reading import reading_once, trials_of
from slayr_py.study.storage.search_lock import search_lock
from slayr_py.study.storage.suggestion import (
    AcquisitionEntry,
    KernelEntries,
    ObjectiveEntry,
    Predicted,
    Seconds,
    SuggestionRecord,
)
from slayr_py.study.storage.trials import Observations, pending, with_configuration

LARGEST_ERROR = 0.1
"""Largest accepted Monte Carlo standard error of the acquisition at its maximum: a tenth of an improvement or, for the
confidence bound, of a standard deviation of the targets times `State.scale`. Above it the model is fitted again with
more draws, unless the acquisition is `negligible`: when EI vanishes in a converged study, its relative error is large
after every fit."""

LEAST_FEASIBLE = 0.3
"""Probability of feasibility below which no more than two suggestions in a row may be. Where the models are wrong, the
acquisition may be largest in a corner that fails again and again."""

_IN_A_ROW = 2  # suggestions with a small probability, after which the next one needs a larger one
_EQUALLY_GOOD = 8  # best past experiments, of many with the same value, that are believed


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
    observed : sequence of Observations
        One for each objective.
    ended : set of int
        Numbers of the trials that had ended when the observations were read. The others are pending, also those that
        end during the fit.
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
    observed: Sequence[Observations]
    ended: Set[int]
    design: Sequence[Configuration]
    stream: np.random.SeedSequence
    fixed: Fixed | None = None
    _seconds: Seconds = field(default_factory=lambda: Seconds(fit=0.0, acquisition=0.0))
    _lock: ExitStack = field(default_factory=ExitStack)
    _improved: Incumbent | Front = field(default_factory=lambda: Incumbent(None))
    _beyond: float | None = None
    _known: set[int] = field(default_factory=set)

    def __exit__(self, *error: object) -> None:
        self._lock.close()

    def fit(self, gp: GaussianProcess, seed: int) -> FittedModels:
        """Fit ``gp`` and the models of feasibility, each until its diagnostics pass; see `Proposer.fit`."""
        with _timed(self._seconds, "fit"):
            fitted = self.proposer.fit(gp, self.study, self.trial.number, self.observed, seed)
            for fit in fitted.outputs:
                fit.store(self.study, self.trial, self.proposer.options.warm_starts)
        return fitted

    def search(self, fitted: FittedModels) -> Suggestion:
        """Maximise the acquisition."""
        diagnostics = jsonable(fitted.check().asdict())
        self.proposer.session.report(Phase("maximising", self.trial.number, diagnostics))
        observed = fitted.believed(self.observed, self.proposer.options, self.fixed)
        if len(observed) > 1:
            given = self.proposer.options.reference_point
            self._improved = front_of(self.study, observed, fitted.posteriors, self.fixed, self._noisy, given)
        else:
            self._improved = incumbent(observed[0], fitted.posterior, self.fixed, self._noisy)
        return self._search(fitted)

    def settle(self, fitted: FittedModels, suggestion: Suggestion) -> Suggestion:
        """Take the search lock; return the suggestion, or a new one if others have chosen since the search."""
        self._lock.enter_context(search_lock(self.study))
        with reading_once(self.study):
            known = with_configuration(self.study, self.trial)
        if known <= self._known:
            return suggestion
        return self._search(fitted)

    def _search(self, fitted: FittedModels) -> Suggestion:
        """Maximise the acquisition beside the trials that have a configuration now."""
        with reading_once(self.study):
            self._known = with_configuration(self.study, self.trial)
            least_feasible = self._least_feasible()
            terms = self._terms(fitted)
        with _timed(self._seconds, "acquisition"):
            if isinstance(self._improved, Front):
                return suggest_tradeoff(
                    fitted.posteriors,
                    front=self._improved.values,
                    reference=self._improved.reference,
                    noisy=self._noisy,
                    configs=self._improved.configs,
                    errors=[each.further_error for each in self.observed],
                    rng=np.random.default_rng(self.stream),
                    least_feasible=least_feasible,
                    **terms,
                )

            improved = self._improved

            def improve_on(best: float | None) -> Suggestion:
                return suggest(
                    fitted.posterior,
                    self.proposer.options.criterion,
                    best=best,
                    t=self.trial.number + 1 - len(self.design),
                    rng=np.random.default_rng(self.stream),
                    recommended=improved.recommended,
                    error=self.observed[0].further_error,
                    least_feasible=least_feasible,
                    **terms,
                )

            suggestion = improve_on(improved.value)
            self._beyond = self._useful_value(fitted.posterior, suggestion)
            return suggestion if self._beyond is None else improve_on(self._beyond)

    def _terms(self, fitted: FittedModels) -> SearchKeywords:
        """Return what determines the search besides the posteriors of the objectives and what to improve on."""
        encoder = fitted.posterior.encoder
        running = pending(self.study, encoder.space, self.trial, self.design, self.ended)
        repeatable = self.observed[0].configs if self._noisy else ()
        failures = self.proposer.options.failures
        return {
            "pending": [*running, *self._best_of_past(fitted.posterior.train)],
            # Failed trials too: a model that ignores failures would suggest their configurations again.
            "exclude": avoided(self.study, encoder, self.fixed, failures, running, repeatable),
            "feasibility": [fit.posterior for fit in fitted.feasibility],
            "fixed": self.fixed,
            "prior": self._prior,
            "cost": None if fitted.cost is None else fitted.cost.posterior,
            "outcomes": None if self._noisy else self._outcomes(fitted.posterior.train),
            "interior": self.proposer.options.inside(len(self.observed)),
        }

    @property
    def _noisy(self) -> bool:
        """Whether the best observed value is partly luck, and an evaluation worth repeating."""
        return counts_as_noisy(self.proposer.options, self.observed)

    def _best_of_past(self, train: Encoded) -> list[Configuration]:
        """Return the best past experiments of an exact objective, if no later evaluation is better.

        Unless the user gives a prior of the noise, past experiments may be noisy. As long as the model does not know
        whether they are, it believes that the function may be better there than the value. Conditioned on its mean,
        there is nothing to gain right beside them.
        """
        first, *others = self.observed
        usable = first.usable(train, self.fixed)
        if self._noisy or NOISE.name in (self.proposer.options.priors or {}) or others or not usable.any():
            return []
        best = {first.numbers[row]: first.configs[row] for row in np.flatnonzero(first.leading(usable))}
        past = [trial.number for trial in trials_of(self.study) if trial.number in best and is_history(trial)]
        return [best[number] for number in past[:_EQUALLY_GOOD]]

    def _outcomes(self, train: Encoded) -> Outcomes:
        """Return values and feasibility of each evaluation; the best value that the next one is compared with leads.

        Of several objectives, and if nothing is feasible, all lead. Evaluations with other values than the fixed ones,
        such as those of other contexts, are not compared.
        """
        first, *others = self.observed
        rows = np.column_stack([*(each.uncompressed for each in self.observed), first.feasible])
        everything = np.ones(len(rows), dtype=np.bool_)
        compared = everything if self.fixed is None else self.fixed.hold(train)
        usable = compared & first.feasible
        if others or not usable.any():
            return Outcomes(rows, everything, everything)
        return Outcomes(rows, first.leading(usable), compared)

    @property
    def _prior(self) -> OptimumPrior | None:
        """The belief about the optimum, with the exponent of the trial; None in every second suggestion.

        Two methods that take turns need at most twice the evaluations of the better one.
        """
        prior = self.proposer.prior
        if prior is None or (self.trial.number - len(self.design)) % 2:
            return None
        return prior.tempered(self.proposer.options.beta / (self.trial.number + 1))

    def _useful_value(self, posterior: Posterior, suggestion: Suggestion) -> float | None:
        """Return the value to improve on if the expected improvement is below the user's tolerance, else None."""
        options = self.proposer.options
        if options.tolerance is None or isinstance(self._improved, Front) or self._improved.value is None:
            return None
        gain = options.criterion.gain(suggestion.value)
        if gain is None or gain * abs(posterior.y_sd) >= options.tolerance:
            return None
        return self._improved.value + (options.tolerance if self.observed[0].maximize else -options.tolerance)

    def fit_more_draws(self, fitted: FittedModels, suggestion: Suggestion) -> FittedModels | None:
        """Continue the fit with four times the draws if the acquisition is uncertain and more draws would help.

        It is uncertain if its Monte Carlo error is above `LARGEST_ERROR`, unless the acquisition is negligible.
        """
        criterion = self.proposer.options.criterion
        negligible = criterion.at_scale(criterion.negligible, suggestion.scale)
        uncertain = suggestion.error > LARGEST_ERROR and suggestion.value >= negligible
        if not uncertain:
            return None
        why = f"Monte Carlo error {suggestion.error:.3g} > {LARGEST_ERROR} of the acquisition at its maximum"
        self.proposer.session.report(Phase("fitting", self.trial.number))
        with _timed(self._seconds, "fit"):
            more = [fit.extended(self.proposer.options.fit.draws, why) for fit in fitted.objectives]
        if not any(more):
            return None
        pairs = zip(more, fitted.objectives, strict=True)
        return fitted._replace(objectives=tuple(new or old for new, old in pairs))

    def record(self, fitted: FittedModels, suggestion: Suggestion) -> SuggestionRecord:
        """Return the suggestion record of the trial."""
        record: SuggestionRecord = {
            "phase": "model",
            "config": to_params(fitted.posterior.encoder.configuration(suggestion.config)),
            "diagnostics": fitted.check().asdict(),
            "observations": len(fitted.posterior.train),
            "seconds": self._seconds,
        }
        fits = [fit_entries(fit.fits, fit.posterior) for fit in fitted.objectives]
        predicted: list[Predicted] = [{"mean": mean, "sd": sd} for mean, sd in suggestion.predicted]
        if isinstance(self._improved, Front):
            objectives = _objective_entries(fitted, fits, predicted)
            record = {**record, **entries_of_all(fits), "objectives": objectives}
        else:
            record = {**record, **fits[0], "predicted": predicted[0]}
        record["acquisition"] = self._acquisition_entry(fitted.posterior.encoder, suggestion)
        if suggestion.note:
            record["note"] = suggestion.note
        if fitted.feasibility:
            record["feasible"] = suggestion.feasible
            record["conditions"] = {fit.name: fit.record() for fit in fitted.feasibility}
        if fitted.cost is not None:
            name = str(self.proposer.options.cost)
            record["cost"] = {"name": name, "expected": suggestion.cost, **fitted.cost.record()}
        return record

    def _acquisition_entry(self, encoder: Encoder, suggestion: Suggestion) -> AcquisitionEntry:
        """Return the criterion, what it improves on, and its value and factors at the suggestion."""
        if isinstance(self._improved, Front):
            front = self._improved
            entries = {"name": "ehvi", "reference": front.reference.tolist(), "front": front.size}
        else:
            criterion = self.proposer.options.criterion
            entries = {"name": criterion.name, **criterion.options(), "best": self._improved.value}
            if self._improved.recommended and criterion.is_of_means:
                entries["recommended"] = [to_params(config) for config in self._improved.recommended]
        error = suggestion.error if np.isfinite(suggestion.error) else None
        entry = cast(AcquisitionEntry, {**entries, "value": float(suggestion.value), "error": error})
        if self._beyond is not None:
            entry["beyond"] = self._beyond
        if (prior := self._prior) is not None:
            there = encoder.encode([suggestion.config])
            entry["prior"] = {"exponent": prior.exponent, "log": float(prior.values(there)[0])}
        if suggestion.interior:
            entry["interior"] = suggestion.interior
        if suggestion.new:
            entry["new"] = suggestion.new
        return entry

    def _least_feasible(self) -> float:
        """Return `LEAST_FEASIBLE` if the last two suggestions were below it, else 0.

        The records of the earlier trials decide, so that a resumed study makes the same suggestions. An entry that is
        not a number, as another program may write, counts as feasible.
        """
        records = [suggestion_record(t) for t in trials_of(self.study) if t.number < self.trial.number]
        last = [record.get("feasible") for record in records if record.get("phase") == "model"][-_IN_A_ROW:]
        small = [isinstance(value, int | float) and value < LEAST_FEASIBLE for value in last]
        return LEAST_FEASIBLE if len(small) == _IN_A_ROW and all(small) else 0.0


def _objective_entries(
    fitted: FittedModels, fits: Sequence[KernelEntries], predicted: Sequence[Predicted]
) -> list[ObjectiveEntry]:
    """Return the entries of several objectives, from those of their fits and the predictions at the suggestion."""
    return [
        {"name": each.goal.name, **fit, "predicted": moments, "diagnostics": each.posterior.check().asdict()}
        for each, fit, moments in zip(fitted.objectives, fits, predicted, strict=True)
    ]


@contextmanager
def _timed(seconds: Seconds, name: Literal["fit", "acquisition"]) -> Iterator[None]:
    """Add the time of the ``with`` block to an entry."""
    clock = time.perf_counter()
    yield
    seconds[name] += time.perf_counter() - clock
