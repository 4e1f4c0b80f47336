r"""Joint Gaussian process of configuration and step: fits to curves, and predictions of final values.

    k((x, s), (x', s')) = sigma_f^2 k_X(x, x') (v k_S(s, s') + 1 - v)

k_X is a Matérn kernel of the configuration and k_S one of the logarithm of the step: the expression
``MAT52[x] * (MAT52[step] + C)``. Symbols: n rows (points of curves), s draws of the hyperparameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr

from slayr_py.inference import (
    NOISE_FLOOR,
    ExactMarginal,
    KernelPredictor,
    Targets,
    find_mode,
    laplace_draws,
    unwarped,
    warped,
)
from slayr_py.kernels import NOISE, Draws
from slayr_py.space import Encoded, FloatArray
from slayr_py.study.model.curve_points import JointSpace, Points
from slayr_py.study.storage.far_values import GAP
from slayr_py.threads import one_thread

DRAWS = 16
"""Posterior draws of the hyperparameters, over which probabilities are averaged."""


WARP = 0.1
"""Parameter of the transformation of the values, which compresses bad ones. The density in NumPy has no warp, and more
compression makes the beginning of a curve so flat that its end is predicted there too."""

TOLERANCE = 1e-6
"""Relative change of the density at which the search for the mode ends: 1e-4 standard normal coordinates."""

WORST = 8.0
"""Largest transformed value; a worse one, as of a diverged training, is replaced by it."""

BEST = -3 * WORST
"""Smallest transformed value; only curves that are not part of the scale have smaller ones."""

LEAST_SCALE = 0.1
"""Smallest ratio of the better half of the final values to that of points of good curves, where this half decides."""

LEAST_REDUCTION = 0.9
"""A curve that leaves more than this part of the variance of the final value says nearly nothing."""


@dataclass(frozen=True)
class CurveScale:
    """Transformation of values that are minimised: standardised by robust moments of final values, then warped.

    Attributes
    ----------
    centre, spread : float
    """

    centre: float
    spread: float

    @classmethod
    def of(cls, finals: FloatArray, values: FloatArray, good: FloatArray) -> CurveScale:
        """Return the scale of final values (k,), or of all values (n,) if the quartiles of the final ones are equal.

        If the upper quartile is more than `GAP` times as far from the median as the lower one, as it is with a diverged
        trial among three, the better half decides. Values that are nearly equal by chance are no scale: it is not much
        smaller than that of ``good`` (m,), the points of complete trials that are not worse than the median one, and
        the best value is at most `WORST` of its units away.
        """
        better, middle = np.quantile(good, [0.25, 0.5])
        for sample in (finals, values):
            low, mid, high = np.quantile(sample, [0.25, 0.5, 0.75])
            half = max(mid - low, LEAST_SCALE * (middle - better))
            if 0 < half < (high - mid) / GAP:
                high = mid + half
            if high > low:
                farthest = mid - min(values.min(), finals.min())
                return cls(float(mid), float(max((high - low) / 1.349, farthest / WORST)))
        middle = float(np.median(finals))
        return cls(middle, abs(middle) or 1.0)

    def transform(self, values: FloatArray) -> FloatArray:
        """Return transformed values, clipped at `WORST` and `BEST`."""
        t = warped((values - self.centre) / self.spread, np.asarray(WARP))
        return np.asarray(np.clip(t, BEST, WORST))

    def invert(self, t: FloatArray) -> FloatArray:
        """Return values from transformed ones."""
        return np.asarray(self.centre + self.spread * unwarped(t, np.asarray(WARP)))


@dataclass(frozen=True, eq=False)
class CurveFit:
    """Hyperparameters of the joint Gaussian process.

    Attributes
    ----------
    space : JointSpace
    scale : CurveScale
    draws : mapping of str to (s, ...) float64
        Draws of Laplace's approximation.
    """

    space: JointSpace
    scale: CurveScale
    draws: Draws

    @classmethod
    def to(cls, space: JointSpace, points: Points, finals: FloatArray, seed: int) -> CurveFit:
        """Fit to points of curves; ``finals`` (k,) are final values, all of them minimised."""
        good = points.trials[(points.u == 1) & (points.values <= np.median(finals))]
        close = np.isin(points.trials, good) if len(good) else np.ones(len(points.values), dtype=bool)
        scale = CurveScale.of(finals, points.values, points.values[close])
        marginal = ExactMarginal(space.model, points.rows, scale.transform(points.values))
        with one_thread():
            mode = find_mode(marginal, [np.zeros(marginal.coordinates.size)], TOLERANCE)
            z = laplace_draws(marginal, mode.z, DRAWS, np.random.default_rng(seed), mode.density.gradient)
        return cls(space, scale, marginal.coordinates.theta(z))

    def condition(self, points: Points) -> ConditionedCurves:
        """Condition on points of curves."""
        targets = Targets(self.scale.transform(points.values), np.zeros(len(points.rows)), NOISE_FLOOR)
        with one_thread():
            predictor = KernelPredictor.factorise(self.space.model.kernel, points.rows, targets, self.draws)
            return ConditionedCurves(self, predictor.for_search(), points)


class FinalMoments(NamedTuple):
    """Moments of the transformed final value of a trial under each of s draws."""

    mean: FloatArray
    """Shape (s,)."""

    variance: FloatArray
    """Shape (s,): of the function, without the noise of an observation."""

    def mixture(self) -> tuple[float, float]:
        """Return mean and variance over the draws."""
        mean = float(self.mean.mean())
        return mean, float(self.variance.mean() + self.mean.var())


@dataclass(frozen=True, eq=False)
class ConditionedCurves:
    """Predictions of final values given the curves of finished trials.

    Attributes
    ----------
    fit : CurveFit
    predictor : KernelPredictor
        With the inverse factors.
    points : Points
        Those of finished trials.
    """

    fit: CurveFit
    predictor: KernelPredictor
    points: Points

    def final(self, config: Encoded, running: Sequence[Points]) -> FinalMoments:
        """Return the moments at the last step of a configuration, given further points of running trials, too.

        The points are few, so that their covariance is factorised instead of the one of all points.
        """
        last = self.fit.space.rows(config, np.ones(1))
        points = Points.together([*running, Points(last, np.zeros(1), np.ones(1), np.zeros(1, dtype=np.int64))])
        with one_thread():
            mean, covariance = self.predictor.joint_moments(points.rows)
            if not running:
                return FinalMoments(mean[:, -1], covariance[:, -1, -1])
            k = len(points.values) - 1
            noisy = covariance[:, :k, :k] + self.noise[:, None, None] * np.eye(k)
            solved = np.linalg.solve(noisy, covariance[:, :k, -1:])[..., 0]
        residual = self.fit.scale.transform(points.values[:k]) - mean[:, :k]
        variance = covariance[:, -1, -1] - np.sum(solved * covariance[:, :k, -1], axis=1)
        return FinalMoments(mean[:, -1] + np.sum(solved * residual, axis=1), np.maximum(variance, NOISE_FLOOR**2))

    @property
    def noise(self) -> FloatArray:
        """Variance of the noise of an observation under each draw, (s,)."""
        return np.asarray(np.square(self.fit.draws[NOISE.name]) + NOISE_FLOOR**2)

    def errors(self, u: float) -> FloatArray:
        r"""Return the standardised errors (k,) of the final values of complete trials, predicted from points up to u.

        The rows H of a trial after u are left out. Given all others they have the covariance C = (K^-1)_HH^-1 and the
        mean y_H - C (K^-1 (y - mu))_H: leave-one-out (Rasmussen & Williams 2006, eqs. 5.10 to 5.12) for a block.
        """
        inverse = self.predictor.inverse
        assert inverse is not None
        errors = []
        for trial in np.unique(self.points.trials[self.points.u >= 1]):
            mine = self.points.trials == trial
            out = np.flatnonzero(mine & (self.points.u > u))
            if len(out) == np.count_nonzero(mine):
                continue  # it has no value up to u
            columns = inverse[:, :, out]
            covariance = np.linalg.inv(columns.transpose(0, 2, 1) @ columns)
            final = int(np.argmax(self.points.u[out]))
            error = np.einsum("sh,sh->s", covariance[:, final], self.predictor.weights[:, out])
            variance = covariance[:, final, final]
            errors.append(error.mean() / math.sqrt(variance.mean() + error.var()))
        return np.array(errors, dtype=np.float64)

    def probability_below(self, value: float, moments: FinalMoments, inflation: float, freedom: int) -> float:
        """Return the probability that the final value is observed below a value, averaged over draws.

        The standard deviations are multiplied by an inflation, which is estimated from ``freedom`` errors, so that the
        distribution is Student's.
        """
        t = float(self.fit.scale.transform(np.array([value]))[0])
        sd = inflation * np.sqrt(moments.variance + self.noise)
        return float(np.mean(stdtr(freedom, (t - moments.mean) / sd)))

    def predicted(self, moments: FinalMoments, inflation: float = 1.0) -> tuple[float, float]:
        """Return the median of the final value, and half the width of its interval of one standard deviation."""
        mean, sd = _mean_and_sd(moments)
        return self._in_units(mean, inflation * sd)

    def evidence(self, given: FinalMoments, without: FinalMoments, inflation: float = 1.0) -> tuple[float, float]:
        r"""Return the evidence of a curve about the final value of its own trial: a value and its standard deviation.

        With the posterior N(m, v) of the final value given all curves and N(m_0, v_0) without this one, an observation
        with mean (m/v - m_0/v_0) / p and variance 1/p, p = 1/v - 1/v_0, changes the second into the first. If the curve
        says nearly nothing, the answer is N(m, v).
        """
        mean, sd = _likelihood(given, without) or _mean_and_sd(given)
        return self._in_units(mean, inflation * sd)

    def probability_by_curve(
        self, value: float, given: FinalMoments, without: FinalMoments, inflation: float, freedom: int
    ) -> float:
        """Return the probability of a final value below a value under the curve's own evidence; 1 without any."""
        if (known := _likelihood(given, without)) is None:
            return 1.0
        t = float(self.fit.scale.transform(np.array([value]))[0])
        return float(stdtr(freedom, (t - known[0]) / (inflation * known[1])))

    def _in_units(self, t: float, sd: float) -> tuple[float, float]:
        t = min(max(t, -WORST), WORST)
        sd = min(sd, 10 * WORST)
        low, centre, high = self.fit.scale.invert(np.array([t - sd, t, t + sd]))
        return float(centre), float(high - low) / 2


def _mean_and_sd(moments: FinalMoments) -> tuple[float, float]:
    mean, variance = moments.mixture()
    return mean, math.sqrt(variance)


def _likelihood(given: FinalMoments, without: FinalMoments) -> tuple[float, float] | None:
    """Return the transformed final value that a curve says and its standard deviation; None if nearly nothing."""
    m, v = given.mixture()
    m_0, v_0 = without.mixture()
    if v > LEAST_REDUCTION * v_0:
        return None
    precision = 1 / v - 1 / v_0
    return (m / v - m_0 / v_0) / precision, float(precision**-0.5)
