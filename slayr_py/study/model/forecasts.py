"""Forecasts of the final values of running trials, from the curves of a study."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from slayr_py.errors import InferenceError, SpaceError
from slayr_py.inference import as_stan_seed
from slayr_py.space import Encoded, Encoder
from slayr_py.study.model.curve_model import ConditionedCurves, CurveFit, JointSpace, Points
from slayr_py.study.storage.curves import MOST_POINTS, Curve, curve_of, thinned
from slayr_py.study.storage.flat_space import encode_partly, to_space
from slayr_py.study.storage.trials import is_feasible, trial_configuration

MOST_FITTED = 192
"""Most points in a fit of the hyperparameters."""

MOST_CONDITIONED = 512
"""Most points of finished trials in a prediction."""

MOST_RATIO = 2.0
"""Largest ratio of the last steps of complete trials whose steps count as the same unit."""

_GROWTH = 1.15  # of the number of finished trials from one fit of the hyperparameters to the next


class Forecast(NamedTuple):
    """Prediction of the final value of a running trial, in the user's units."""

    step: int
    """Step after which it was made."""

    probability: float
    """Probability that the final value is better than the best one so far."""

    mean: float
    """Median of the final value."""

    sd: float

    best: float
    """Best value so far."""

    evidence: tuple[float, float] | None
    """What the curve says about the final value: a value and its standard deviation, see `ConditionedCurves`."""


class NoForecast(Exception):
    """Reason why there is no forecast; ``kind`` names a reason that the user should know of."""

    def __init__(self, reason: str, kind: str = "") -> None:
        super().__init__(reason)
        self.kind = kind

    @property
    def is_notable(self) -> bool:
        """Whether the user should know of it."""
        return bool(self.kind)


@dataclass
class Forecasts:
    """Forecasts for the trials of one study; fits and factors are kept until another trial finishes.

    The hyperparameters are fitted to the first trials that finished, in numbers that grow by a seventh. The same
    trials therefore have the same fit in every process and after an interruption.

    Attributes
    ----------
    encoder : Encoder, optional
        Of the declared space; without one, the space has all parameters that the trials have, and a trial may lack some.
    seed : int
    complete : int
        Number of complete trials with a curve from which on there are forecasts.
    """

    encoder: Encoder | None
    seed: int
    complete: int
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _curves: dict[int, Curve] = field(default_factory=dict)
    _spaces: dict[str, tuple[JointSpace, dict[int, Encoded | None]]] = field(default_factory=dict)
    _fit: tuple[object, CurveFit] | None = None
    _conditioned: tuple[object, ConditionedCurves] | None = None

    def forecast(self, study: Study, trial: FrozenTrial) -> Forecast:
        """Predict the final value of a trial from all curves.

        Raises
        ------
        NoForecast
            If there are too few complete trials, the steps of the trials have different units, or the trial cannot be
            modelled.
        """
        with self._lock:
            return self._forecast(study, trial)

    def _forecast(self, study: Study, trial: FrozenTrial) -> Forecast:
        sign = -1.0 if study.directions[0] == StudyDirection.MAXIMIZE else 1.0
        trials = study.get_trials(deepcopy=False)
        complete = [t for t in trials if self._curve(t).final is not None]
        known = sum(len(self._curve(t).steps) > 0 for t in complete)
        if known < self.complete:
            raise NoForecast(f"{known} of {self.complete} complete trials have a curve")
        curves = [self._curve(t) for t in sorted(trials, key=_finished_at) if t.number != trial.number]
        own = self._curve(trial)
        last = last_step(curves)
        if own.last_step is None or not len(own.steps):
            raise NoForecast("no finite value is reported")
        if own.last_step >= last:
            raise NoForecast(f"step {own.last_step} is not before step {last:g}, the last one of the complete trials")
        names = {name for t in complete for name in t.constraints}
        usable = [sign * self._curve(t).final for t in complete if is_feasible(t, names)]  # type: ignore[operator]
        if not usable:
            raise NoForecast("no complete trial is feasible")
        best = min(usable)
        study_of = _OneStudy(self._space(study, [*curves, own]), sign, last)
        conditioned = self._conditioned_on(study_of, [c for c in curves if c.state != TrialState.RUNNING])
        running = [c for c in curves if c.state == TrialState.RUNNING]
        config = study_of.config(own)
        if config is None:
            raise NoForecast("its configuration is not one of the space", "space")
        others = [points for c in running if (points := study_of.points(c, MOST_POINTS)) is not None]
        points = study_of.points(own, MOST_POINTS)
        assert points is not None
        given = conditioned.final(config, [*others, points])
        without = conditioned.final(config, others)
        centre, sd = conditioned.predicted(given)
        evidence = conditioned.evidence(given, without)
        return Forecast(
            own.last_step,
            conditioned.probability_below(best, given),
            sign * centre,
            sd,
            sign * best,
            None if evidence is None else (sign * evidence[0], evidence[1]),
        )

    def _curve(self, trial: FrozenTrial) -> Curve:
        """Return the curve of a trial; those of finished trials are kept."""
        if trial.number in self._curves:
            return self._curves[trial.number]
        curve = curve_of(trial)
        if trial.state.is_finished():
            self._curves[trial.number] = curve
        return curve

    def _space(self, study: Study, curves: Sequence[Curve]) -> tuple[JointSpace, dict[int, Encoded | None]]:
        """Return the joint space and the encoded configurations of the trials."""
        if self.encoder is not None:
            if not self._spaces:
                self._spaces[""] = JointSpace(self.encoder), {}
            space, known = self._spaces[""]
            trials = {t.number: t for t in study.get_trials(deepcopy=False)}
            for curve in curves:
                if curve.number not in known:
                    config = trial_configuration(trials[curve.number], self.encoder.space)
                    known[curve.number] = None if config is None else self.encoder.encode([config])
            return space, known
        latest: dict[str, BaseDistribution] = {}
        for curve in curves:
            latest |= curve.distributions
        key = repr(sorted(latest.items()))
        if key not in self._spaces:
            self._spaces.clear()
            try:
                encoder = Encoder(to_space({n: d for n, d in latest.items() if not d.single()}))
            except SpaceError as error:
                raise NoForecast(str(error), type(error).__name__) from error
            self._spaces[key] = JointSpace(encoder), {}
        space, known = self._spaces[key]
        for curve in curves:
            if curve.number not in known or curve.state == TrialState.RUNNING:
                known[curve.number] = encode_partly(space.encoder, curve.params)
        return space, known

    def _conditioned_on(self, of: _OneStudy, finished: Sequence[Curve]) -> ConditionedCurves:
        """Return the predictor from the curves of finished trials."""
        used = [c for c in finished if of.config(c) is not None and (len(c.steps) or c.final is not None)]
        numbers = tuple(c.number for c in used)
        key = (id(of.space), of.last, numbers)
        if self._conditioned is None or self._conditioned[0] != key:
            fit = self._fit_to(of, used)
            self._conditioned = key, fit.condition(of.all_points(used, MOST_CONDITIONED))
        return self._conditioned[1]

    def _fit_to(self, of: _OneStudy, used: Sequence[Curve]) -> CurveFit:
        """Return the fit of the hyperparameters to the first of these trials."""
        count = self.complete
        while (larger := math.ceil(_GROWTH * count)) <= len(used):
            count = larger
        first = used[:count]
        finals = np.array([of.sign * c.final for c in first if c.final is not None], dtype=np.float64)
        if len(finals) < 2:  # trials that were pruned by another pruner finished first
            first = used
            finals = np.array([of.sign * c.final for c in used if c.final is not None], dtype=np.float64)
        key = (id(of.space), of.last, tuple(c.number for c in first))
        if self._fit is None or self._fit[0] != key:
            seed = as_stan_seed(np.random.SeedSequence([self.seed, count]))
            try:
                self._fit = key, CurveFit.to(of.space, of.all_points(first, MOST_FITTED), finals, seed)
            except InferenceError as error:
                raise NoForecast(str(error), type(error).__name__) from error
        return self._fit[1]


