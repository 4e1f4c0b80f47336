"""Targets of a fit with the variances of their noise; the NumPy twin of ``stan/functions/probit.stan``.

Symbols: s draws, n observations; f (s, n) latent function, K (s, n, n) its covariance; g and W first and negative
second derivative of log Phi(y f).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_ndtr

from slayr_py.inference.warp import log_slope, warped
from slayr_py.kernels.hyperparameters import Draws
from slayr_py.space.dimension import FloatArray

_STEPS = 50
_SMALLEST_CURVATURE = 1e-12


class Targets(NamedTuple):
    """Observations of the function, as the program sees them.

    Attributes
    ----------
    y : (n,) or (s, n) float64
        Standardised targets; 1 or -1 if binary.
    y_sd : (n,) float64
        Known standard deviations of their errors.
    noise_floor : float
        Standard deviation of the noise that all observations have, besides ``sigma_n``.
    binary : bool
        Whether the likelihood is probit.
    """

    y: FloatArray
    y_sd: FloatArray
    noise_floor: float = 0.0
    binary: bool = False

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Targets:
        """Return the targets in a program's data; data of earlier versions have no errors and no floor."""
        y = np.asarray(data["y"], dtype=np.float64)
        errors = np.asarray(data.get("y_sd", np.zeros(len(y))), dtype=np.float64)
        return cls(y, errors, float(data.get("noise_floor", 0.0)), bool(data.get("binary", 0)))

    def gaussian(self, covariance: FloatArray, draws: Draws) -> tuple[FloatArray, FloatArray]:
        """Return the targets of a Gaussian likelihood and the variances of their noise, (s, n), for every draw.

        Parameters
        ----------
        covariance : (s, n, n) float64
            Of the function, without noise.
        draws : mapping of str to (s, ...) float64
        """
        s, n = covariance.shape[:2]
        if self.binary:
            return laplace_targets(self.y, covariance, draws["mu"])
        y = np.broadcast_to(self.y, (s, n))
        errors = np.broadcast_to(self.y_sd, (s, n))
        if "warp" in draws:
            a = draws["warp"][:, None]
            y, errors = warped(y, a), errors * np.exp(log_slope(y, a))
        return y, self.common_noise(draws)[:, None] + np.square(errors)

    def common_noise(self, draws: Draws) -> FloatArray:
        """Return the variance (s,) of the noise of an observation without a known error."""
        return np.square(draws["sigma_n"]) + self.noise_floor**2


def laplace_targets(y: FloatArray, covariance: FloatArray, mu: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return targets and noise variances (s, n) whose Gaussian process is the Laplace approximation.

    Newton's method finds the mode of the latent function under each draw (Rasmussen & Williams 2006, algorithm 3.1),
    with halved steps where a full one does not improve the objective.

    Parameters
    ----------
    y : (n,) float64
        1 or -1.
    covariance : (s, n, n) float64
    mu : (s,) float64
        Means of the latent function.
    """
    s, n = covariance.shape[:2]
    centre = mu[:, None]
    a, f = np.zeros((s, n)), np.repeat(centre, n, axis=1)
    value = _objective(y, a, f, centre)
    for _ in range(_STEPS):
        gradient, curvature = _derivatives(y, f)
        root = np.sqrt(curvature)
        b = curvature * (f - centre) + gradient
        inner = root[:, :, None] * covariance * root[:, None, :] + np.eye(n)
        right = root * np.einsum("sij,sj->si", covariance, b)
        direction = b - root * np.linalg.solve(inner, right[..., None])[..., 0] - a
        size, before = np.ones((s, 1)), value
        while True:
            a_next = a + size * direction
            f_next = centre + np.einsum("sij,sj->si", covariance, a_next)
            value = _objective(y, a_next, f_next, centre)
            worse = (value < before) & (size[:, 0] >= 1e-3)
            if not worse.any():
                break
            size = np.where(worse[:, None], size / 2, size)
        a, f = a_next, f_next
        if np.all(np.abs(value - before) < 1e-14 * (1 + np.abs(value))):
            break
    gradient, curvature = _derivatives(y, f)
    variance = 1 / np.maximum(curvature, _SMALLEST_CURVATURE)
    return f + gradient * variance, variance


def _derivatives(y: FloatArray, f: FloatArray) -> tuple[FloatArray, FloatArray]:
    z = y * f
    ratio = np.exp(-0.5 * np.square(z) - 0.5 * np.log(2 * np.pi) - log_ndtr(z))
    return y * ratio, ratio * (ratio + z)


def _objective(y: FloatArray, a: FloatArray, f: FloatArray, centre: FloatArray) -> FloatArray:
    return np.asarray(log_ndtr(y * f).sum(axis=1) - 0.5 * np.einsum("si,si->s", a, f - centre))
