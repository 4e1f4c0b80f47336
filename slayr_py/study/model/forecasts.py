"""Forecasts of the final values of running trials, from the curves of a study."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from optuna import Study
from optuna.trial import FrozenTrial, TrialState

from slayr_py.errors import InferenceError
from slayr_py.inference import as_stan_seed
from slayr_py.space import Encoder, Fixed
from slayr_py.study.model.curve_model import ConditionedCurves, CurveFit
from slayr_py.study.model.curve_points import EncodedTrials, NoForecast, PointsOfCurves, Rows
from slayr_py.study.storage.curves import Curve, curve_of
from slayr_py.study.storage.objectives import goals_of
from slayr_py.study.storage.trials import is_feasible

FITTED = Rows(160, 80)
"""Points of finished trials in a fit of the hyperparameters."""

CONDITIONED = Rows(224, 256)
"""Points of finished trials in a prediction: four of each of 50 complete trials, two of each of 75 or more."""

MOST_RATIO = 2.0
"""Largest ratio of the last steps of complete trials whose steps count as the same unit."""

ESTIMATED = 2
"""Degrees of freedom that the mean and the scale of the values take from the errors of predictions."""

LEAST_INFLATION = 0.25
"""Smallest factor on the standard deviations: few errors may be small by chance."""

_GROWTH = 1.15  # of the number of finished trials from one fit of the hyperparameters to the next


class Forecast(NamedTuple):
    """Prediction of the final value of a running trial, in the user's units."""

    step: int
    """Step after which it was made."""

    probability: float
    """Probability that the final value is better than ``best``."""

    mean: float
    """Median of the final value."""

    sd: float

    best: float
    """Best value so far, of the trials with the same fixed values."""

    inflation: float
    """Factor on the standard deviations: the root mean square of `ConditionedCurves.errors`."""

    without: float
    """The same probability without the trial's own curve."""

    by_curve: float
    """The same probability under the evidence of the trial's own curve alone; 1 if it says nearly nothing."""

    evidence: tuple[float, float]
    """What is known of the final value: a value and its standard deviation, see `ConditionedCurves.evidence`."""

    is_new: bool = False
    """Whether no complete trial has one of the trial's levels. The inflation is then at least 1: the errors of others
    do not tell how much better a new level is."""