class _OneStudy:
    """The points of the curves of a study.

    Attributes
    ----------
    space : JointSpace
    sign : float
        1 if smaller values are better, else -1.
    last : float
        Last step of a complete trial.
    """

    def __init__(self, space: tuple[JointSpace, dict[int, Encoded | None]], sign: float, last: float) -> None:
        self.space, self._known = space
        self.sign = sign
        self.last = last

    def config(self, curve: Curve) -> Encoded | None:
        """Return the configuration of a trial; None if it cannot be modelled."""
        return self._known[curve.number]

    def points(self, curve: Curve, most: int) -> Points | None:
        """Return at most this many points of a curve, the value of a complete trial at the last step; None without."""
        config = self.config(curve)
        assert config is not None
        steps = curve.steps
        values = curve.values
        if curve.final is not None:
            before = steps < min(self.last, np.inf if curve.last_step is None else curve.last_step)
            steps = np.append(steps[before], self.last)
            values = np.append(values[before], curve.final)
        if not len(steps):
            return None
        kept = thinned(steps, most)
        u = np.log1p(steps[kept]) / math.log1p(self.last)
        return Points(self.space.rows(config, u), self.sign * values[kept])

    def all_points(self, curves: Sequence[Curve], most: int) -> Points:
        """Return at most ``most`` points of trials; of many trials, those of the latest."""
        each = min(max(most // len(curves), 2), MOST_POINTS)
        points = [self.points(curve, each) for curve in curves[-(most // each) :]]
        return Points.together([part for part in points if part is not None])


def last_step(curves: Sequence[Curve]) -> float:
    """Return the last step of the complete trials.

    Raises
    ------
    NoForecast
        If no complete trial has reported a value, or their last steps differ by more than `MOST_RATIO`.
    """
    ends = [c.last_step for c in curves if c.final is not None and c.last_step is not None]
    if not ends:
        raise NoForecast("no complete trial has reported a value")
    first, last = (1 + min(ends), 1 + max(ends))
    if last > MOST_RATIO * first:
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
