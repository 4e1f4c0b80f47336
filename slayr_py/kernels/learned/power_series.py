"""Power series of the semi-inner product, and the monomial features that belong to them.

The free kernels of Shilton et al. (arXiv 1802.05370, theorem 2) are, for any number m of points,

    K_m(u_1, ..., u_m) = prod_i r(u_i) h(<<u_1, ..., u_m>>),  <<u_1, ..., u_m>> = sum_c prod_i u_ic / sigma_c,

with h(chi) = sum_q kappa_q chi^q and kappa_q >= 0. With the multi-indices k of the columns, |k| = sum_c k_c,

    K_m = sum_k kappa_|k| |k|! prod_i theta_k(u_i) / prod_c (k_c! sigma_c^k_c),  theta_k(u) = r(u) prod_c u_c^k_c.

Symbols
-------
n : points; d : columns; Q : orders of one column, 0 to Q - 1; u (n, d) : points in coordinates about the origin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb, factorial, gammaln, pdtrc, xlogy

from slayr_py.space import FloatArray

_TAIL = 1e-20  # Poisson probability beyond the orders of an infinite series


@dataclass(frozen=True, eq=False)
class PowerSeries:
    """A function h of the semi-inner product, with the scales of the columns.

    Attributes
    ----------
    sigma : (d,) float64
        Squared length-scales of the columns; 1 for finite series.
    degree : int, optional
        (coef0 + chi)^degree; exp(chi) without a degree.
    coef0 : float
    damped : bool
        Whether r(u) = exp(-sum_c u_c^2 / (2 sigma_c)); otherwise r = 1.
    binary : tuple of int
        Columns whose values are 0 and 1 only. All their powers from 1 on are equal, so that an infinite series needs
        one feature for them.
    """

    sigma: FloatArray
    degree: int | None = None
    coef0: float = 0.0
    damped: bool = False
    binary: tuple[int, ...] = ()

    def of(self, chi: FloatArray, log_factor: FloatArray | float = 0.0) -> FloatArray:
        """Return h(chi) exp(log_factor), in one exponential where exp(chi) alone could overflow."""
        if self.degree is None:
            return np.exp(chi + log_factor)
        return np.asarray((self.coef0 + chi) ** self.degree * np.exp(log_factor))

    def slope(self, chi: FloatArray, log_factor: FloatArray | float = 0.0) -> FloatArray:
        """Return h'(chi) exp(log_factor)."""
        if self.degree is None:
            return self.of(chi, log_factor)
        return np.asarray(self.degree * (self.coef0 + chi) ** (self.degree - 1) * np.exp(log_factor))

    def log_damping(self, u: FloatArray) -> FloatArray:
        """Return log r(u), (n,)."""
        return -0.5 * np.square(u) @ (1 / self.sigma) if self.damped else np.zeros(len(u))

    def coefficients(self, total: NDArray[np.number[Any]]) -> FloatArray:
        """Return kappa_q q! for total orders q."""
        if self.degree is None:
            return np.ones(total.shape)
        rest = self.degree - total
        return np.asarray(comb(self.degree, total) * self.coef0**rest * factorial(total))

    def powers(self, x: FloatArray, column: int, size: int) -> FloatArray:
        """Return r(x) x^k of one column, (Q, n)."""
        table = np.empty((size, len(x)))
        table[0] = self._damping(x, column)
        for k in range(1, size):
            np.multiply(table[k - 1], x, out=table[k])
        return table

    def features(self, x: FloatArray, column: int, size: int) -> FloatArray:
        """Return the features of one column, (Q, n): r(x) x^k / sqrt(sigma^k k!).

        The squares of the features of a damped series are Poisson probabilities of k at x^2 / sigma and add up to 1.
        The second feature of a binary column is the norm of all features from k = 1 on.
        """
        table = np.empty((size, len(x)))
        table[0] = self._damping(x, column)
        if self._merged(column):
            exponent = np.square(x) / self.sigma[column]
            table[1:] = np.sqrt(-np.expm1(-exponent) if self.damped else np.expm1(exponent))
            return table
        for k in range(1, size):
            np.multiply(table[k - 1], x / np.sqrt(k * self.sigma[column]), out=table[k])
        return table

    def feature_slopes(self, table: FloatArray, x: FloatArray, column: int) -> FloatArray:
        """Return the derivatives of :meth:`features` by x, (Q, n), without a division by x; 0 for a binary column."""
        if self._merged(column):
            return np.zeros_like(table)
        sigma = self.sigma[column]
        slopes = -(x / sigma) * table if self.damped else np.zeros_like(table)
        slopes[1:] += np.sqrt(np.arange(1, len(table)) / sigma)[:, None] * table[:-1]
        return slopes

    def envelope(self, column: int, radius: float) -> FloatArray:
        """Return the largest squared features of one column relative to r(x)^-2 K_2^exp, (Q,), for |x| <= radius.

        It is 1 for every order of a finite series, and the largest Poisson probability of an infinite one.
        """
        if self.degree is not None:
            return np.ones(self.degree + 1)
        rate = radius**2 / self.sigma[column]
        if self._merged(column):
            return np.array([1.0, -np.expm1(-rate)])
        k = np.arange(int(rate + 10 * np.sqrt(rate)) + 60)
        k = k[: 1 + int(np.sum(pdtrc(k, rate) > _TAIL))]
        at = np.minimum(k, rate)
        return np.asarray(np.exp(xlogy(k, at) - at - gammaln(k + 1)))

    def _damping(self, x: FloatArray, column: int) -> FloatArray | float:
        return np.exp(-np.square(x) / (2 * self.sigma[column])) if self.damped else 1.0

    def _merged(self, column: int) -> bool:
        return self.degree is None and column in self.binary
