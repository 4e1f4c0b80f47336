"""Choose draws of a fit: thinned over its chains, or in proportion to a weight."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slayr_py.space import FloatArray


class Chains(NamedTuple):
    """Rows of draws that came from the same chains, for Monte Carlo errors of means over draws.

    Attributes
    ----------
    share : float
        Share of these draws among all draws.
    rows : (c, s) int
        Rows of c chains.
    """

    share: float
    rows: NDArray[np.intp]


def thinned(n_draws: int, n_chains: int, most: int) -> NDArray[np.intp]:
    """Return the rows of at most ``most`` of ``n_draws`` draws, the same number from every chain, evenly spaced."""
    rows = np.arange(n_draws).reshape(n_chains, -1)
    if most < n_draws:
        rows = rows[:, np.linspace(0, rows.shape[1] - 1, max(1, most // n_chains)).round().astype(np.intp)]
    return rows.ravel()


def counts(weights: FloatArray, n: int, offset: float) -> NDArray[np.intp]:
    """Return how many of n draws each model gets by systematic resampling.

    Parameters
    ----------
    weights : (k,) float64
        Their sum is 1.
    n : int
    offset : float
        Position of the grid in [0, 1). If it is uniformly distributed, the expected numbers are n times the weights.

    Returns
    -------
    (k,) int
        Their sum is n, and each differs from n times its weight by less than 1.
    """
    ends = np.cumsum(weights)
    ends = n * (ends / ends[-1]) + offset
    return np.asarray(np.diff(np.floor(ends), prepend=0.0), dtype=np.intp)


def evenly(n: int, count: int) -> NDArray[np.intp]:
    """Return ``count`` of n rows, in order and evenly spaced; rows repeat if ``count`` exceeds n."""
    return np.floor((np.arange(count) + 0.5) * n / max(count, 1)).astype(np.intp)
