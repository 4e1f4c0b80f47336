"""Data of a study for the sections of its report: records, observations, posterior and best configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from typing import Any, NamedTuple, TypeVar

import numpy as np
from ConfigSpace import ConfigurationSpace
from optuna import Study
from optuna.trial import FrozenTrial
from scipy.special import ndtr

from slayr_py.errors import SlayrError
from slayr_py.inference import Posterior
from slayr_py.space import Encoded, Encoder, FloatArray
from slayr_py.study.results.latest_fits import feasibility_of_all, posterior_of_all, without_warp
from slayr_py.study.results.noise import is_noisy
from slayr_py.study.results.recommendation import Recommendation, recommend
from slayr_py.study.results.refits import fitted_numbers, last_feasibility
from slayr_py.study.results.tables import best_trial
from slayr_py.study.sampler import declared_space_of, space_of
from slayr_py.study.storage.attributes import study_record
from slayr_py.study.storage.objectives import goals_of, has_several
from slayr_py.study.storage.trials import Observations, observations

_Value = TypeVar("_Value")


class Absent(Exception):
    """Raised for a part of the page without content, which is not a failure; the message is the reason."""


class Centre(NamedTuple):
    """The configuration through which slices and maps are drawn."""

    encoded: Encoded
    """One row."""

    genotype: FloatArray
    """(D,): unit values of all parameters; inactive ones have the default of the space."""

    what: str
    """"the best configuration (trial 12)" or "the recommended configuration (trial 12)"."""


def once(compute: Callable[[Reading], _Value]) -> Callable[[Reading], _Value]:
    """Compute a value of a study at its first use; if that fails, raise the same error at every use."""

    @wraps(compute)
    def remembered(reading: Reading) -> _Value:
        if compute not in reading.outcomes:
            try:
                reading.outcomes[compute] = compute(reading), None
            except Exception as error:  # every section that needs the value gives the reason
                reading.outcomes[compute] = None, error
        value: _Value
        value, failure = reading.outcomes[compute]
        if failure is not None:
            raise failure
        return value

    return remembered


class Reading:
    """Data of a study, each part computed at its first use.

    Parameters
    ----------
    study : optuna.Study
    progress : callable, optional
        Receives the names of slow steps.
    fit : callable, optional
        Returns the posterior of an objective, by its number, given all finished trials; by default it is fitted.
    epsilon : float, optional
        Shortfall from the optimum, in the user's units, of the nearly optimal configurations to describe.
    """

    def __init__(
        self,
        study: Study,
        progress: Callable[[str], None] | None = None,
        fit: Callable[[int], Posterior] | None = None,
        epsilon: float | None = None,
    ) -> None:
        self.study = study
        self.epsilon = epsilon
        self.fit = fit or (lambda objective: posterior_of_all(study, objective=objective))
        self.progress = progress or (lambda step: None)
        self.outcomes: dict[Callable[[Reading], Any], tuple[Any, Exception | None]] = {}
        self.trials = study.get_trials(deepcopy=False)
        self.record: Mapping[str, Any] = study_record(study) or {}
        self.has_several = has_several(study)
        self.maximize = goals_of(study)[0].maximize
        self.noisy = is_noisy(study)

    @property
    @once
    def best(self) -> FrozenTrial | None:
        """The best feasible trial; None if there is none, or if the study has several objectives."""
        return None if self.has_several else best_trial(self.study)

    @property
    @once
    def space(self) -> ConfigurationSpace | None:
        """The declared space; None if the study has none."""
        return space_of(self.study) if self.record or declared_space_of(self.study) is not None else None

    @property
    @once
    def observed(self) -> Observations:
        """The trials that a model is fitted to."""
        return observations(self.study, self._declared_space())

    @property
    @once
    def penalties(self) -> list[int]:
        """Numbers of the complete trials that count as failures; none if a trial cannot be read, which fits say."""
        with suppress(Absent, SlayrError):
            return self.observed.penalties
        return []

    @property
    @once
    def posterior(self) -> Posterior:
        """The posterior of the only or the first objective given all finished trials; errors as `posteriors`."""
        return self.posteriors[0]

    @property
    @once
    def unwarped(self) -> Posterior:
        """The posterior of the same model without its warp, for descriptions of the whole space."""
        return without_warp(self.posterior)

    @property
    @once
    def posteriors(self) -> list[Posterior]:
        """The posterior of each objective given all finished trials.

        Raises
        ------
        Absent
            If the study has no model, or no fit yet.
        """
        self._declared_space()
        if not fitted_numbers(self.study):
            raise Absent("No model has been fitted yet: no trial was suggested by one.")
        self.progress("fitting the model to all finished trials")
        return [self.fit(goal.number) for goal in goals_of(self.study)]

    @property
    @once
    def feasibility(self) -> dict[str, Posterior]:
        """The models of failures and constraints given all finished trials, by name.

        Of a study without a declared space they are those behind the last suggestion.
        """
        if not fitted_numbers(self.study):
            return {}
        self.progress("fitting the models of failures and constraints")
        return last_feasibility(self.study) if self.space is None else feasibility_of_all(self.study, self.encoder)

    @property
    @once
    def recommendation(self) -> Recommendation:
        """The evaluated configuration with the best posterior mean, of a noisy objective."""
        return recommend(self.study, self.posterior)

    @property
    def encoder(self) -> Encoder:
        """Encoder of the posterior."""
        return self.posterior.encoder

    @property
    @once
    def centre(self) -> Centre:
        """The best configuration, or the recommended one of a noisy objective."""
        if self.noisy:
            number = self.recommendation.number
            kind = "recommended"
        elif self.best is not None:
            number = self.best.number
            kind = "best"
        else:
            raise Absent("No trial is feasible, so there is no best configuration.")
        observed = self.observed
        encoder = self.encoder
        if number not in observed.numbers:
            raise Absent(f"The best trial, {number}, is not a configuration of the declared space.")
        encoded = encoder.encode([observed.configs[observed.numbers.index(number)]])
        return Centre(encoded, with_defaults(encoder, encoded), f"the {kind} configuration (trial {number})")

    @property
    @once
    def noise(self) -> FloatArray:
        """Standard deviation (n,) of the noise of the observations, estimated by the model, in the objective's units.

        Under a warp it depends on the value; half the central 68% interval then replaces the standard deviation.
        """
        prediction = self.posterior.predict(self.posterior.train)
        spread = [
            np.diff(prediction.quantile(ndtr([-1.0, 1.0]), observation), axis=0)[0] / 2 for observation in (False, True)
        ]
        return np.asarray(np.sqrt(np.maximum(np.square(spread[1]) - np.square(spread[0]), 0.0)))

    def _declared_space(self) -> ConfigurationSpace:
        if self.space is None:
            raise Absent(
                "This study declares no space of slayr_py: its trials come from another sampler, or from a "
                "StanGPSampler without a space, and there is no model to show. The sampler of this session is "
                f"{type(self.study.sampler).__name__}."
            )
        return self.space


def with_defaults(encoder: Encoder, encoded: Encoded) -> FloatArray:
    """Return the unit values (D,) of one configuration; inactive parameters have the default of the space."""
    defaults = [d.unit_value(encoder.space[d.name].default_value) for d in encoder.dimensions]
    return np.where(encoded.active[0], encoded.unit_values[0], defaults)
