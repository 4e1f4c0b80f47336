"""Hyperparameters of kernels and models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from slayr_py.errors import DataError
from slayr_py.kernels.prior import SUM_ROUNDING, Prior
from slayr_py.kernels.priors import HalfNormal, LogNormal, Normal
from slayr_py.space import FloatArray

Draws = Mapping[str, FloatArray]
"""Hyperparameters by name for s draws: (s,) for a scalar, (s, k) for a vector of length k."""

_Z_99 = float(ndtri(0.995))  # of a standard normal; 99% are between -_Z_99 and _Z_99

_SUPPORTS: dict[str, tuple[str, Callable[[FloatArray], bool]]] = {
    "real": ("finite", lambda v: True),
    "positive": ("positive and finite", lambda v: bool(np.all(v > 0))),
    "non-negative": ("non-negative and finite", lambda v: bool(np.all(v >= 0))),
    "unit interval": ("in [0, 1]", lambda v: bool(np.all((v >= 0) & (v <= 1)))),
    "simplex": ("non-negative with sum 1", lambda v: bool(np.all(v >= 0) and abs(v.sum() - 1) < SUM_ROUNDING)),
}


@dataclass(frozen=True)
class Hyperparameter:
    """A hyperparameter of a kernel on one space.

    Attributes
    ----------
    name : str
        Name in ``theta``, in the Stan program and in arrays of draws.
    prior : Prior
        Default prior; its family fixes the support.
    labels : tuple of str, optional
        Labels of a vector's entries; None for a scalar.
    dimension : str
        Name of a vector's dimension in arrays of draws.
    may_vanish : bool
        Whether a positive hyperparameter has the limit 0, where its effect is absent. :meth:`Kernel.gram` accepts it,
        and a posterior below the range of the prior needs no note.
    """

    name: str
    prior: Prior
    labels: tuple[str, ...] | None = None
    dimension: str = ""
    may_vanish: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """() for a scalar, (length,) for a vector."""
        return () if self.labels is None else (len(self.labels),)

    @property
    def entries(self) -> tuple[str, ...]:
        """Names of the entries, such as "lengthscale[x]"; for a scalar its own name."""
        return (self.name,) if self.labels is None else tuple(f"{self.name}[{label}]" for label in self.labels)

    def check(self, value: ArrayLike) -> FloatArray:
        """Return one setting as an array.

        Raises
        ------
        DataError
            For a wrong shape or a value outside the support.
        """
        array = np.asarray(value, dtype=np.float64)
        if array.shape != self.shape:
            raise DataError(f"theta[{self.name!r}] has shape {array.shape}; give shape {self.shape}")
        description, legal = _SUPPORTS["non-negative" if self.may_vanish else self.prior.support]
        if not (np.all(np.isfinite(array)) and legal(array)):
            total = f" with sum {array.sum():.9g}" if self.prior.support == "simplex" else ""
            raise DataError(f"theta[{self.name!r}] is {array.tolist()}{total}; it must be {description}")
        return array

    def outside_prior(self, draws: FloatArray) -> Iterator[str]:
        """Yield a note for each entry whose central 90% of draws (s, ...) are outside the central 99% of its prior.

        Prior and data then contradict each other. Fixed entries and weights with a joint prior have no range.
        """
        if self.prior.support == "simplex":
            return
        shape = (len(self.entries),)
        first, median, last = np.quantile(draws, [0.05, 0.5, 0.95], axis=0).reshape(3, *shape)
        low, high = (np.broadcast_to(self.prior.at_score(np.array(z)), shape) for z in (-_Z_99, _Z_99))
        below = (last < low) & (not self.may_vanish)
        above = first > high
        for i in np.flatnonzero((below | above) & ~self.prior.is_fixed(self.shape)):
            side = "above" if above[i] else "below"
            yield (
                f"{self.entries[i]}: the posterior, {first[i]:.3g} to {last[i]:.3g} with median {median[i]:.3g}, is "
                f"{side} the 99% range {low[i]:.3g} to {high[i]:.3g} of the prior {self.prior}; give a prior that "
                f"allows it, priors={{{self.name!r}: ...}}, unless the prior is certain"
            )


# Targets have mean 0 and standard deviation 1; the priors are explained in docs/decisions/priors.md and warp.md.
MEAN = Hyperparameter("mu", Normal(0.0, 1.0))
SIGNAL = Hyperparameter("sigma_f", LogNormal(0.0, 0.5))
NOISE = Hyperparameter("sigma_n", HalfNormal(1.0), may_vanish=True)
"""Noise of data that may be noisy. The values have standard deviation 1, and a design of distant points tells little
about the share of noise in it: a prior of small noise would decide that there is none."""
WARP = Hyperparameter("warp", LogNormal(-1.0, 1.0))
PIVOT_WARP = Hyperparameter("warp", LogNormal(-2.0, 2.0))
"""Warp with a pivot, the best target. There T' is nearly proportional to the warp, so that this target alone changes
the prior to about LogNormal(2, 2)."""
LATENT_SIGNAL = Hyperparameter("sigma_f", LogNormal(2.3, 0.5))
"""Signal standard deviation of the latent function of binary observations. It is large, since failures of an objective
are mostly deterministic."""
UNIT_NOISE = Hyperparameter("sigma_n", LogNormal(0.0, 0.0))
"""Noise of the probit likelihood: P(f + e > 0) = Phi(f) for e ~ Normal(0, 1)."""
