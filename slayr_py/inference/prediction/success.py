"""Probability of success of a binary model, with the skewness beside observations.

Symbols, for one draw of s
--------------------------
K_y = k(X, X) + diag(noise) : covariance of the n targets of expectation propagation (EP), and pending configurations
m, S = 1 + v : moments under EP of u = f(x) + e with e ~ Normal(0, 1); a success at x is u > 0
V_i > -k_i : observation i, where V_i is standard normal given the other observations, k_i its standardised margin
r_i, rho_i : covariance and correlation of u and V_i given the other observations
lambda = phi(k) / Phi(k), delta = lambda (lambda + k) : V given V > -k has mean lambda and variance 1 - delta

EP replaces the distribution of u by a normal one, so that P(u > 0) = Phi(m / sqrt(S)). Given the other observations
under EP, observation i gives u a skewed distribution with the same moments m and S and with the third cumulant
r^3 kappa(k): that of c (h + rho V + sqrt(1 - rho^2) N) given V > -k, where c^2 = S / (1 - rho^2 delta),
h = m / c - rho lambda and N is standard normal. Then P(u > 0) = Phi_2(h, k; rho) / Phi(k), which is exact for one
observation.

For n of them rho and k are means with the squared third cumulants as weights. So the observation that decides the
skewness gives the correction, which remains a smooth function of x. The product of the corrections of all observations
(Cseke & Heskes 2011, "Approximate marginals in latent Gaussian models") is too large if observations are close to each
other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr, owens_t

from slayr_py.inference.modes.triangular import solve_lower
from slayr_py.inference.normal import hazard, log_phi
from slayr_py.space import FloatArray

_NO_WEIGHT = 1e-30  # added to the sum of weights, which is 0 far from all observations
_ACCURATE = 1e-10  # smaller differences of Owen's T have lost digits
_ZERO = 1e-12  # replaces 0 in a quotient of limits


@dataclass(frozen=True, eq=False)
class Skewness:
    """Contributions of the n observations to the skewness of u, for s draws.

    Attributes
    ----------
    inverse : (s, n + q, n + q) float64
        K_y^-1, with q pending configurations after the observations.
    scale : (s, n) float64
        r_i per unit of (K_y^-1 k(X, x))_i.
    margin, cumulant, lost : (s, n) float64
        k_i, kappa(k_i) and delta_i.
    """

    inverse: FloatArray
    scale: FloatArray
    margin: FloatArray
    cumulant: FloatArray
    lost: FloatArray

    @classmethod
    def of(
        cls, factor: FloatArray, weights: FloatArray, targets: FloatArray, prior: FloatArray, y: FloatArray
    ) -> Skewness:
        """Return the contributions from the factors of K_y.

        Parameters
        ----------
        factor : (s, n + q, n + q) float64
            Cholesky factors of K_y.
        weights : (s, n + q) float64
            K_y^-1 (targets - mu).
        targets : (s, n + q) float64
            Targets of expectation propagation, and means of pending configurations.
        prior : (s, n + q) float64
            Prior variances of the function.
        y : (n,) float64
            1 for a success and -1 for a failure.
        """
        n = len(y)
        identity = np.eye(factor.shape[1])
        lower = np.stack([solve_lower(one, identity) for one in factor]).transpose(0, 2, 1)
        inverse = lower.transpose(0, 2, 1) @ lower
        noise = np.einsum("sij,sij->si", factor, factor)[:, :n] - prior[:, :n]
        # Moments given the other observations (Rasmussen & Williams 2006, eq. 5.12)
        precision = np.diagonal(inverse, axis1=1, axis2=2)[:, :n]
        sd = np.sqrt(1 + np.maximum(1 / precision - noise, 0.0))
        margin = y * (targets[:, :n] - weights[:, :n] / precision) / sd
        ratio = hazard(margin)
        cumulant = ratio * ((ratio + margin) * (2 * ratio + margin) - 1)
        # delta, by a formula that keeps |rho| < 1 also if EP has not converged
        return cls(inverse, y / (precision * sd), margin, cumulant, precision * np.square(sd))

    def log_success(self, mean: FloatArray, variance: FloatArray, solved: FloatArray) -> FloatArray:
        """Return log P(u > 0), (s, m).

        Parameters
        ----------
        mean, variance : (s, m) float64
            Moments of the function at m configurations.
        solved : (s, m, n + q) float64
            K_y^-1 k(X, x).
        """
        total = 1 + variance
        mixed = self._mixed(self._covariances(solved), total)
        return np.asarray(_Skewed(mean, total, mixed.rho, mixed.k).log_positive)

    def log_success_with_slopes(
        self, mean: FloatArray, variance: FloatArray, solved: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return log P(u > 0) and its derivatives by mean, variance and k(X, x); shapes as in :meth:`log_success`."""
        r = self._covariances(solved)
        total = 1 + variance
        mixed = self._mixed(r, total)
        skewed = _Skewed(mean, total, mixed.rho, mixed.k)
        by_mean, by_variance, by_rho, by_k = skewed.slopes()
        precision = np.square(mixed.inverse_c)
        by_variance -= 0.5 * by_rho * np.einsum("smn,smn,smn->sm", mixed.shares, mixed.rhos, precision)
        # The share of an observation is proportional to r_i^6.
        by_log_r = (by_rho * total)[..., None] * mixed.rhos * precision
        by_log_r += (6 * by_rho)[..., None] * (mixed.rhos - mixed.rho[..., None])
        by_log_r += (6 * by_k)[..., None] * (self.margin[:, None] - mixed.k[..., None])
        by_solved = by_log_r * mixed.shares_by_r * self.scale[:, None]
        return skewed.log_positive, by_mean, by_variance, by_solved @ self.inverse[:, : r.shape[2]]

    def _covariances(self, solved: FloatArray) -> FloatArray:
        """Return r_i, (s, m, n)."""
        return np.asarray(self.scale[:, None] * solved[..., : self.scale.shape[1]])

    def _mixed(self, r: FloatArray, total: FloatArray) -> _Mixed:
        """Return the means of rho and k over the observations."""
        inverse_c = 1 / np.sqrt(total[..., None] + np.square(r) * self.lost[:, None])
        rhos = r * inverse_c
        cumulants = self.cumulant[:, None] * np.square(r)
        shares_by_r = np.square(cumulants) * r
        shares = shares_by_r * r
        weight = shares.sum(axis=-1, keepdims=True) + _NO_WEIGHT
        shares /= weight
        shares_by_r /= weight
        rho = np.einsum("smn,smn->sm", shares, rhos)
        return _Mixed(rho, (shares @ self.margin[..., None])[..., 0], rhos, inverse_c, shares, shares_by_r)


