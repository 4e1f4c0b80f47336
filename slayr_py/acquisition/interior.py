r"""A weak belief that the optimum is inside the ranges of the parameters, as a factor of the acquisition.

A Gaussian process knows least at the bounds, which have observations on one side only, and most of the volume of a box
of many dimensions is near a bound. Expected improvement therefore evaluates faces and corners, while users choose
ranges that contain the optimum. With b the best observation, the search multiplies the acquisition by

    prod_d min(1, w(u_d) / w(b_d)),   w(u) = 4 u (1 - u) + e,   u_d in [0, 1],

over the floats d. w is the density of Beta(2, 2) relative to its maximum, mixed with a uniform one (Hesterberg 1995,
"Weighted average importance sampling and defensive mixture distributions", Technometrics 37), so that no bound is
excluded: a factor is at least e / (1 + e), about 1/21. The minimum with 1 means that only a value which is nearer to a
bound than that of the best observation needs a larger improvement. With several objectives, w(b_d) is the smallest
of the non-dominated observations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slayr_py.space import Encoded, Encoder, FloatArray

_PEDESTAL = 0.05  # e


@dataclass(frozen=True, eq=False)
class Interior:
    """The factor for the best observation, or for the non-dominated ones.

    Attributes
    ----------
    encoder : Encoder
    log_best : (D,) float64
        Smallest log w(b) of the parameters to which the belief applies, minus infinity for the others.
    """

    encoder: Encoder
    log_best: FloatArray

    @classmethod
    def of(cls, encoder: Encoder, best: Encoded) -> Interior:
        """Return the factor, given the configurations of these observations.

        Parameters in constraints on inputs have no factor: their optimum is often where one holds with equality.
        """
        floats = np.array([d.kind == "float" and d.name not in encoder.constrained for d in encoder.dimensions])
        # A parameter that is inactive in a best observation has an arbitrary value there.
        u = np.where(floats & best.active, best.unit_values, 0.5)
        return cls(encoder, np.where(floats, np.log(_weight(u)).min(axis=0), -np.inf))

    def values(self, encoded: Encoded) -> FloatArray:
        """Return the logarithm of the factor (m,) at configurations."""
        return self.values_and_gradients(encoded)[0]

    def values_and_gradients(self, encoded: Encoded) -> tuple[FloatArray, FloatArray]:
        """Return the logarithm of the factor (m,), and its derivatives by the real inputs (m, D_real)."""
        believed = np.isfinite(self.log_best)
        u = np.where(believed, encoded.unit_values, 0.5)
        weight = _weight(u)
        log_ratio = np.log(weight) - self.log_best
        counts = encoded.active & believed & (log_ratio < 0)
        gradients = np.where(counts, (4 - 8 * u) / weight, 0.0)
        real = [d.is_real for d in self.encoder.dimensions]
        return np.where(counts, log_ratio, 0.0).sum(axis=1), gradients[:, real]


def _weight(u: FloatArray) -> FloatArray:
    return 4 * u * (1 - u) + _PEDESTAL
