"""Importance resampling of approximate posteriors (Vehtari et al. 2024, Pareto smoothed importance sampling)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slayr_py.inference.tree import pareto_smooth
from slayr_py.space.dimension import FloatArray


def smoothed_resample(log_ratio: FloatArray, n: int, rng: np.random.Generator) -> tuple[NDArray[np.intp], float]:
    """Rows to keep of draws with log importance ratios (s,), and the Pareto shape k of the ratios' tail.

    Systematic resampling: the number of copies of a draw differs from its expectation by less than one. Draws with an
    infinite or undefined ratio are dropped. k above 0.7 means the approximation misses part of the posterior.
    """
    finite = np.flatnonzero(np.isfinite(log_ratio))
    if len(finite) < 5:
        raise ValueError(f"only {len(finite)} of {len(log_ratio)} approximate draws have a finite density")
    weights, pareto_k = pareto_smooth(log_ratio[finite])
    positions = (rng.random() + np.arange(n)) / n
    rows = np.searchsorted(np.cumsum(weights) / weights.sum(), positions, side="right")
    return finite[np.minimum(rows, len(finite) - 1)], pareto_k
