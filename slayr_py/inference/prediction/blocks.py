"""Predictions and joint draws under all draws of a fit, in blocks of limited memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from slayr_py.inference.prediction.cholesky import cholesky
from slayr_py.inference.prediction.kernel_predictor import KernelPredictor
from slayr_py.space import Encoded, FloatArray

BLOCK = 2**23
"""Doubles in the largest array of a block of draws: 64 MB."""

PredictorOf = Callable[[NDArray[np.intp]], KernelPredictor]
"""Returns the predictor of some rows of the draws of a fit."""


def predict_all(
    predictor_of: PredictorOf, n_draws: int, n_points: int, new: Encoded
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean and standard deviation (s, m) at m configurations and the jitter (s,), in blocks of limited memory.

    Parameters
    ----------
    predictor_of : callable
        Returns the predictor of some rows of the draws.
    n_draws, n_points : int
        Numbers s of draws and n of points in a predictor's factors.
    new : Encoded
    """
    mean = np.empty((n_draws, len(new)))
    sd = np.empty((n_draws, len(new)))
    jitter = np.zeros(n_draws)  # without configurations there are no blocks
    for rows, columns, predictor in _blocks(predictor_of, n_draws, n_points, len(new)):
        jitter[rows] = predictor.jitter
        mean[rows, columns], variance = predictor.moments(new[columns])
        sd[rows, columns] = np.sqrt(variance)
    return mean, sd, jitter


def log_success_all(predictor_of: PredictorOf, n_draws: int, n_points: int, new: Encoded) -> FloatArray:
    """Return the log probability of success (s, m) of a binary model; arguments as in :func:`predict_all`."""
    values = np.empty((n_draws, len(new)))
    for rows, columns, predictor in _blocks(predictor_of, n_draws, n_points, len(new)):
        values[rows, columns] = predictor.log_success(new[columns])
    return values


def _blocks(
    predictor_of: PredictorOf, n_draws: int, n_points: int, m: int
) -> Iterator[tuple[slice, slice, KernelPredictor]]:
    """Yield blocks of draws and of m configurations, with the predictor of the draws."""
    n = max(n_points, 1)
    columns = max(1, min(m, BLOCK // n // 8))
    rows = max(1, BLOCK // (n * max(n, columns)))
    for i in range(0, n_draws, rows):
        predictor = predictor_of(np.arange(i, min(i + rows, n_draws)))
        for j in range(0, m, columns):
            yield slice(i, i + rows), slice(j, j + columns), predictor


def sample_all(
    predictor_of: PredictorOf, n_points: int, new: Encoded, rows: NDArray[np.intp], rng: np.random.Generator
) -> FloatArray:
    """Draw the transformed function jointly at m configurations, once for each of the k ``rows`` of draws: (k, m).

    Blocks of draws limit the memory; arguments as in :func:`predict_all`.
    """
    normals = rng.standard_normal((len(rows), len(new)))
    values = np.empty(normals.shape)
    distinct = np.unique(rows)
    block = max(1, BLOCK // max(n_points, len(new), 1) ** 2)
    for i in range(0, len(distinct), block):
        chosen = distinct[i : i + block]
        predictor = predictor_of(chosen)
        mean, covariance = predictor.joint_moments(new)
        # Rounding errors are relative to the prior variance, which can exceed the posterior variance by far.
        scale = predictor.kernel.diagonal(new, predictor.draws).max(axis=1, initial=0.0)
        factors = cholesky(covariance, scale).lower
        for row, centre, factor in zip(chosen, mean, factors, strict=True):
            repeats = rows == row
            values[repeats] = centre + normals[repeats] @ factor.T
    return values
