"""Importance resampling of approximate posteriors (Vehtari et al. 2024, Pareto smoothed importance sampling)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slayr_py.inference.diagnostics.arviz_bridge import pareto_smooth
from slayr_py.space import FloatArray


class Resampled(NamedTuple):
    """Result of importance resampling.

    Attributes
    ----------
    rows : (n,) int
        Indices of the resampled draws.
    pareto_k : float
        Tail shape of the importance ratios. Above 0.7 the approximation misses part of the posterior.
    ess : float
        Effective number of distinct draws, 1 / sum(weights^2).
    """

    rows: NDArray[np.intp]
    pareto_k: float
    ess: float


def smoothed_resample(log_ratio: FloatArray, n: int, rng: np.random.Generator) -> Resampled:
    """Resample n draws by Pareto-smoothed log importance ratios (s,).

    The resampling is systematic, see `systematic_rows`. Draws with an infinite or undefined ratio are discarded.

    Raises
    ------
    ValueError
        If fewer than five ratios are finite.
    """
    finite = np.flatnonzero(np.isfinite(log_ratio))
    if len(finite) < 5:
        raise ValueError(f"only {len(finite)} of {len(log_ratio)} approximate draws have a finite density")
    weights, pareto_k = pareto_smooth(log_ratio[finite])
    rows = systematic_rows(weights, n, rng)
    return Resampled(finite[rows], pareto_k, float(1 / np.sum(np.square(weights))))


def systematic_rows(weights: FloatArray, n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return n rows in ascending order; each is repeated in proportion to its weight, up to less than one copy."""
    positions = (rng.random() + np.arange(n)) / n
    rows = np.searchsorted(np.cumsum(weights) / weights.sum(), positions, side="right")
    return np.asarray(np.minimum(rows, len(weights) - 1), dtype=np.intp)
