r"""A weak belief that the optimum is inside the ranges of the parameters, as a factor of the acquisition.

A Gaussian process knows least at the bounds, which have observations on one side only, and most of the volume of a box
of many dimensions is near a bound. Expected improvement therefore evaluates faces and corners, while users choose
ranges that contain the optimum. With b the best observation, the search multiplies the acquisition by

    r + (1 - r) prod_d min(1, w(u_d) / w(b_d)),   w(u) = 4 u (1 - u) + e,   u_d in [0, 1],

over the floats d. w is the density of Beta(2, 2) relative to its maximum, mixed with a uniform one (Hesterberg 1995,
"Weighted average importance sampling and defensive mixture distributions", Technometrics 37), so that no bound is
excluded. The minimum with 1 means that only a value which is nearer to a bound than that of the best observation needs
a larger improvement.

r is the probability that the optimum is anywhere, at several bounds at once if need be. It is r_0 before the first
observation, and by Bayes' theorem, if b is where the optimum is,

    r = r_0 / (r_0 + (1 - r_0) prod_d w(b_d) / (2/3 + e)),

where 2/3 + e is the integral of w. A best observation at the bounds of several parameters ends the belief for the
others that it has. In a conditional space it tells nothing about those that it does not have: they have a factor of the
same form of their own, with r = r_0 and w(b_d) = w(1/2). Fixed values tell nothing either, and have no factor. With
several objectives, w(b_d) in the factor is the smallest of the non-dominated observations, and the product in r is
averaged over them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from slayr_py.space import Encoded, Encoder, Fixed, FloatArray

_PEDESTAL = 0.05  # e; both values are measured in docs/decisions/interior.md
_ANYWHERE = 0.05  # r_0
_LOG_PRIOR = (float(np.log(_ANYWHERE)), float(np.log(1 - _ANYWHERE)))


@dataclass(frozen=True, eq=False)
class Interior:
    """The factor for the best observation, or for the non-dominated ones.

    Attributes
    ----------
    encoder : Encoder
    log_best : (D,) float64
        Smallest log w(b) of the parameters to which the belief applies, minus infinity for the others.
    elsewhere : (D,) bool
        Parameters that none of these observations has.
    log_anywhere, log_inside : float
        Logarithms of r and of 1 - r for the other parameters.
    """

    encoder: Encoder
    log_best: FloatArray
    elsewhere: NDArray[np.bool_]
    log_anywhere: float
    log_inside: float

    @classmethod
    def of(cls, encoder: Encoder, best: Encoded, fixed: Fixed | None = None) -> Interior:
        """Return the factor, given the configurations of these observations, and the values that all candidates have.

        Parameters in constraints on inputs have no factor: their optimum is often where one holds with equality.
        """
        floats = np.array([d.kind == "float" and d.name not in encoder.constrained for d in encoder.dimensions])
        if fixed is not None:
            floats[fixed.columns] = False
        known = floats & best.active  # an inactive parameter has an arbitrary value
        log_weight = np.log(_weight(np.where(known, best.unit_values, 0.5)))
        log_densities = np.sum(log_weight - np.log(2 / 3 + _PEDESTAL), axis=1, where=known)
        log_density = np.logaddexp.reduce(log_densities) - np.log(len(best))
        log_both = np.add(_LOG_PRIOR, [0.0, log_density])
        log_anywhere, log_inside = log_both - np.logaddexp(*log_both)
        log_best = np.where(floats, log_weight.min(axis=0), -np.inf)
        elsewhere = np.all(~best.active, axis=0)
        return cls(encoder, log_best, elsewhere, float(log_anywhere), float(log_inside))

    @cached_property
    def _groups(self) -> list[tuple[NDArray[np.bool_], tuple[float, float]]]:
        """The parameters of each factor, (D,), and logarithms of its r and 1 - r; one factor without conditions."""
        groups = [(~self.elsewhere, (self.log_anywhere, self.log_inside)), (self.elsewhere, _LOG_PRIOR)]
        return [(group, logs) for group, logs in groups if group.any()]

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
        slopes = np.where(counts, (4 - 8 * u) / weight, 0.0)
        values = np.zeros(len(encoded))
        for group, (log_anywhere, log_inside) in self._groups:
            log_product = np.where(counts & group, log_ratio, 0.0).sum(axis=1)
            inside = log_inside + log_product
            mixed = np.logaddexp(log_anywhere, inside)
            values += np.where(log_product < 0, mixed, 0.0)
            slopes[:, group] *= np.exp(inside - mixed)[:, None]  # the share of the product in the factor
        real = [d.is_real for d in self.encoder.dimensions]
        return values, slopes[:, real]


def _weight(u: FloatArray) -> FloatArray:
    return 4 * u * (1 - u) + _PEDESTAL
