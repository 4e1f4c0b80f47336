"""Recommend a configuration of a study: the best one evaluated, for a noisy objective by its posterior mean.

The best value of a noisy objective is partly noise: the mean value of its configuration is worse. The posterior mean is
shrunk towards the other observations. Values with known errors are noisy too. The values of an exact objective are what
they are: a model that takes a part of them for noise lacks details of the function. The same holds for the values of
constraints: of those that seem to be satisfied, the best objective belongs to one that hardly is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from optuna import Study
from optuna.trial import FrozenTrial

from slayr_py.errors import DataError
from slayr_py.inference import Posterior
from slayr_py.space import Encoded, Fixed
from slayr_py.study.model.feasibility import believed, probability_of_constraints
from slayr_py.study.results.latest_fits import feasibility_of_all
from slayr_py.study.results.noise import is_declared_noisy, is_noisy
from slayr_py.study.results.refits import fitted_numbers
from slayr_py.study.results.tables import comparable_trials, fixed_values_text
from slayr_py.study.sampler import fixed_for_results
from slayr_py.study.storage.distributions import to_params
from slayr_py.study.storage.trials import Observations, constraint_results, observations

_SURE = 0.95  # a smaller one is told with the recommendation


class Recommendation(NamedTuple):
    """The best evaluated configuration: of a noisy objective the one with the best posterior mean."""

    config: dict[str, Any]
    """Active parameters by name."""

    mean: float
    """The observed value of an exact objective, in the user's units. Of a noisy one the posterior mean of the latent
    function there; under a warp the median."""

    sd: float
    """0 for an exact objective. Of a noisy one the posterior standard deviation of the latent function there; under a
    warp, see `Prediction.centre_and_spread`."""

    number: int
    """Number of the first feasible trial with this configuration, of an exact objective that of the best trial."""

    feasible: float = 1.0
    """Probability that the constraints hold there, by their models, if the objective is declared noisy; otherwise 1:
    the trial satisfies them."""

    @classmethod
    def observed(cls, best: FrozenTrial) -> Recommendation:
        """Return the best trial of an exact objective."""
        return cls(dict(best.params), float(best.values[0]), 0.0, best.number)

    def __str__(self) -> str:
        """Return the prediction and the trial, ``1.23 ± 0.04 at trial 7``, or the exact value and the trial.

        A probability of feasibility below 95% is added.
        """
        spread = f" ± {self.sd:.2g}" if self.sd else ""
        doubt = f" (feasible with probability {self.feasible:.2f})" if self.feasible < _SURE else ""
        return f"{self.mean:.6g}{spread} at trial {self.number}{doubt}"


def has_recommendation(study: Study) -> bool:
    """Return whether to show a recommendation by default: the values are noisy and there is a fit."""
    return is_noisy(study) and bool(fitted_numbers(study))


def as_believed(
    study: Study,
    observed: Sequence[Observations],
    models: Mapping[str, Posterior],
    encoded: Encoded,
    fixed: Fixed | None,
) -> Sequence[Observations]:
    """Return the observations of a study, with those as feasible that probably are if it is declared noisy."""
    return believed(observed, models, encoded, fixed) if is_declared_noisy(study) else observed


def comparable_rows(study: Study, observed: Observations) -> list[int]:
    """Return the rows of the observations that are feasible trials with the fixed values of the study's sampler."""
    comparable = {trial.number for trial in comparable_trials(study)}
    return [row for row, number in enumerate(observed.numbers) if observed.feasible[row] and number in comparable]


def recommend(study: Study, posterior: Posterior) -> Recommendation:
    """Return the feasible configuration with the smallest posterior mean, the largest one if the study maximises.

    It is that of a noisy objective: see `Recommendation.observed`. If the objective is declared noisy, so are the
    values of constraints, and the best of the trials that seem feasible is often one that is not. So only
    configurations are compared which are more probably feasible than not by the models of the constraints (or the most
    probable one, if there is none). If the study's sampler has fixed values, only configurations with these values are
    compared.

    Parameters
    ----------
    study : optuna.Study
        Has a finished trial with a finite value.
    posterior : Posterior
        Of its values.
    """
    encoder = posterior.encoder
    observed = observations(study, encoder.space)
    models: dict[str, Posterior] = {}
    if is_declared_noisy(study) and constraint_results(study, encoder.space):
        models = feasibility_of_all(study, encoder)
        fixed = fixed_for_results(study, encoder)
        (observed,) = believed([observed], models, encoder.encode(observed.configs), fixed)
    first: dict[str, int] = {}
    for row in comparable_rows(study, observed):
        first.setdefault(repr(to_params(observed.configs[row])), row)
    if not first:
        which = f"feasible trial{fixed_values_text(study)}"
        raise DataError(f"study {study.study_name!r} has no {which} to recommend")
    rows = list(first.values())
    configs = [observed.configs[row] for row in rows]
    means, sds = posterior.predict(configs).centre_and_spread()
    best = int(np.argmax(means) if observed.maximize else np.argmin(means))
    found = to_params(configs[best]), float(means[best]), float(sds[best]), observed.numbers[rows[best]]
    feasible = probability_of_constraints(models, encoder.encode([configs[best]]))
    return Recommendation(*found, float(feasible[0]))
