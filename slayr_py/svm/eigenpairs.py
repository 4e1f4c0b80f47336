"""Eigenpairs of Gram matrices: K = P D P' without zero eigenvalues (slayR notes, "Kernel Factorization").

Symbols
-------
n : number of training points; r : number of eigenpairs kept, the largest first.
K (n, n) : Gram matrix; D (r,) : eigenvalues; P (n, r) : eigenvectors as columns.

The notes state D > 0 for every Mercer kernel, but positive *semi*-definite means D >= 0, and in floating point zero
eigenvalues are computed as small numbers of either sign.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dpotrf
from scipy.sparse.linalg import ArpackError, eigsh

from slayr_py.errors import DataError
from slayr_py.space import FloatArray, signed

_EPS = float(np.finfo(np.float64).eps)
_FEW = 8  # Lanczos is faster for up to about n / 8 eigenpairs
_FIRST_GUESS = 32  # eigenpairs, doubled until they suffice
REPEATED = 1e-8
"""Relative difference up to which two eigenvalues count as one that is repeated."""
_BLOCK = 128  # rows in a block of the symmetry check, small enough for the cache


class Eigenpairs(NamedTuple):
    """Eigenvalues (r,), positive and descending, and orthonormal eigenvectors (n, r) with a fixed sign."""

    values: FloatArray
    vectors: FloatArray


def decompose(gram: FloatArray, rank: float | None = None, tol: float = 1e-10) -> Eigenpairs:
    """Return the eigenpairs of a Gram matrix.

    Parameters
    ----------
    gram : (n, n) float64
    rank : int or float, optional
        Largest number of eigenpairs to keep, or the share of the trace in (0, 1) that they explain; all by default.
    tol : float
        A negative eigenvalue down to ``-tol`` times the largest one is treated as a rounding error.

    Raises
    ------
    DataError
        If the matrix is zero, or not square, finite, symmetric and positive semi-definite, or the rank is illegal.
    """
    check_gram(gram)
    check_rank(rank, len(gram))
    trace = float(np.trace(gram))
    wanted = 0.0 if rank is None or isinstance(rank, Integral) else rank * trace
    for k in _guesses(rank, len(gram)):
        pairs = largest(gram, k)
        if pairs is None:
            break
        if pairs.values.sum() >= wanted:
            if _is_incomplete(gram, pairs):
                break
            _refuse_indefinite(gram, tol * pairs.values[0])
            return keep(pairs, rank, trace)
    values, vectors = eigh(gram, driver="evd", check_finite=False)
    if values[0] < -tol * np.abs(values).max():
        raise _indefinite(values[0], values[-1])
    return keep(Eigenpairs(values[::-1], vectors[:, ::-1]), rank, trace)


def keep(pairs: Eigenpairs, rank: float | None, trace: float) -> Eigenpairs:
    """Drop pairs that are zero up to rounding, then pairs beyond ``rank``; fix the signs."""
    values, vectors = pairs
    if values[0] <= 0:
        raise DataError("all kernel values are 0, so there are no features; check the inputs and their scale")
    r = int(np.count_nonzero(values > _rounding(pairs)))
    if isinstance(rank, Integral):
        r = min(r, int(rank))
    elif rank is not None:
        r = min(r, 1 + int(np.searchsorted(np.cumsum(values), rank * trace)))
    return Eigenpairs(np.array(values[:r]), np.ascontiguousarray(signed(vectors[:, :r])))


def largest(matrix: Any, k: int, seed: int = 0, **options: Any) -> Eigenpairs | None:
    """Return the k largest eigenpairs by ARPACK from a fixed start, descending; None if it does not converge.

    A start vector leads to only one eigenvector of a repeated eigenvalue. Rounding errors lead to the others, but not
    always before k other eigenpairs have converged: then copies are missing, and smaller eigenvalues take their places.
    """
    start = np.random.default_rng(seed).uniform(-1.0, 1.0, matrix.shape[0])
    try:
        values, vectors = eigsh(matrix, k=k, **{"which": "LA", "v0": start, **options})
    except ArpackError:
        return None
    order = np.argsort(values)[::-1]
    return Eigenpairs(values[order], vectors[:, order])


def is_few(k: float | None, n: int) -> bool:
    """Return whether k is a number of eigenpairs so small that ARPACK is faster than LAPACK."""
    return isinstance(k, Integral) and int(k) * _FEW <= n


def check_gram(gram: FloatArray) -> None:
    """Raise ``DataError`` unless a matrix is square, finite and symmetric up to rounding."""
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1]:
        raise DataError(f"a Gram matrix must be square, with one row and column per point; got shape {gram.shape}")
    check_finite(gram)
    allowed = 1e-10 * max(gram.max(), -gram.min())
    for first in range(0, len(gram), _BLOCK):
        rows = slice(first, first + _BLOCK)
        difference = np.abs(gram[rows, first:] - gram[first:, rows].T)
        if difference.max() > allowed:
            i, j = np.add(np.unravel_index(np.argmax(difference), difference.shape), first)
            raise DataError(
                f"the Gram matrix is not symmetric: {gram[i, j]:.6g} at ({i}, {j}), {gram[j, i]:.6g} at ({j}, {i}); "
                "if this is rounding, use (K + K.T) / 2"
            )


def check_finite(gram: FloatArray) -> None:
    """Raise ``DataError`` for a kernel value that is NaN or infinite."""
    if not np.isfinite(gram).all():
        i, j = np.argwhere(~np.isfinite(gram))[0]
        raise DataError(f"the kernel value at ({i}, {j}) is {gram[i, j]}; scale the inputs, or remove the point")


def check_rank(rank: object, n: int) -> None:
    """Raise ``DataError`` unless a rank is None, an integer in 1..n, or a share in (0, 1)."""
    if isinstance(rank, Integral):
        legal = not isinstance(rank, bool) and 1 <= int(rank) <= n
    else:
        legal = rank is None or (isinstance(rank, Real) and 0 < float(rank) < 1)
    if legal:
        return
    raise DataError(f"rank must be an integer from 1 to n = {n}, a share of the trace in (0, 1) or None, got {rank!r}")


def _rounding(pairs: Eigenpairs) -> float:
    """Return twice the change of eigenvalues by independent rounding errors of K, which is about sqrt(n) eps |K|."""
    return float(2 * np.sqrt(len(pairs.vectors)) * _EPS * pairs.values[0])


def _guesses(rank: float | None, n: int) -> list[int]:
    """Return the numbers of eigenpairs to try with ARPACK, in order, before a full decomposition."""
    if rank is None:
        return []
    if isinstance(rank, Integral):
        return [int(rank)] if is_few(rank, n) else []
    guesses = [_FIRST_GUESS]
    while is_few(guesses[-1], n):
        guesses.append(2 * guesses[-1])
    return guesses[:-1]


def _is_incomplete(gram: FloatArray, pairs: Eigenpairs) -> bool:
    """Return whether an eigenvalue beyond these exceeds the smallest of them.

    If none does, s I - (K - P D P') has a Cholesky factor for s a little above the smallest.
    """
    values, vectors = pairs
    negative = ((vectors * values) @ vectors.T).T
    negative -= gram
    negative[np.diag_indices_from(negative)] += (1 + REPEATED) * max(values[-1], 0.0) + _rounding(pairs)
    return not _has_cholesky(negative)


def _has_cholesky(matrix: FloatArray) -> bool:
    """Return whether a symmetric matrix in Fortran order, which is overwritten, is positive definite."""
    return not dpotrf(matrix, lower=1, clean=0, overwrite_a=1)[1]


def _refuse_indefinite(gram: FloatArray, shift: float) -> None:
    """Raise ``DataError`` if an eigenvalue is below -shift, which is when K + shift I has no Cholesky factor."""
    shifted = gram.copy(order="F")
    shifted[np.diag_indices_from(shifted)] += max(shift, 0.0)
    if not _has_cholesky(shifted):
        n = len(gram)
        ends = [float(eigh(gram, eigvals_only=True, subset_by_index=[i, i])[0]) for i in (0, n - 1)]
        raise _indefinite(*ends)


def _indefinite(smallest: float, greatest: float) -> DataError:
    return DataError(
        f"the kernel is indefinite: its Gram matrix has the eigenvalue {smallest:.6g} (the largest is {greatest:.6g}), "
        "so it is not an inner product of features; use a Mercer kernel or, if this is rounding, a larger tol of "
        "KernelFactorization, in a pipeline with a linear machine (the tol of KernelSVC or KernelSVR is the solver's)"
    )
