"""Sobol indices of functions on a search space by Monte Carlo."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.stats import sobol_indices

from slayr_py.inference.sensitivity.inputs import resolve, sobol_points
from slayr_py.space import Encoded, Encoder, FloatArray


class Indices(NamedTuple):
    """Sobol indices of k functions of D parameters.

    Attributes
    ----------
    first, total : (k, D) float64
        First-order and total indices; NaN for a constant function.
    error : float
        Largest standard error of a mean over the functions from the Monte Carlo integration; 0 for quadrature.
    """

    first: FloatArray
    total: FloatArray
    error: float


def pick_freeze(
    values: Callable[[Encoded], FloatArray], encoder: Encoder, points: int, repeats: int, rng: np.random.Generator
) -> Indices:
    """Estimate Sobol indices of k functions with the estimators of Saltelli et al. (2010), `scipy.stats.sobol_indices`.

    Parameters
    ----------
    values : callable
        Returns the values (k, m) of the functions at m configurations.
    encoder : Encoder
    points : int
        Number of points of each of two Sobol designs, a power of 2. The functions are evaluated ``(D + 2) * points``
        times in each repeat.
    repeats : int
        Number of independent randomisations of the designs, at least 2. The result is their mean; ``error`` is computed
        from their spread.
    rng : numpy.random.Generator
    """
    indices = np.stack([_estimate(values, encoder, points, rng) for _ in range(repeats)])  # (r, 2, k, D)
    known = np.isfinite(indices).all(axis=(0, 1, 3))
    error = 0.0
    if known.any():
        means = indices[:, :, known].mean(axis=2)
        error = float(np.std(means, axis=0, ddof=1).max() / np.sqrt(repeats))
    first, total = indices.mean(axis=0)
    return Indices(first, total, error)


def _estimate(
    values: Callable[[Encoded], FloatArray], encoder: Encoder, points: int, rng: np.random.Generator
) -> FloatArray:
    """Return first-order and total indices (2, k, D) from one pair of designs."""
    d = len(encoder.dimensions)
    both = sobol_points(2 * d, points, rng)
    a = both[:, :d]
    b = both[:, d:]
    mixed = [np.where(np.arange(d) == j, b, a) for j in range(d)]
    f = values(resolve(encoder, np.vstack([a, b, *mixed])))
    f = np.ldexp(f, -np.frexp(np.abs(f).max(axis=1, keepdims=True))[1])  # exact; squares of large values overflow
    f_a = f[:, :points]
    f_b = f[:, points : 2 * points]
    f_ab = f[:, 2 * points :].reshape(len(f), d, points).transpose(1, 0, 2)
    varies = np.ptp(f, axis=1) > 0
    indices = np.full((2, len(f), d), np.nan)
    if d == 1:  # the only parameter explains all of the variance; SciPy's function fails
        indices[:, varies] = 1.0
    elif varies.any():
        func = {"f_A": f_a[varies], "f_B": f_b[varies], "f_AB": f_ab[:, varies]}
        result = sobol_indices(func=func, n=points)
        indices[0, varies] = result.first_order
        indices[1, varies] = result.total_order
    return indices
