"""What the sections of a report read from a study: its records, observations, posterior and best configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from ConfigSpace import ConfigurationSpace
from numpy.typing import NDArray
from optuna import Study
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial
from scipy.special import ndtr

from slayr_py.inference import Posterior, StackedPosterior
from slayr_py.space import Encoded, Encoder, FloatArray
from slayr_py.study.results.recommendation import Recommendation, is_noisy, posterior_of_all, recommend
from slayr_py.study.results.refits import conditions_of, fitted_numbers, last_fitted
from slayr_py.study.results.tables import best_trial
from slayr_py.study.sampler import declared_space_of, space_of
from slayr_py.study.storage.attributes import study_record
from slayr_py.study.storage.trials import Observations, observations

_Value = TypeVar("_Value")


class Absent(Exception):
    """The reason for a part of the page that has no content; it is no failure."""


class Centre(NamedTuple):
    """The configuration through which slices and maps are drawn."""

    encoded: Encoded
    """One row."""

    genotype: FloatArray
    """(D,): unit values of all parameters; inactive ones have the default of the space."""

    what: str
    """"the best configuration (trial 12)" or "the recommended configuration (trial 12)"."""


class Reading:
    """A study as the sections of its report read it.

    Everything is computed at its first use. What fails then, fails again at every use, so that each section that needs
    it gives the reason.

    Parameters
    ----------
    study : optuna.Study
    progress : callable, optional
        Receives the names of slow steps.
    fit : callable, optional
        Returns the posterior given all finished trials; by default it is fitted.
    """

    def __init__(
        self,
        study: Study,
        progress: Callable[[str], None] | None = None,
        fit: Callable[[], Posterior | StackedPosterior] | None = None,
    ) -> None:
        self.study = study
        self.fit = fit or (lambda: posterior_of_all(study))
        self.progress = progress or (lambda step: None)
        self._values: dict[str, Any] = {}
        self._failures: dict[str, Exception] = {}

    @cached_property
    def trials(self) -> list[FrozenTrial]:
        """All trials in order."""
        return self.study.get_trials(deepcopy=False)

    @cached_property
    def record(self) -> Mapping[str, Any]:
        """The record of the study; empty if it was not created by this package."""
        return study_record(self.study) or {}

    @property
    def maximize(self) -> bool:
        """Whether larger values are better."""
        return self.study.direction == StudyDirection.MAXIMIZE

    @cached_property
    def noisy(self) -> bool:
        """Whether the objective was declared noisy."""
        return is_noisy(self.study)

    @cached_property
    def space(self) -> ConfigurationSpace | None:
        """The declared space; None if the study has none."""
        return space_of(self.study) if self.record or declared_space_of(self.study) is not None else None

    @cached_property
    def best(self) -> FrozenTrial | None:
        """The best feasible trial; None if there is none."""
        return best_trial(self.study)

    @property
    def observed(self) -> Observations:
        """The trials that a model is fitted to."""
        if self.space is None:
            raise Absent(self._without_model())
        return observations(self.study, self.space)

    @property
    def posterior(self) -> Posterior | StackedPosterior:
        """The posterior given all finished trials.

        Raises
        ------
        Absent
            If the study has no model, or no fit yet.
        """
        return self.once("posterior", self._fitted)

    @property
    def conditions(self) -> dict[str, Posterior]:
        """The models of failures and constraints behind the last fit, by name."""
        return self.once("conditions", self._fitted_conditions)

    @property
    def recommendation(self) -> Recommendation:
        """The evaluated configuration with the best posterior mean."""
        return self.once("recommendation", lambda: recommend(self.study, self.posterior))

    @property
    def encoder(self) -> Encoder:
        """Encoder of the posterior."""
        return self.posterior.encoder

    @property
    def centre(self) -> Centre:
        """The best configuration, or the recommended one of a noisy objective."""
        return self.once("centre", self._centre)

    @property
    def noise(self) -> FloatArray:
        """Standard deviation (n,) of the noise of the observations, estimated by the model, in the objective's units.

        Under a warp it depends on the value; half the central 68% interval then replaces the standard deviation.
        """
        return self.once("noise", self._noise)

    def once(self, name: str, compute: Callable[[], _Value]) -> _Value:
        """Return a value that is computed once; if that failed, raise its error again."""
        if name in self._failures:
            raise self._failures[name]
        if name not in self._values:
            try:
                self._values[name] = compute()
            except Exception as error:
                self._failures[name] = error
                raise
        value: _Value = self._values[name]
        return value

    def _without_model(self) -> str:
        kind = type(self.study.sampler).__name__
        return (
            "This study declares no space of slayr_py: its trials come from another sampler, or from a StanGPSampler "
            f"without a space, and there is no model to show. The sampler of this session is {kind}."
        )

    def _fitted(self) -> Posterior | StackedPosterior:
        if self.space is None:
            raise Absent(self._without_model())
        if not fitted_numbers(self.study):
            raise Absent("No model has been fitted yet: no trial was suggested by one.")
        self.progress("fitting the model to all finished trials")
        return self.fit()

    def _fitted_conditions(self) -> dict[str, Posterior]:
        if not fitted_numbers(self.study):
            return {}
        self.progress("fitting the models of failures and constraints")
        return conditions_of(self.study, last_fitted(self.study))

    def _centre(self) -> Centre:
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

    def _noise(self) -> FloatArray:
        prediction = self.posterior.predict(self.posterior.train)
        spread = [
            np.diff(prediction.quantile(ndtr([-1.0, 1.0]), observation), axis=0)[0] / 2 for observation in (False, True)
        ]
        return np.asarray(np.sqrt(np.maximum(np.square(spread[1]) - np.square(spread[0]), 0.0)))


def with_defaults(encoder: Encoder, encoded: Encoded) -> FloatArray:
    """Return the unit values (D,) of one configuration; inactive parameters have the default of the space."""
    defaults = [d.unit_values(np.array([d.number(_default(encoder, d.name))]))[0] for d in encoder.dimensions]
    return np.where(encoded.active[0], encoded.unit_values[0], defaults)


def _default(encoder: Encoder, name: str) -> Any:
    value = encoder.space[name].default_value
    return value.item() if isinstance(value, np.generic) else value


def active_dimensions(encoder: Encoder, encoded: Encoded) -> NDArray[np.intp]:
    """Return the positions of the active parameters of one configuration."""
    return np.flatnonzero(encoded.active[0])
