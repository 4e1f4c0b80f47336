"""Models of feasibility: of failures, and of the constraints that trials report."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from ConfigSpace import ConfigurationSpace
from optuna import Study
from optuna.trial import FrozenTrial

from slayr_py.inference import FitOptions, GaussianProcess, Posterior, Priors, as_stan_seed
from slayr_py.kernels import Kernel
from slayr_py.space import Encoder, FloatArray
from slayr_py.study.model.fit_cache import FitCache
from slayr_py.study.storage.fit_records import last_warm_start, store_fit
from slayr_py.study.storage.trials import Results, constraint_results, outcomes

Failures = Literal["learn", "ignore"]
"""Treatment of failed trials: model where the objective fails, or only avoid their configurations."""

SUCCESS = "success"
"""Name of the model of failures; it predicts the probability of success."""

_CONSTRAINT = "constraint "

_SCALED_BY = 10  # trials that scale the values of a constraint: about an initial design


class FeasibilityFit(NamedTuple):
    """A fitted model of feasibility for a suggestion."""

    name: str
    """`SUCCESS`, or "constraint" and the name of a constraint."""

    posterior: Posterior
    numbers: list[int]
    """Numbers of the trials that it was fitted to."""

    def store(self, study: Study, trial: FrozenTrial, warm_starts: bool) -> None:
        """Store the fit in the trial whose suggestion uses it."""
        store_fit(study, trial, self.posterior, self.numbers, warm_starts, self.name)

    def record(self) -> dict[str, Any]:
        """Return the entry of the suggestion record."""
        return {
            "method": self.posterior.record["arguments"]["method"],
            "observations": len(self.numbers),
            "diagnostics": self.posterior.check().asdict(),
        }


@dataclass(frozen=True)
class FeasibilityModels:
    """Fit the models of feasibility of a study.

    Attributes
    ----------
    encoder : Encoder
    kernel : Kernel
        Kernel of all models.
    priors : mapping
        Priors of the models of constraints, whose values are observed with the noise of the objective.
    failures : {"learn", "ignore"}
    fits : FitCache
    """

    encoder: Encoder
    kernel: Kernel
    priors: Priors
    failures: Failures
    fits: FitCache

    def fit_all(
        self, study: Study, number: int, options: FitOptions, seed: int, warm_starts: bool
    ) -> list[FeasibilityFit]:
        """Fit the models of feasibility for trial ``number``.

        Failures are modelled once the study has a success and a failure.

        Raises
        ------
        InferenceError
            If Stan fails.
        """
        fits = []
        for name, gp, results in self._models(study):
            # The stream depends on the data instead of the trial, so that equal data give equal fits.
            stream = np.random.SeedSequence([seed, zlib.crc32(name.encode()), max(results.numbers) + 1])
            start = last_warm_start(study, number, gp, options.chains, results.numbers, name) if warm_starts else None
            stan_seed = as_stan_seed(stream)
            key = (study.study_name, name, tuple(results.numbers), results.values.tobytes(), stan_seed, options)
            posterior = self.fits.get(key, _fit(gp, results, seed=stan_seed, start=start, options=options))
            fits.append(FeasibilityFit(name, posterior, results.numbers))
        return fits

    def _models(self, study: Study) -> Iterator[tuple[str, GaussianProcess, Results]]:
        if self.failures == "learn":
            results = outcomes(study, self.encoder.space)
            if 0 < results.values.sum() < len(results.values):
                yield SUCCESS, GaussianProcess(self.encoder, self.kernel, likelihood="probit"), results
        for name, results in constraint_results(study, self.encoder.space).items():
            compressed = results._replace(values=compress(results.values))
            yield f"{_CONSTRAINT}{name}", GaussianProcess(self.encoder, self.kernel, self.priors), compressed


def feasibility_results(study: Study, space: ConfigurationSpace, name: str, numbers: Set[int]) -> Results:
    """Return what a model of feasibility was fitted to, restricted to the trials with these numbers.

    Raises
    ------
    KeyError
        If the study has no constraint of that name.
    """
    results = outcomes(study, space) if name == SUCCESS else constraint_results(study, space)[name[len(_CONSTRAINT) :]]
    rows = [row for row, number in enumerate(results.numbers) if number in numbers]
    values = results.values[rows]
    return Results(
        [results.numbers[row] for row in rows],
        [results.configs[row] for row in rows],
        values if name == SUCCESS else compress(values),
    )


def compress(values: FloatArray) -> FloatArray:
    """Compress the tails of constraint values (n,), in the order of the trials: asinh(c / s), s from the first trials.

    One violation that is a thousand times larger than the others would otherwise decide the scale, and small violations
    would be invisible. Unlike the sign(c) log(1 + |c| / s) of Eriksson & Poloczek (2021, "Scalable constrained Bayesian
    optimization") the function is smooth at 0, where the model decides.

    s is the median of |c| over the first `_SCALED_BY` trials. The median over all trials shrinks when the loop
    converges to a border, until the compressed values are a step there.
    """
    scale = float(np.median(np.abs(values[:_SCALED_BY])))
    return np.arcsinh(values / (scale if scale > 0 else 1.0))


def _fit(gp: GaussianProcess, results: Results, **arguments: Any) -> Callable[[], Posterior]:
    return lambda: gp.fit(results.configs, results.values, **arguments)