class _Mixed(NamedTuple):
    """Means of rho and k (s, m); rho_i, 1 / c_i, the share of each observation, and that divided by r_i, (s, m, n)."""

    rho: FloatArray
    k: FloatArray
    rhos: FloatArray
    inverse_c: FloatArray
    shares: FloatArray
    shares_by_r: FloatArray


class _Skewed:
    """Distribution of u with moments m, S; all arguments (s, m)."""

    def __init__(self, mean: FloatArray, variance: FloatArray, rho: FloatArray, k: FloatArray) -> None:
        self.variance = variance
        self.rho = rho
        self.k = k
        self.hazard = hazard(k)
        self.lost = self.hazard * (self.hazard + k)
        self.left = 1 - np.square(rho) * self.lost
        self.c = np.sqrt(variance / self.left)
        self.centre = mean / self.c
        self.h = self.centre - rho * self.hazard
        self.log_joint = _log_orthant(self.h, k, rho)
        self.log_positive = np.minimum(self.log_joint - log_ndtr(k), 0.0)

    def slopes(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the derivatives of the log probability by m, S, rho and k."""
        h = self.h
        k = self.k
        rho = self.rho
        rest = np.sqrt(1 - np.square(rho))
        conditional = (k - rho * h) / rest
        by_h = np.exp(log_ndtr(conditional) + log_phi(h) - self.log_joint)
        by_limit = np.exp(log_ndtr((h - rho * k) / rest) + log_phi(k) - self.log_joint)
        by_correlation = np.exp(log_phi(h) + log_phi(conditional) - self.log_joint) / rest
        by_log_c = -by_h * self.centre
        lost_slope = self.hazard * (1 - self.lost) - self.lost * (self.hazard + k)
        by_rho = by_correlation - by_h * self.hazard + by_log_c * rho * self.lost / self.left
        by_k = by_h * rho * self.lost + by_log_c * np.square(rho) * lost_slope / (2 * self.left)
        return by_h / self.c, by_log_c / (2 * self.variance), by_rho, by_k + by_limit - self.hazard


def _log_orthant(h: FloatArray, k: FloatArray, rho: FloatArray) -> FloatArray:
    """Return the log probability that two standard normal variables of correlation rho are below h and k.

    By Owen's T function (Owen 1956, "Tables for computing bivariate normal probabilities", eq. 2.1). Where that
    difference loses digits: the smaller limit's probability, times that of the other limit under a normal distribution
    with the moments of the other variable given the first.
    """
    rest = np.sqrt(1 - np.square(rho))
    h = np.where(np.abs(h) < _ZERO, _ZERO, h)
    k = np.where(np.abs(k) < _ZERO, _ZERO, k)
    joint = 0.5 * (ndtr(h) + ndtr(k)) - owens_t(h, (k / h - rho) / rest) - owens_t(k, (h / k - rho) / rest)
    joint -= np.where((h < 0) != (k < 0), 0.5, 0.0)
    small = joint < _ACCURATE
    values = np.log(np.where(small, 1.0, joint))
    lower = np.minimum(h, k)[small]
    upper = np.maximum(h, k)[small]
    ratio = hazard(lower)
    spread = np.sqrt(1 - np.square(rho[small]) * np.minimum(ratio * (ratio + lower), 1.0))
    values[small] = log_ndtr(lower) + log_ndtr((upper + rho[small] * ratio) / spread)
    return values
