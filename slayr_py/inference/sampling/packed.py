"""Densities of normal vectors whose covariances are in rectangular full packed storage.

The storage keeps the n (n + 1) / 2 entries of a triangle as a rectangle, so that LAPACK factorises it with products of
matrices (Gustavson, Wasniewski, Dongarra & Langou 2010, "Rectangular full packed format for Cholesky's algorithm").
Covariances of pairs of observations are computed in the order of the storage: neither entries above the diagonal nor
copies between the pairs and the matrix are needed.

Symbols
-------
s : points; N : observations; pairs : N (N + 1) / 2 entries, those of the diagonal among them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpftrf, dpftri, dpftrs, dtrttf

from slayr_py.space import FloatArray


class PackedPairs(NamedTuple):
    """Pairs of N observations in the order of the storage.

    Attributes
    ----------
    rows, columns : (pairs,) int
        The observations of each pair, the larger number first.
    diagonal : (N,) int
        Positions of the pairs of each observation with itself.
    """

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    diagonal: NDArray[np.intp]

    @classmethod
    def of(cls, n: int) -> PackedPairs:
        """Return the pairs of n observations."""
        numbers = np.asfortranarray(np.arange(n * n, dtype=np.float64).reshape(n, n))
        rows, columns = np.divmod(dtrttf(numbers, transr="N", uplo="L")[0].astype(np.intp), n)
        diagonal = np.flatnonzero(rows == columns)
        return cls(rows, columns, diagonal[np.argsort(rows[diagonal])])

    def log_normal(self, covariances: FloatArray, targets: FloatArray, gradient: bool) -> tuple[FloatArray, FloatArray]:
        """Return log N(t | 0, C) without its constant (s,), and C^-1 t (s, N); NaN where C is not positive definite.

        ``covariances`` (s, pairs) are replaced by their inverses if ``gradient``, else by their factors.
        """
        n = len(self.diagonal)
        solved = np.full(targets.shape, np.nan)
        diagonals = np.full(targets.shape, np.nan)
        for i, matrix in enumerate(covariances):
            factor, failed = dpftrf(n, matrix, transr="N", uplo="L", overwrite_a=1)
            if failed:
                continue
            solved[i] = dpftrs(n, factor, targets[i], transr="N", uplo="L")[0]
            diagonals[i] = factor[self.diagonal]
            if gradient:
                dpftri(n, factor, transr="N", uplo="L", overwrite_a=1)
        with np.errstate(over="ignore"):  # hyperparameters far outside have a density of 0
            squares = np.einsum("sn,sn->s", targets, solved)
        return np.asarray(-0.5 * squares - np.log(diagonals).sum(axis=1)), solved
