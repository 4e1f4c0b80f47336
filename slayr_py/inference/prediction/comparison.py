"""Comparison with known configurations: what one more noisy evaluation may change.

`Predictor.compared` and `Predictor.beside` have the formulas and their sources.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from slayr_py.inference.normal import log_h
from slayr_py.space import Encoded, FloatArray

_SMALLEST_CHANGE = 1e-100  # standard deviation; a smaller one is rounded to it
_ROUNDING = 1e-12  # a difference of variances is a rounding error below this part of the prior variance


class Change(NamedTuple):
    """How an evaluation at m configurations changes a difference of two posterior means.

    Attributes
    ----------
    mean : (s, m) float64
        Present mean of the configuration that may improve, on the scale of the values to improve on.
    sd : (s, m) float64
        Standard deviation of the change, with a sign.
    by_variance : (s, m) float64
        Derivative of ``sd`` by the variance of the function.
    by_covariances : (s, m, q) float64
        Its derivatives by the covariances with the function at the compared configurations.
    is_new : (s, m) bool
        Whether the configuration that may improve is the evaluated one.
    """

    mean: FloatArray
    sd: FloatArray
    by_variance: FloatArray
    by_covariances: FloatArray
    is_new: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Compared:
    r"""Configurations that others are compared with.

    Attributes
    ----------
    configs : (q,) Encoded
    means : (s, q) float64
        Posterior means of the transformed function.
    goal : (s, k) float64
        Values of the transformed function to improve on.
    solved, weights : (s, q, n) float64
        L \ k(X, x) and K^-1 k(X, x).
    """

    configs: Encoded
    means: FloatArray
    goal: FloatArray
    solved: FloatArray
    weights: FloatArray

    def at(self, rows: NDArray[np.intp]) -> Self:
        """Return that of some of the draws."""
        arrays = {each.name: getattr(self, each.name)[rows] for each in fields(self) if each.name != "configs"}
        return replace(self, **arrays)

    def covariances(self, prior: FloatArray, solved: FloatArray) -> FloatArray:
        r"""Return the posterior covariances (s, m, q) with m configurations from those of the prior.

        ``solved`` are the transposes of L \ k(X, X~), (s, m, n).
        """
        return np.asarray(prior - solved @ self.solved.transpose(0, 2, 1))


@dataclass(frozen=True, eq=False)
class Recommended(Compared):
    """The best configuration and, as a second one, the runner-up if there is one, q of them; k = 1.

    Attributes
    ----------
    configs : Encoded
        Those that are one of these under some draw.
    choice : (s, q) int64
        The row of each of them in ``configs``.
    prior : (s, 1) float64
        Variance of the transformed function at the best configuration, before the observations.
    """

    choice: NDArray[np.intp]
    prior: FloatArray

    @classmethod
    def of(cls, known: Compared, prior: FloatArray, choice: NDArray[np.intp]) -> Self:
        """Return these rows (s, q) of known configurations, whose prior variances are (s, r)."""
        used, rows = np.unique(choice, return_inverse=True)
        each = choice[..., None]
        means = np.take_along_axis(known.means, choice, axis=1)
        return cls(
            configs=known.configs[used],
            means=means,
            goal=means[:, :1],
            solved=np.take_along_axis(known.solved, each, axis=1),
            weights=np.take_along_axis(known.weights, each, axis=1),
            choice=rows.reshape(choice.shape),
            prior=np.take_along_axis(prior, choice[:, :1], axis=1),
        )

    def chosen(self, values: FloatArray) -> FloatArray:
        """Return those (s, m, q) of the best and the runner-up from values (s, m, r) at ``configs``; more axes stay."""
        choice = self.choice[(slice(None), None, slice(None), *(None,) * (values.ndim - 3))]
        return np.take_along_axis(values, choice, axis=2)

    def change(self, mean: FloatArray, variance: FloatArray, covariances: FloatArray, noise: FloatArray) -> Change:
        """Return what an evaluation changes.

        Parameters
        ----------
        mean, variance : (s, m) float64
            Of the function at m configurations.
        covariances : (s, m, q) float64
            With the function at the compared configurations.
        noise : (s, 1) float64
            Variance of the noise of the evaluation.
        """
        total = variance + noise
        root = np.sqrt(total)
        difference = variance - covariances[:, :, 0]
        sd = difference / root
        by_variance = 1 / root - 0.5 * sd / total
        by_covariances = np.zeros(covariances.shape)
        by_covariances[:, :, 0] = -1 / root
        is_new = np.ones(sd.shape, dtype=bool)
        if covariances.shape[2] == 2:
            # A runner-up that is better already counts by what an evaluation may change, the improvement from -d.
            second = self.goal + np.abs(self.means[:, 1:] - self.goal)
            sd_of_second = (covariances[:, :, 1] - covariances[:, :, 0]) / root
            promised = log_improvement(self.goal - mean, np.abs(sd))
            is_new = promised >= log_improvement(self.goal - second, np.abs(sd_of_second))
            is_new &= np.abs(difference) > _ROUNDING * self.prior  # else it is the recommended configuration
            mean = np.where(is_new, mean, second)
            sd = np.where(is_new, sd, sd_of_second)
            by_variance = np.where(is_new, by_variance, -0.5 * sd_of_second / total)
            by_covariances[:, :, 1] = np.where(is_new, 0.0, 1 / root)
        return Change(mean, sd, by_variance, by_covariances, is_new)


class FrontMoments(NamedTuple):
    """Moments of the posterior mean at m configurations after an evaluation there, beside those of a front.

    Attributes
    ----------
    mean, sd : (s, m, q + 1) float64
        Relative to each of q configurations, whose values count as equal under all draws. The last ones are absolute.
    by_variance, by_covariance : (s, m, q + 1) float64
        Derivatives of ``sd`` by the variance of the function, and by the covariance with the configuration.
    """

    mean: FloatArray
    sd: FloatArray
    by_variance: FloatArray
    by_covariance: FloatArray

    @classmethod
    def of(
        cls, mean: FloatArray, variance: FloatArray, covariances: FloatArray, shift: FloatArray, noise: FloatArray
    ) -> FrontMoments:
        """Compute the moments.

        Parameters
        ----------
        mean, variance : (s, m) float64
            Of the function.
        covariances : (s, m, q) float64
            With the function at the configurations of the front.
        shift : (s, q) float64
            Their values minus their means.
        noise : (s, 1) float64
            Variance of the noise of the evaluation.
        """
        total = (variance + noise)[..., None]
        root = np.sqrt(total)
        difference = variance[..., None] - np.concatenate([covariances, np.zeros_like(total)], axis=2)
        sign = np.where(difference < 0, -1.0, 1.0)
        sd = np.abs(difference) / root
        shifts = np.hstack([shift, np.zeros((len(shift), 1))])
        return cls(mean[..., None] + shifts[:, None], sd, sign / root - 0.5 * sd / total, -sign / root)


FrontGradient = Callable[[FloatArray, FloatArray], FloatArray]
"""Returns the gradient (m, D_real) of a value from its derivatives (s, m, q + 1) by the mean and the sd."""


def log_improvement(gap: FloatArray, sd: FloatArray) -> FloatArray:
    """Return log E[max(t, 0)] of normal variables t with means ``gap``."""
    sd = np.maximum(sd, _SMALLEST_CHANGE)
    return np.asarray(np.log(sd) + log_h(gap / sd))
