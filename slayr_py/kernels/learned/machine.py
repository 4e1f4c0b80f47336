"""The predictions of a machine with weights alpha_i at points u_i: g(u) = sum_i alpha_i K_2(u_i, u)."""

from __future__ import annotations

import numpy as np

from slayr_py.kernels.learned.power_series import PowerSeries
from slayr_py.space import FloatArray


class Machine:
    """A machine's predictions without the intercept, and their derivatives.

    Parameters
    ----------
    series : PowerSeries
        Of the machine's kernel.
    points : (N, d) float64
        Points of the machine, in coordinates about the origin.
    alpha : (N,) float64
        Their signed weights.

    Attributes
    ----------
    scale : float
        Standard deviation of the predictions at the points; 1 if it is 0.
    """

    def __init__(self, series: PowerSeries, points: FloatArray, alpha: FloatArray) -> None:
        self._series = series
        self._points = points
        self._alpha = alpha
        self.scale = float(self.predict(points).std()) or 1.0

    def predict(self, u: FloatArray) -> FloatArray:
        """Return g(u), (n,)."""
        return np.asarray(self._series.of(*self._pairs(u)) @ self._alpha)

    def predict_with_slopes(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return g(u) (n,) and its derivatives by u, (n, d)."""
        sigma = self._series.sigma
        pairs = self._pairs(u)
        g = np.asarray(self._series.of(*pairs) @ self._alpha)
        slopes = (self._series.slope(*pairs) * self._alpha) @ (self._points / sigma)
        if self._series.damped:
            slopes -= g[:, None] * u / sigma
        return g, np.asarray(slopes)

    def _pairs(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return <<u, u_i>> and log r(u) r(u_i), both (n, N)."""
        damping = np.add.outer(self._series.log_damping(u), self._series.log_damping(self._points))
        return u @ (self._points / self._series.sigma).T, damping
