"""Triangular solves of many right-hand sides, without copies."""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dtrtri

from slayr_py.space import FloatArray


def solve_lower(factor: FloatArray, rows: FloatArray) -> FloatArray:
    """Solve L x = b for every row b of (m, n), without copying either array."""
    return np.asarray(dtrsm(1.0, factor.T, rows.T, lower=0, trans_a=1)).T


def solve_upper(factor: FloatArray, rows: FloatArray) -> FloatArray:
    """Solve L' x = b for every row b of (m, n)."""
    return np.asarray(dtrsm(1.0, factor.T, rows.T, lower=0, trans_a=0)).T


def inverses(factors: FloatArray) -> FloatArray:
    """Return the inverses of lower triangular matrices (s, n, n)."""
    # A row-major lower triangle is the transpose of LAPACK's upper triangle.
    return np.stack([np.asarray(dtrtri(factor.T, lower=0)[0]).T for factor in factors])
