"""Models of feasibility: of failures, and of the constraints that trials report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from ConfigSpace import ConfigurationSpace
from numpy.typing import NDArray
from optuna import Study

from slayr_py.acquisition import log_probability_feasible
from slayr_py.inference import FitOptions, GaussianProcess, Posterior, Priors
from slayr_py.kernels import Kernel
from slayr_py.space import Encoded, Encoder, Fixed, FloatArray
from slayr_py.study.model.bands import with_bands
from slayr_py.study.model.compression import as_learned, compressed_unless_better
from slayr_py.study.model.fit_cache import Cache
from slayr_py.study.model.output_fits import OutputFit, OutputFits
from slayr_py.study.storage.trials import Observations, Results, constraint_results, outcomes
from slayr_py.threads import one_thread

Failures = Literal["learn", "ignore"]
"""Treatment of failed trials: model where the objective fails, or only avoid their configurations."""

SUCCESS = "success"
"""Name of the model of failures; it predicts the probability of success."""

_LIKELY = 0.5  # measured in docs/decisions/failures.md

_CONSTRAINT = "constraint "


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
    forms : Cache
        Whether constraints are linear, as far as it was found out.
    """

    encoder: Encoder
    kernel: Kernel
    priors: Priors
    failures: Failures
    forms: Cache[bool] = field(default_factory=lambda: Cache(size=1000))

    def fit_all(self, fits: OutputFits, options: FitOptions, penalties: Sequence[int]) -> list[OutputFit]:
        """Fit the models of feasibility; complete trials with the numbers ``penalties`` count as failures.

        Failures are modelled once the study has a success and a failure.

        Raises
        ------
        InferenceError
            If Stan fails.
        """
        models = list(self._models(fits, penalties))
        fits.cache.leave_room_for(len(models))
        return [fits.fit(name, gp, results, options) for name, gp, results in models]

    def data(self, study: Study, penalties: Sequence[int]) -> dict[str, Results]:
        """Return what the models are fitted to, by their names; values of constraints are not compressed."""
        found = {}
        if self.failures == "learn":
            results = outcomes(study, self.encoder.space, penalties)
            if 0 < results.values.sum() < len(results.values):
                found[SUCCESS] = results
        for constraint, results in with_bands(constraint_results(study, self.encoder.space)).items():
            found[f"{_CONSTRAINT}{constraint}"] = results
        return found

    def _models(self, fits: OutputFits, penalties: Sequence[int]) -> Iterator[tuple[str, GaussianProcess, Results]]:
        gp = GaussianProcess(self.encoder, self.kernel, self.priors)
        for name, results in self.data(fits.study, penalties).items():
            if name == SUCCESS:
                yield name, GaussianProcess(self.encoder, self.kernel, likelihood="probit"), results
            else:
                yield name, gp, compressed_unless_better(fits.study, name, gp, results, self.forms)


def believed(
    observed: Sequence[Observations], models: Mapping[str, Posterior], train: Encoded, fixed: Fixed | None
) -> Sequence[Observations]:
    """Return the observations of a noisy objective, with those as feasible that probably are.

    The values of its constraints are noisy too. Of the configurations that seem feasible, the best is often one that is
    not. So only those count that are more probably feasible than not by the models of the constraints, or the most
    probable ones, if there are none.
    """
    usable = observed[0].usable(train, fixed)
    rows = np.flatnonzero(usable if usable.any() else observed[0].feasible)
    if not of_constraints(models) or not len(rows):
        return observed
    feasible = np.zeros(len(train), dtype=np.bool_)
    feasible[rows[is_likely(probability_of_constraints(models, train[rows]))]] = True
    return [each._replace(feasible=feasible) for each in observed]


def probability_of_constraints(models: Mapping[str, Posterior], encoded: Encoded) -> FloatArray:
    """Return the probability (m,) that all constraints hold, 1 if none of the models is of a constraint."""
    with one_thread():  # as in the search that follows, so that the last bits do not depend on the machine
        return np.exp(log_probability_feasible(of_constraints(models), encoded))


def of_constraints(models: Mapping[str, Posterior]) -> list[Posterior]:
    """Return the models of constraints among those of feasibility."""
    return [model for name, model in models.items() if name != SUCCESS]


def is_likely(probability: FloatArray) -> NDArray[np.bool_]:
    """Return which configurations are more probably feasible than not, or the most probable ones, (n,)."""
    return np.asarray(probability >= min(_LIKELY, probability.max()))


def feasibility_results(
    study: Study, space: ConfigurationSpace, name: str, penalties: Sequence[int], linear: bool, numbers: Set[int]
) -> Results:
    """Return what a model of feasibility was fitted to, restricted to the trials with these numbers.

    ``penalties`` are the numbers of complete trials that counted as failures; ``linear`` says whether the values of a
    constraint were not compressed.

    Raises
    ------
    KeyError
        If the study has no constraint of that name.
    """
    if name != SUCCESS:
        constraint = name[len(_CONSTRAINT) :]
        alone = constraint_results(study, space, numbers)  # as earlier versions modelled the sides of a band
        results = alone[constraint] if constraint in alone else with_bands(alone)[constraint]
        return as_learned(results, linear)
    results = outcomes(study, space, penalties)
    rows = [row for row, number in enumerate(results.numbers) if number in numbers]
    return Results([results.numbers[row] for row in rows], [results.configs[row] for row in rows], results.values[rows])
