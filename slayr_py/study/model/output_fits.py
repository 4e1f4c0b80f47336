"""Fits to a further output of the trials: failures, constraints and costs."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from optuna import Study
from optuna.trial import FrozenTrial

from slayr_py.inference import FitOptions, GaussianProcess, Posterior, as_stan_seed
from slayr_py.study.model.fit_cache import FitCache, fit_key
from slayr_py.study.storage.fit_records import last_warm_start, store_fit
from slayr_py.study.storage.suggestion import OutputEntry
from slayr_py.study.storage.trials import Results, to_ranges


class OutputFit(NamedTuple):
    """A fitted model of a further output for a suggestion."""

    name: str
    """Name of the model in the attributes of trials."""

    posterior: Posterior
    numbers: list[int]
    """Numbers of the trials that it was fitted to."""
    penalties: Sequence[int]
    """Numbers of those that were complete and count as failures."""
    linear: bool
    """Whether the model is of a constraint whose values are not compressed."""

    def store(self, study: Study, trial: FrozenTrial, warm_starts: bool) -> None:
        """Store the fit in the trial whose suggestion uses it."""
        store_fit(study, trial, self.posterior, self.numbers, warm_starts, self.name)

    def record(self) -> OutputEntry:
        """Return the entry of the suggestion record."""
        entry: OutputEntry = {
            "method": self.posterior.record["arguments"]["method"],
            "observations": len(self.numbers),
            "diagnostics": self.posterior.check().asdict(),
        }
        if self.penalties:
            entry["penalties"] = to_ranges(self.penalties)
        if self.linear:
            entry["linear"] = True
        return entry


@dataclass(frozen=True)
class OutputFits:
    """Fit models of further outputs for the suggestion of one trial.

    Attributes
    ----------
    cache : FitCache
    study : optuna.Study
    number : int
        Number of the trial.
    seed : int
        Of the study.
    warm_starts : bool
    """

    cache: FitCache
    study: Study
    number: int
    seed: int
    warm_starts: bool

    def fit(self, name: str, gp: GaussianProcess, results: Results, options: FitOptions) -> OutputFit:
        """Fit a model to one result of each trial.

        Raises
        ------
        InferenceError
            If Stan fails.
        """
        # The stream depends on the data instead of the trial, so that equal data give equal fits.
        stream = np.random.SeedSequence([self.seed, zlib.crc32(name.encode()), max(results.numbers) + 1])
        last = None
        if self.warm_starts:
            last = last_warm_start(self.study, self.number, gp, options, results.numbers, name, results.linear)
        start = None if last is None else last.start
        seed = as_stan_seed(stream)
        key = fit_key(self.study, name, results, [results.values], seed, options)

        def fitted() -> Posterior:
            return gp.fit(results.configs, results.values, seed=seed, start=start, options=options)

        posterior = results.limited(self.cache.get(key, fitted))
        return OutputFit(name, posterior, results.numbers, results.penalties, results.linear)
