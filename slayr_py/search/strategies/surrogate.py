"""Gaussian process regression of scores on expressions, given the affinities of expressions.

The covariance is scale^2 [exp(c (affinity - 1)) + noise 1(same expression)] around a constant mean. The exponential,
entry by entry, of a positive semidefinite matrix is positive semidefinite [1]_.

References
----------
.. [1] G. Malkomes, C. Schaff & R. Garnett (2016), Bayesian optimization for automated model selection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from slayr_py.inference import expected_positive_part
from slayr_py.space import FloatArray

STEEPNESS = tuple(np.geomspace(0.3, 100, 11).tolist())
"""Values of c on the grid of the marginal likelihood."""

NOISE = (1e-3, 1e-2, 1e-1, 1.0)
"""Values of the noise variance, relative to scale^2, on the same grid."""


def targets_of(scores: Sequence[float]) -> FloatArray:
    """Return standardised scores, clipped from below at the median.

    Bad expressions can score 1e5 nats below the best, and failed ones -inf; only the better half matters. The rule
    suits scores of any scale. If more than half failed, scores are clipped at the worst finite score.
    """
    values = np.asarray(scores, dtype=np.float64)
    finite = values[np.isfinite(values)]
    if not finite.size:
        return np.zeros(len(values))
    raised = np.maximum(values, max(np.quantile(values, 0.5, method="lower"), finite.min()))
    spread = raised.std()
    return np.asarray((raised - raised.mean()) / (spread if spread > 0 else 1.0))


@dataclass(frozen=True)
class Surrogate:
    """Gaussian process on n expressions.

    Attributes
    ----------
    affinity : (n, n) float64
    targets : (n,) float64
    steepness, noise : float
        c, and the variance of the noise relative to ``scale``^2.
    mean, scale : float
    """

    affinity: FloatArray
    targets: FloatArray
    steepness: float
    noise: float
    mean: float = 0.0
    scale: float = 1.0

    @classmethod
    def fit(cls, affinity: FloatArray, targets: FloatArray) -> Surrogate:
        """Return the process with the largest marginal likelihood on the grid `STEEPNESS` by `NOISE`.

        Mean and scale are integrated out. The prior of scale^2 is InverseGamma(1/2, 1/2), the prior of mean / scale is
        flat.
        """
        grid = [cls(affinity, targets, c, noise)._profile() for c, noise in product(STEEPNESS, NOISE)]
        return max(grid, key=lambda pair: pair[1])[0]

    def _profile(self) -> tuple[Surrogate, float]:
        """Return the process with its best mean and scale, and the log marginal likelihood up to a constant."""
        n = len(self.targets)
        one = self._whiten(np.ones(n))
        target = self._whiten(self.targets)
        mean = one @ target / (one @ one)
        squares = 1 + np.sum(np.square(target - mean * one))
        evidence = -(n + 1) / 2 * np.log(squares) - np.log(np.diag(self._factor)).sum() - np.log(one @ one) / 2
        return replace(self, mean=float(mean), scale=float(np.sqrt(squares / (n + 1)))), float(evidence)

    def given(self, cross: FloatArray, target: float) -> Surrogate:
        """Return the process with one more expression, whose affinities to the others are ``cross`` (n,)."""
        affinity = np.block([[self.affinity, cross[:, None]], [cross[None], np.ones((1, 1))]])
        return replace(self, affinity=affinity, targets=np.append(self.targets, target))

    def predict(self, cross: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation without noise, (m,) each, from affinities (m, n)."""
        weights = self._whiten(self._similarity(cross).T)
        mean = self.mean + self._whiten(self.targets - self.mean) @ weights
        variance = np.maximum(1 - np.sum(np.square(weights), axis=0), 1e-12)
        return mean, self.scale * np.sqrt(variance)

    def expected_improvement(self, cross: FloatArray) -> FloatArray:
        """Return the expected improvement over the largest target, (m,)."""
        mean, sd = self.predict(cross)
        return expected_positive_part(mean - self.targets.max(), sd)

    def _similarity(self, affinity: FloatArray) -> FloatArray:
        return np.asarray(np.exp(self.steepness * (affinity - 1)))

    @cached_property
    def _factor(self) -> FloatArray:
        matrix = self._similarity(self.affinity) + self.noise * np.eye(len(self.targets))
        return np.asarray(cholesky(matrix, lower=True))

    def _whiten(self, values: FloatArray) -> FloatArray:
        return np.asarray(solve_triangular(self._factor, values, lower=True))
