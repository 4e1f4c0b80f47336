"""Targets of a fit with the variances of their noise.

Symbols: s draws, n observations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from slayr_py.errors import InferenceError
from slayr_py.inference.expectation_propagation import propagate
from slayr_py.inference.warp import pivot_of, warped
from slayr_py.kernels import Draws
from slayr_py.space import FloatArray

_RECENT = 5  # observations


class Targets(NamedTuple):
    """Observations of the function, as the program sees them.

    Attributes
    ----------
    y : (n,) or (s, n) float64
        Standardised targets; 1 or -1 if binary.
    errors : (n,) float64
        Known standard deviations of the errors of the targets; 0 under a warp.
    noise_floor : float
        Standard deviation of the noise that all observations have, besides ``sigma_n``.
    binary : bool
        Whether the likelihood is probit.
    pivot : float, optional
        Pivot of the warp, if it has one.
    """

    y: FloatArray
    errors: FloatArray
    noise_floor: float = 0.0
    binary: bool = False
    pivot: float | None = None

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Targets:
        """Return the targets in a program's data."""
        y = np.asarray(data["y"], dtype=np.float64)
        errors = np.asarray(data["y_sd"], dtype=np.float64)
        pivot = pivot_of(data)
        return cls(y, errors, float(data["noise_floor"]), bool(data["binary"]), pivot)

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
            sites = propagate(self.y, covariance, draws["mu"])
            if not np.isfinite(sites.targets).all():
                failed = np.sum(~np.isfinite(sites.targets).all(axis=1))
                raise InferenceError(
                    f"expectation propagation found no approximation of the binary observations for {failed} of {s} "
                    "draws of the hyperparameters; use priors of mu and sigma_f that are nearer to the default ones"
                )
            return sites.targets, sites.variance
        y = np.broadcast_to(self.y, (s, n))
        if "warp" in draws:
            y = warped(y, draws["warp"][:, None], self.pivot)
        return y, self.common_noise(draws)[:, None] + np.square(self.errors)

    def common_noise(self, draws: Draws) -> FloatArray:
        """Return the variance (s,) of the noise of an observation without a known error."""
        return np.square(draws["sigma_n"]) + self.noise_floor**2


def recent_error(errors: FloatArray) -> float:
    """Return the median of the last known errors (n,), which a further observation is expected to have; 0 without any.

    It does not follow one bad measurement, nor one without an error.
    """
    return float(np.median(errors[-_RECENT:])) if len(errors) else 0.0
