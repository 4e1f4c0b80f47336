r"""Expected cost of an evaluation, under a model of its logarithm.

With log cost = c + d g(x), where c and d are the moments by which the logarithms of the observed costs were
standardised, and m_s, v_s the moments of g(x) under draw s,

    E[cost] = exp(c) mean_s exp(d m_s + d^2 v_s / 2),

the mean of log-normal distributions. Expected improvement per unit of cost is EI / E[cost] (Snoek, Larochelle & Adams
2012, section 3.2). The noise of observed costs would add a constant factor and is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from slayr_py.inference import Posterior, Predictor, log_sum_exp
from slayr_py.space import Encoded, FloatArray


@dataclass(frozen=True)
class Cost:
    """Expected cost under s draws of a model of log cost.

    Attributes
    ----------
    predictor : Predictor
    n_chains : int
        Number of chains of its draws.
    centre, scale : float
        Mean and standard deviation of the observed logarithms.
    """

    predictor: Predictor
    n_chains: int
    centre: float
    scale: float

    @classmethod
    def of(cls, posterior: Posterior, n_draws: int) -> Cost:
        """Return the cost by a model of its logarithm."""
        return cls(posterior.predictor(n_draws), posterior.n_chains, posterior.y_mean, posterior.y_sd)

    def subset(self, n_draws: int) -> Cost:
        """Return the cost under at most ``n_draws`` of the draws."""
        return replace(self, predictor=self.predictor.subset(self.n_chains, n_draws).for_search())

    def expected(self, encoded: Encoded) -> FloatArray:
        """Return the expected cost (k,) at k configurations."""
        return np.asarray(np.exp(self.centre - self.values(encoded)))

    def values(self, encoded: Encoded) -> FloatArray:
        """Return the summand of the landscape, (k,): minus the log of the expected cost, relative to exp(centre)."""
        terms = self._log_terms(*self.predictor.moments(encoded))
        return np.asarray(np.log(len(terms)) - log_sum_exp(terms))

    def values_and_gradients(self, encoded: Encoded) -> tuple[FloatArray, FloatArray]:
        """Return the summand (k,) and its derivatives by the real inputs, (k, D_real)."""
        moments = self.predictor.moments_with_gradient(encoded)
        terms = self._log_terms(moments.mean, moments.variance)
        total = log_sum_exp(terms)
        slopes = self.scale * moments.mean_gradient + 0.5 * self.scale**2 * moments.variance_gradient
        gradient = np.einsum("sk,skd->kd", np.exp(terms - total), slopes)
        return np.log(len(terms)) - total, -gradient

    def _log_terms(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        return self.scale * mean + 0.5 * self.scale**2 * variance
