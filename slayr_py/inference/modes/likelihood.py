"""Targets of a fit with the variances of their noise; the NumPy twin of ``stan/functions/probit.stan``.

Symbols: s draws, n observations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_ndtr

from slayr_py.inference.modes.triangular import solve_lower
from slayr_py.inference.normal import log_phi
from slayr_py.inference.warp import pivot_of, warped
from slayr_py.kernels import Draws
from slayr_py.space import FloatArray
from slayr_py.threads import one_thread

_STEPS = 100  # only ends iterations that do not converge
_DAMPING = 0.7  # prevents oscillation of the factors of many close observations
_TOLERANCE = 1e-5  # largest last change of a precision, relative to 1e-3 + precision
_SMALLEST_PRECISION = 1e-10  # of a factor; keeps precisions positive for division


class Targets(NamedTuple):
    """Observations of the function, as the program sees them.

    Attributes
    ----------
    y : (n,) or (s, n) float64
        Standardised targets; 1 or -1 if binary.
    y_sd : (n,) float64
        Known standard deviations of the errors of the targets; 0 under a warp.
    noise_floor : float
        Standard deviation of the noise that all observations have, besides ``sigma_n``.
    binary : bool
        Whether the likelihood is probit.
    pivot : float, optional
        Pivot of the warp, if it has one.
    """

    y: FloatArray
    y_sd: FloatArray
    noise_floor: float = 0.0
    binary: bool = False
    pivot: float | None = None

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Targets:
        """Return the targets in a program's data."""
        y = np.asarray(data["y"], dtype=np.float64)
        y_sd = np.asarray(data["y_sd"], dtype=np.float64)
        pivot = pivot_of(data)
        return cls(y, y_sd, float(data["noise_floor"]), bool(data["binary"]), pivot)

    def gaussian(self, covariance: FloatArray, draws: Draws) -> tuple[FloatArray, FloatArray]:
        """Return the targets of a Gaussian likelihood and the variances of their noise, (s, n), for every draw.

        Parameters
        ----------
        covariance : (s, n, n) float64
            Covariance of the function, without noise.
        draws : mapping of str to (s, ...) float64
        """
        s, n = covariance.shape[:2]
        if self.binary:
            return probit_targets(self.y, covariance, draws["mu"])
        y = np.broadcast_to(self.y, (s, n))
        if "warp" in draws:
            y = warped(y, draws["warp"][:, None], self.pivot)
        return y, self.common_noise(draws)[:, None] + np.square(self.y_sd)

    def common_noise(self, draws: Draws) -> FloatArray:
        """Return the variance (s,) of the noise of an observation without a known error."""
        return np.square(draws["sigma_n"]) + self.noise_floor**2


def probit_targets(y: FloatArray, covariance: FloatArray, mu: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return targets and noise variances (s, n) whose Gaussian process has the moments of the probit posterior.

    Expectation propagation for every draw (Rasmussen & Williams 2006, section 3.6), all factors at once, with damping.

    Parameters
    ----------
    y : (n,) float64
        1 or -1.
    covariance : (s, n, n) float64
    mu : (s,) float64
        Means of the latent function.
    """
    with one_thread():
        return _propagate(y, covariance, mu)


def _propagate(y: FloatArray, covariance: FloatArray, mu: FloatArray) -> tuple[FloatArray, FloatArray]:
    s, n = covariance.shape[:2]
    centre = mu[:, None]
    prior = np.diagonal(covariance, axis1=1, axis2=2)
    precision = np.zeros((s, n))
    shift = np.zeros((s, n))
    rows = np.arange(s)  # of draws that have not converged
    for step in range(_STEPS):
        k = covariance[rows]
        p = precision[rows]
        h = shift[rows]
        root = np.sqrt(p)
        factor = np.linalg.cholesky(root[:, :, None] * k * root[:, None, :] + np.eye(n))
        v = np.stack([solve_lower(lower, right) for lower, right in zip(factor, k * root[:, None, :], strict=True)])
        b = h - centre[rows] * p
        variance = prior[rows] - np.einsum("sij,sij->si", v, v)
        vb = np.einsum("sij,si->sj", v, b)
        f = centre[rows] + np.einsum("sij,sj->si", k, b) - np.einsum("sij,sj->si", v, vb)
        # Cavity distribution, without the observation itself
        cavity_variance = 1 / (1 / variance - p)
        cavity_mean = cavity_variance * (f / variance - h)
        scale = np.sqrt(1 + cavity_variance)
        gradient, curvature = _derivatives(y, cavity_mean / scale)
        mean_next = cavity_mean + cavity_variance * gradient / scale
        variance_next = cavity_variance - np.square(cavity_variance / scale) * curvature
        change = np.maximum(1 / variance_next - 1 / cavity_variance, _SMALLEST_PRECISION) - p
        damping = 1.0 if step == 0 else _DAMPING
        shift[rows] = h + damping * (mean_next / variance_next - cavity_mean / cavity_variance - h)
        precision[rows] = p + damping * change
        moving = np.max(np.abs(change) / (1e-3 + precision[rows]), axis=1, initial=0.0) >= _TOLERANCE
        rows = rows[moving]
        if not len(rows):
            break
    return shift / precision, 1 / precision


def _derivatives(y: FloatArray, f: FloatArray) -> tuple[FloatArray, FloatArray]:
    z = y * f
    ratio = np.exp(log_phi(z) - log_ndtr(z))
    return y * ratio, ratio * (ratio + z)
