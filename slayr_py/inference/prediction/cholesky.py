"""Cholesky factors of covariances that rounding can make singular."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slayr_py.errors import InferenceError
from slayr_py.space import FloatArray

# Tried in turn, relative to the scale of the matrix; rounding errors of n rows are about 1e-16 n.
_JITTERS = (1e-14, 1e-12, 1e-10)


class Factors(NamedTuple):
    """Lower Cholesky factors of s covariances.

    Attributes
    ----------
    lower : (s, n, n) float64
    jitter : (s,) float64
        Number added to each diagonal, relative to the scale of the covariance; 0 if none was needed.
    """

    lower: FloatArray
    jitter: FloatArray


def cholesky(covariance: FloatArray, scale: FloatArray | None = None) -> Factors:
    """Return the lower factors of (s, n, n), with the smallest jitter that makes each matrix positive definite.

    The jitter is relative to ``scale`` (s,), by default the mean of each diagonal.

    Raises
    ------
    InferenceError
        If a matrix is not positive definite even with the largest jitter.
    """
    try:
        lower = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
    except np.linalg.LinAlgError:
        scales = np.mean(np.diagonal(covariance, axis1=1, axis2=2), axis=1) if scale is None else scale
        factors = [_jittered_cholesky(*pair) for pair in zip(covariance, scales, strict=True)]
        return Factors(np.stack([lower for lower, _ in factors]), np.array([jitter for _, jitter in factors]))
    return Factors(lower, np.zeros(len(lower)))


def _jittered_cholesky(matrix: FloatArray, scale: float) -> tuple[FloatArray, float]:
    for jitter in (0.0, *_JITTERS):
        try:
            factor = np.linalg.cholesky(matrix + jitter * scale * np.eye(len(matrix)))
            return np.asarray(factor, dtype=np.float64), jitter
        except np.linalg.LinAlgError:
            continue
    raise InferenceError(
        f"the covariance of {len(matrix)} configurations is not positive definite even with relative jitter "
        f"{_JITTERS[-1]}; use a prior of sigma_n with larger values"
    )