@dataclass
class Forecasts:
    """Forecasts for the trials of one study; fits and factors are kept until another trial finishes.

    The hyperparameters are fitted to the first trials that finished, in numbers that grow by a seventh. The same
    trials therefore have the same fit in every process and after an interruption.

    Attributes
    ----------
    encoder : Encoder, optional
        Of the declared space; without one, it is inferred from the trials.
    seed : int
    complete : int
        Number of complete trials with a curve from which on there are forecasts.
    """

    encoder: Encoder | None
    seed: int
    complete: int
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _curves: dict[int, Curve] = field(default_factory=dict)
    _trials: EncodedTrials | None = None
    _fit: tuple[object, CurveFit] | None = None
    _conditioned: tuple[object, ConditionedCurves] | None = None

    def forecast(self, study: Study, trial: FrozenTrial, fixed: Fixed | None = None) -> Forecast:
        """Predict the final value of a trial from all curves; compare it with the trials that have the fixed values.

        Raises
        ------
        NoForecast
            If there are too few complete trials or none with the fixed values, the steps of the trials have different
            units, or the trial cannot be modelled.
        """
        with self._lock:
            trials = sorted(study.get_trials(deepcopy=False), key=_finished_at)
            sign = goals_of(study)[0].sign
            complete = self._complete(trials)
            others = [self._curve(each) for each in trials if each.number != trial.number]
            own = self._curve(trial)
            points = self._points(study, own, others, sign)
            best = self._best(complete, points, fixed)
            conditioned = self._condition(points, [curve for curve in others if curve.state != TrialState.RUNNING])
            running = [points.of(curve) for curve in others if curve.state == TrialState.RUNNING]
            known = [each for each in running if each is not None]
            config = points.trials.config(own)
            here = points.of(own)
            if config is None or here is None:
                raise NoForecast("its configuration is not one of the space", "space")
            given = conditioned.final(config, [*known, here])
            errors = conditioned.errors(float(here.u[-1]))
            if len(errors) < self.complete:
                raise NoForecast(f"{len(errors)} of {self.complete} complete trials have a value up to this step")
            is_new = points.trials.has_new_level(own, [self._curve(each) for each in complete])
            least = 1.0 if is_new else LEAST_INFLATION
            inflation = max(least, float(np.sqrt(np.mean(np.square(errors)))))
            freedom = max(len(errors) - ESTIMATED, 1)
            without = conditioned.final(config, known)
            evidence = conditioned.evidence(given, without, max(1.0, inflation))
            assert own.last_step is not None
            median, sd = conditioned.predicted(given, inflation)
            return Forecast(
                own.last_step,
                conditioned.probability_below(best, given, inflation, freedom),
                sign * median,
                sd,
                sign * best,
                inflation,
                conditioned.probability_below(best, without, inflation, freedom),
                conditioned.probability_by_curve(best, given, without, inflation, freedom),
                (sign * evidence[0], evidence[1]),
                is_new,
            )

    def _curve(self, trial: FrozenTrial) -> Curve:
        """Return the curve of a trial; those of finished trials are kept."""
        if trial.number in self._curves:
            return self._curves[trial.number]
        curve = curve_of(trial)
        if trial.state.is_finished():
            self._curves[trial.number] = curve
        return curve

    def _complete(self, trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        """Return the trials with a final value, of which enough have a curve."""
        complete = [trial for trial in trials if self._curve(trial).final is not None]
        known = sum(len(self._curve(trial).steps) > 0 for trial in complete)
        if known < self.complete:
            raise NoForecast(f"{known} of {self.complete} complete trials have a curve")
        return complete

    def _best(self, complete: Sequence[FrozenTrial], points: PointsOfCurves, fixed: Fixed | None) -> float:
        """Return the smallest signed value of a feasible trial with the fixed values."""
        names = {name for trial in complete for name in trial.constraints}
        feasible = [self._curve(trial) for trial in complete if is_feasible(trial, names)]
        if not feasible:
            raise NoForecast("no complete trial is feasible")
        comparable = [curve for curve in feasible if points.trials.has(curve, fixed)]
        if not comparable:
            raise NoForecast("no feasible complete trial has the fixed values")
        return min(points.sign * curve.final for curve in comparable if curve.final is not None)

    def _points(self, study: Study, own: Curve, others: Sequence[Curve], sign: float) -> PointsOfCurves:
        last = last_step(others)
        if own.last_step is None or not len(own.steps):
            raise NoForecast("no finite value is reported")
        if own.last_step >= last:
            raise NoForecast(f"step {own.last_step} is not before step {last:g}, the last one of the complete trials")
        if self.encoder is not None:
            trials = EncodedTrials.declared(self._trials, self.encoder, study)
        else:
            trials = EncodedTrials.inferred(self._trials, [*others, own])
        if trials is not self._trials:  # of another space
            self._trials, self._fit, self._conditioned = trials, None, None
        return PointsOfCurves(trials, sign, last)

    def _condition(self, points: PointsOfCurves, finished: Sequence[Curve]) -> ConditionedCurves:
        """Return the predictor from the curves of finished trials."""
        used = points.known(finished)
        key = (points.last, tuple(curve.number for curve in used))
        if self._conditioned is None or self._conditioned[0] != key:
            fit = self._fit_to(points, used)
            self._conditioned = key, fit.condition(points.of_all(used, CONDITIONED))
        return self._conditioned[1]

    def _fit_to(self, points: PointsOfCurves, used: Sequence[Curve]) -> CurveFit:
        """Return the fit of the hyperparameters to the first of these trials."""
        count = self.complete
        while (larger := math.ceil(_GROWTH * count)) <= len(used):
            count = larger
        first = used[:count]
        if sum(curve.final is not None for curve in first) < self.complete:  # many were pruned by another pruner
            first = used
        key = (points.last, tuple(curve.number for curve in first))
        if self._fit is None or self._fit[0] != key:
            seed = as_stan_seed(np.random.SeedSequence([self.seed, count]))
            finals = np.array([points.sign * curve.final for curve in first if curve.final is not None])
            try:
                fit = CurveFit.to(points.trials.space, points.of_all(first, FITTED), finals, seed)
            except InferenceError as error:
                raise NoForecast(str(error), "fit") from error
            self._fit = key, fit
        return self._fit[1]


def last_step(curves: Sequence[Curve]) -> float:
    """Return the last step of the complete trials.

    Raises
    ------
    NoForecast
        If no complete trial has reported a value, or their last steps differ by more than `MOST_RATIO`.
    """
    ends = [curve.last_step for curve in curves if curve.final is not None and curve.last_step is not None]
    if not ends:
        raise NoForecast("no complete trial has reported a value")
    if 1 + max(ends) > MOST_RATIO * (1 + min(ends)):
        raise NoForecast(
            f"the complete trials end at steps from {min(ends)} to {max(ends)}: report steps of one unit, up to the "
            "same last step",
            "units",
        )
    return max(float(max(ends)), 1.0)


def _finished_at(trial: FrozenTrial) -> tuple[float, int]:
    """Return the order in which trials finished; running ones are last."""
    end = trial.datetime_complete
    return (math.inf if end is None else end.timestamp(), trial.number)
