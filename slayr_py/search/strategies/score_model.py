"""Gaussian process of scores over the coordinates of the generator's weights."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from slayr_py.search.strategies.generator import BOX
from slayr_py.search.strategies.policy import PolicyMoments, policy_kernel, squared_distances
from slayr_py.space import FloatArray

# A quarter to four times the half width of the box.
_LENGTHSCALES = BOX * np.array([0.25, 0.5, 1.0, 2.0, 4.0])
_NOISE_VARIANCES = (0.01, 0.1, 0.3, 1.0, 3.0)  # relative to the signal's
_WORST = -3.0  # bound of standardised scores below


class ScoreModel:
    """Gaussian process of standardised scores over z, squared exponential times the policy kernel.

    Length-scale and noise have the largest marginal likelihood on a grid, with the variance at its optimum. Create a
    new model after each update of the policies, which changes their kernel.

    Parameters
    ----------
    z : (n, d) float64
    moments : PolicyMoments
        Of the policies at z.
    scores : (n,) float64
        From :func:`standardise`.
    """

    def __init__(self, z: FloatArray, moments: PolicyMoments, scores: FloatArray) -> None:
        self._z = z
        self._moments = moments
        distances = squared_distances(z, z)
        of_policies = policy_kernel(moments, moments)
        best = -np.inf
        for lengthscale, noise in itertools.product(_LENGTHSCALES, _NOISE_VARIANCES):
            matrix = np.exp(-distances / (2 * lengthscale**2)) * of_policies + noise * np.eye(len(z))
            factor = cho_factor(matrix, lower=True)
            weights = cho_solve(factor, scores)
            variance = max(float(scores @ weights) / len(z), 1e-12)
            value = -0.5 * len(z) * np.log(variance) - np.log(np.diag(factor[0])).sum()
            if value > best:
                best = value
                self.lengthscale = float(lengthscale)
                self.noise = noise
                self.variance = variance
                self._factor = factor
                self._weights = weights

    def predict(self, z: FloatArray, moments: PolicyMoments) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation without noise at coordinates (m, d), (m,) each."""
        cross = np.exp(-squared_distances(z, self._z) / (2 * self.lengthscale**2))
        cross *= policy_kernel(moments, self._moments)
        scaled = solve_triangular(self._factor[0], cross.T, lower=True)
        variance = self.variance * np.maximum(1 - np.sum(scaled**2, axis=0), 0)
        return cross @ self._weights, np.sqrt(variance)


def standardise(scores: Sequence[float]) -> FloatArray:
    """Return scores minus their median, divided by their interquartile range / 1.349, and at least -3.

    A failed fit, -inf, counts as -3. If more than half of the scores are equal, the unit is their standard deviation.
    """
    values = np.array(scores, dtype=np.float64)
    finite = values[np.isfinite(values)]
    if not len(finite):
        return np.zeros(len(values))
    quartiles = np.quantile(finite, [0.25, 0.75])
    unit = (quartiles[1] - quartiles[0]) / 1.349 or float(np.std(finite)) or 1.0
    return np.maximum(np.where(np.isfinite(values), (values - np.median(finite)) / unit, _WORST), _WORST)
