"""Distribution of the latent function at new configurations: a mixture of normals, one for each draw."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, ndtr, ndtri

from slayr_py.arguments import check_probability
from slayr_py.display import Summary
from slayr_py.errors import DataError
from slayr_py.inference.normal import log_phi
from slayr_py.inference.warp import log_slope, unwarped, unwarped_moments, warped
from slayr_py.space import FloatArray
from slayr_py.threads import ignoring_underflow

_NEWTON_STEPS = 20  # after which bisections alone follow, which always converge
_BISECTIONS = 60  # 2^-60 of the bounds is less than rounding
_CONVERGED = 4e-15  # size of a last step
_ACCURATE = 1e-9  # relative error of a probability there
_LARGEST = 1e300  # quantile in standard deviations of the targets
NO_WARP = 1e-12
"""Parameter of a warp that equals the identity up to rounding, for draws of a fit without a warp."""


def common_pivot(parts: Iterable[tuple[bool, float | None]]) -> float | None:
    """Return the pivot of the parts of a stack, from whether each has a warp and its pivot.

    Raises
    ------
    DataError
        If their warps differ: draws of one posterior have one transformation.
    """
    pivots = {pivot for has_warp, pivot in parts if has_warp}
    if len(pivots) > 1:
        raise DataError("a stack cannot have fits with warp='log' and warp='best' together; use one of them for all")
    return pivots.pop() if pivots else None


class Latent(NamedTuple):
    """Latent function at m configurations under s draws, and its relation to the user's units.

    The transformed function T((y - y_mean) / y_sd) is normal under each draw.

    Attributes
    ----------
    mean, sd : (s, m) float64
        Moments of the transformed function.
    warp : (s,) float64 or None
        Parameter of T; None if T is the identity.
    y_mean, y_sd : float
        Standardisation of the targets; ``y_sd`` is negative if larger values are better.
    sigma_n : (s,) float64
        Standard deviation of the noise, on the scale of the transformed function.
    jitter : (s,) float64
        Relative jitter that was added to the covariance of the observations, if it is singular up to rounding.
    pivot : float, optional
        Pivot of T, if it has one.
    """

    mean: FloatArray
    sd: FloatArray
    warp: FloatArray | None
    y_mean: float
    y_sd: float
    sigma_n: FloatArray
    jitter: FloatArray
    pivot: float | None = None

    @property
    def sign(self) -> float:
        """Sign of ``y_sd``."""
        return -1.0 if self.y_sd < 0 else 1.0

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of the function under each draw, (s, m), for standardised targets."""
        if self.warp is None:
            return self.mean, self.sd
        return unwarped_moments(self.mean, self.sd, self.warp[:, None], self.pivot)

    def with_noise(self) -> Latent:
        """Return the transformed function plus the noise of a new observation, to which no further noise is added."""
        return self._replace(sd=np.hypot(self.sd, self.sigma_n[:, None]), sigma_n=np.zeros_like(self.sigma_n))

    def cumulative(self, y: FloatArray, noise: FloatArray | float = 0.0) -> FloatArray:
        """Return the probability of values below y (m,), in the user's units; noise sd (s, 1) is added to ``sd``."""
        z, _ = self._standard(y, noise)
        return self._probability(z)

    def cumulative_and_density(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the probability of values below y (m,), in the user's units, and its derivative by y."""
        z, log_scale = self._standard(y, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):  # where a standard deviation is 0
            density = np.exp(log_phi(z) - log_scale).mean(axis=0) / abs(self.y_sd)
        return self._probability(z), np.asarray(density)

    def _probability(self, z: FloatArray) -> FloatArray:
        return np.asarray(ndtr(self.sign * z).mean(axis=0))

    def log_density(self, y: FloatArray, noise: FloatArray | float = 0.0) -> FloatArray:
        """Return the log density at y (m,), in the user's units; noise as in :meth:`cumulative`."""
        z, log_scale = self._standard(y, noise)
        return np.asarray(logsumexp(log_phi(z) - log_scale, axis=0) - np.log(len(self.mean)) - np.log(abs(self.y_sd)))

    @classmethod
    def concatenated(cls, latents: Sequence[Latent], rows: Sequence[NDArray[np.intp]]) -> Latent:
        """Return the latent function under the given rows of the draws of several fits to the same targets."""
        if len(latents) == 1 and len(rows[0]) == len(latents[0].mean):
            return latents[0]  # all draws of a single fit: a copy could change the order of summation

        def pick(name: str) -> FloatArray:
            return np.concatenate([getattr(latent, name)[chosen] for latent, chosen in zip(latents, rows, strict=True)])

        warp = None
        if any(latent.warp is not None for latent in latents):
            warps = [np.full(len(latent.mean), NO_WARP) if latent.warp is None else latent.warp for latent in latents]
            warp = np.concatenate([values[chosen] for values, chosen in zip(warps, rows, strict=True)])
        first = latents[0]
        pivot = common_pivot([(latent.warp is not None, latent.pivot) for latent in latents])
        return cls(pick("mean"), pick("sd"), warp, first.y_mean, first.y_sd, pick("sigma_n"), pick("jitter"), pivot)

    def _standard(self, y: FloatArray, noise: FloatArray | float) -> tuple[FloatArray, FloatArray]:
        """Return y as standard normal variates z (s, m), and log(dy / dz) on the standardised scale."""
        scaled = np.broadcast_to((np.asarray(y) - self.y_mean) / self.y_sd, self.mean.shape)
        sd = np.hypot(self.sd, noise)
        log_scale = np.log(sd, out=np.full(sd.shape, -np.inf), where=sd > 0)
        if self.warp is not None:
            a = self.warp[:, None]
            log_scale -= log_slope(scaled, a, self.pivot)
            scaled = warped(scaled, a, self.pivot)
        # A standard deviation may be 0 up to rounding: the distribution is then a point, half of which is below itself.
        above = np.copysign(np.inf, scaled - self.mean)
        exact = np.where(scaled == self.mean, 0.0, above)
        return np.divide(scaled - self.mean, sd, out=exact, where=sd > 0), log_scale


@dataclass(frozen=True, repr=False, eq=False)
class Prediction:
    """Latent function at m configurations, in the user's units.

    Attributes
    ----------
    mean, sd : (m,) float64
        Moments of the mixture over all draws. Under a warp, values far above all observations can dominate the moments;
        :meth:`quantile` and :meth:`interval` then describe the distribution better.
    draw_mean, draw_sd : (s, m) float64
        Moments under each draw of the hyperparameters.
    latent : Latent
        The normal distributions of the transformed function.
    """

    mean: FloatArray
    sd: FloatArray
    draw_mean: FloatArray
    draw_sd: FloatArray
    latent: Latent

    @classmethod
    def from_latent(cls, latent: Latent) -> Prediction:
        """Return the mixture over all draws."""
        draw_mean, draw_sd = latent.moments()
        mean, sd = mixture_moments(draw_mean, draw_sd)
        centre = latent.y_mean
        scale = latent.y_sd
        with np.errstate(over="ignore"):  # moments under a warp may be infinite in the user's units only
            return cls(
                centre + scale * mean,
                abs(scale) * sd,
                centre + scale * draw_mean,
                abs(scale) * draw_sd,
                latent,
            )

    def __repr__(self) -> str:
        return self._summary().text()

    def _repr_html_(self) -> str:
        return self._summary().html()

    def _summary(self) -> Summary:
        draws, points = self.draw_mean.shape
        table = pd.DataFrame({"configuration": range(points), "mean": self.mean, "sd": self.sd})
        heading = f"Prediction of the latent function at {points} configurations by {draws} draws"
        return Summary("\n".join([heading, *self.notes]), table, rows=5)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on jitter that was added to covariances that are singular up to rounding, and on infinite moments."""
        jitter = self.latent.jitter
        notes = []
        if jitter.any():
            notes.append(
                f"the covariance of the observations is singular up to rounding under {np.count_nonzero(jitter)} of "
                f"{len(jitter)} draws; a relative jitter of at most {jitter.max():.0e} was added to its diagonal"
            )
        if infinite := np.count_nonzero(~np.isfinite(self.sd)):
            notes.append(
                f"moments under the warp exceed the range of floating-point numbers at {infinite} of {len(self.sd)} "
                "configurations; quantile and interval describe the distribution there"
            )
        return tuple(notes)

    @ignoring_underflow
    def with_noise(self) -> Prediction:
        """Return the prediction of new observations, noise included; of such a prediction, itself."""
        return Prediction.from_latent(self.latent.with_noise())

    @cached_property
    def observation_sd(self) -> FloatArray:
        """Standard deviation (m,) of a new observation, noise included."""
        return self.with_noise().sd

    @ignoring_underflow
    def quantile(self, q: ArrayLike, observation: bool = False) -> FloatArray:
        """Return quantiles of the mixture, from its distribution function.

        Parameters
        ----------
        q : float or (k,) array_like
            Probabilities in (0, 1).
        observation : bool
            Describe a new observation, noise included, instead of the latent function.

        Returns
        -------
        (m,) or (k, m) float64

        Raises
        ------
        DataError
            If a probability is not a number in (0, 1).
        """
        try:
            probabilities = np.asarray(q, dtype=np.float64)
        except (TypeError, ValueError):
            probabilities = np.asarray(np.nan)
        if not np.all((probabilities > 0) & (probabilities < 1)):
            raise DataError(f"q is {q!r}; give probabilities between 0 and 1")
        latent = self.latent.with_noise() if observation else self.latent
        rows = [_quantile(latent, float(p)) for p in probabilities.ravel()]
        return np.reshape(rows, (*probabilities.shape, self.mean.size))

    def interval(self, level: float = 0.9, observation: bool = False) -> tuple[FloatArray, FloatArray]:
        """Return the bounds (m,) of the central interval of the latent function with probability ``level``.

        Parameters
        ----------
        level : float
            Probability in (0, 1).
        observation : bool
            Describe a new observation, noise included, instead of the latent function.

        Raises
        ------
        DataError
            If the level is not a single number in (0, 1).
        """
        check_probability("level", level)
        return self.quantile((1 - level) / 2, observation), self.quantile((1 + level) / 2, observation)

    def centre_and_spread(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation (m,) or, under a warp, the median and its distance to a better quantile.

        The quantile has probability 16%, or 84% if larger values are better, which is one standard deviation from the
        median of a normal distribution. Values far worse than all observations dominate the moments under a warp, and
        also the quantiles on their side, which grow exponentially.
        """
        if self.latent.warp is None:
            return self.mean, self.sd
        better, median = self.quantile(ndtr([-self.latent.sign, 0.0]))
        return median, np.abs(better - median)


def _quantile(latent: Latent, p: float) -> FloatArray:
    """Return the quantile (m,) of the mixture over all draws, by Newton's method between bounds, else by bisection.

    The steps are those of asinh((y - y_mean) / y_sd), because a warp spreads the components over many powers of ten.
    """
    if latent.y_sd < 0 and p >= 0.5:  # 1 - p is exact: the same bits as for the negated values
        return -_quantile(latent._replace(y_mean=-latent.y_mean, y_sd=-latent.y_sd), 1 - p)
    unit = abs(latent.y_sd)
    direction = latent.sign
    # The quantile of a mixture lies between the smallest and the largest quantile of its components.
    quantiles = latent.mean + direction * ndtri(p) * latent.sd
    if latent.warp is not None:
        quantiles = unwarped(quantiles, latent.warp[:, None], latent.pivot)
    bounds = np.arcsinh(np.clip(direction * quantiles, -_LARGEST, _LARGEST))
    lower = bounds.min(axis=0)
    upper = bounds.max(axis=0)
    middle = 0.5 * (lower + upper)
    for step in range(_NEWTON_STEPS + _BISECTIONS):
        probability, density = latent.cumulative_and_density(latent.y_mean + unit * np.sinh(middle))
        below = probability < p
        lower = np.where(below, middle, lower)
        upper = np.where(below, upper, middle)
        following = 0.5 * (lower + upper)
        if step < _NEWTON_STEPS:
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # no density: not inside the bounds
                newton = middle + (p - probability) / (density * unit * np.cosh(middle))
            following = np.where((newton >= lower) & (newton <= upper), newton, following)
        size = _CONVERGED * np.maximum(np.abs(middle), 1.0)
        # Newton's steps are also small where a component without spread makes the density large.
        arrived = (np.abs(following - middle) <= size) & (np.abs(probability - p) <= _ACCURATE * p)
        middle = following
        if np.all(arrived | (upper - lower <= size)):
            break
    return np.asarray(latent.y_mean + unit * np.sinh(middle))


def mixture_moments(mean: FloatArray, sd: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of an equally weighted mixture along the first axis; infinite if one is."""
    with np.errstate(over="ignore", invalid="ignore"):  # infinite moments under a warp
        centre = mean.mean(axis=0)
        deviation = np.where(mean == centre, 0.0, mean - centre)
        return centre, np.sqrt(np.mean(np.square(sd) + np.square(deviation), axis=0))
