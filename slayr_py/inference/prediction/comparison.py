"""Comparison with the configuration that is recommended: what one more noisy evaluation may change.

`Predictor.compared` has the formulas and their source.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slayr_py.inference.normal import log_h
from slayr_py.space import Encoded, FloatArray

_SMALLEST_CHANGE = 1e-100  # standard deviation; a smaller one is rounded to it


class Change(NamedTuple):
    """How an evaluation at m configurations changes the difference of two posterior means.

    Attributes
    ----------
    mean : (s, m) float64
        Present mean of the configuration that may become better than the recommended one.
    sd : (s, m) float64
        Standard deviation of the change, with a sign.
    by_variance : (s, m) float64
        Derivative of ``sd`` by the variance of the function.
    by_covariances : (s, m, q) float64
        Its derivatives by the covariances with the function at the compared configurations.
    is_new : (s, m) bool
        Whether it is the evaluated configuration, and not the runner-up.
    """

    mean: FloatArray
    sd: FloatArray
    by_variance: FloatArray
    by_covariances: FloatArray
    is_new: NDArray[np.bool_]


class Compared(NamedTuple):
    r"""The recommended configuration, and the runner-up if there is one: q = 1 or 2.

    Attributes
    ----------
    configs : (q,) Encoded
    means : (s, q) float64
        Posterior means of the transformed function.
    solved, weights : (s, q, n) float64
        L \ k(X, x) and K^-1 k(X, x).
    """

    configs: Encoded
    means: FloatArray
    solved: FloatArray
    weights: FloatArray

    def at(self, rows: NDArray[np.intp]) -> Compared:
        """Return that of some of the draws."""
        return Compared(self.configs, self.means[rows], self.solved[rows], self.weights[rows])

    def covariances(self, prior: FloatArray, solved: FloatArray) -> FloatArray:
        r"""Return the posterior covariances (s, m, q) with m configurations from those of the prior.

        ``solved`` are the transposes of L \ k(X, X~), (s, m, n).
        """
        return np.asarray(prior - solved @ self.solved.transpose(0, 2, 1))

    def change(self, mean: FloatArray, variance: FloatArray, covariances: FloatArray, noise: FloatArray) -> Change:
        """Return what an evaluation with a noise of variance (s, 1) changes, from moments (s, m) of the function."""
        total = variance + noise
        root = np.sqrt(total)
        sd = (variance - covariances[:, :, 0]) / root
        by_variance = 1 / root - 0.5 * sd / total
        by_covariances = np.zeros(covariances.shape)
        by_covariances[:, :, 0] = -1 / root
        is_new = np.ones(sd.shape, dtype=bool)
        if covariances.shape[2] == 2:
            best, second = np.split(self.means, 2, axis=1)
            sd_of_second = (covariances[:, :, 1] - covariances[:, :, 0]) / root
            is_new = log_improvement(best - mean, np.abs(sd)) >= log_improvement(best - second, np.abs(sd_of_second))
            mean = np.where(is_new, mean, second)
            sd = np.where(is_new, sd, sd_of_second)
            by_variance = np.where(is_new, by_variance, -0.5 * sd_of_second / total)
            by_covariances[:, :, 1] = np.where(is_new, 0.0, 1 / root)
        return Change(mean, sd, by_variance, by_covariances, is_new)


def log_improvement(gap: FloatArray, sd: FloatArray) -> FloatArray:
    """Return log E[max(t, 0)] of normal variables t with means ``gap``."""
    sd = np.maximum(sd, _SMALLEST_CHANGE)
    return np.asarray(np.log(sd) + log_h(gap / sd))
