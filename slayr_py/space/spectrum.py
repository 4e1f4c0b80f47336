"""Laplacian eigenvalues and eigenvectors of a graph, from which kernels on graphs are computed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert

from slayr_py.space.dimension import FloatArray


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues and eigenvectors of the unnormalised Laplacian L = D - A of a connected, weighted graph.

    Attributes
    ----------
    eigenvalues : (G,) float64
        Distinct eigenvalues, ascending; the first is exactly 0.
    basis : (m, m) float64
        Orthonormal eigenvectors as columns, in ascending order of their eigenvalues; the first is constant.
    group_of : (m,) int64
        Index in ``eigenvalues`` of each column's eigenvalue.
    """

    eigenvalues: FloatArray
    basis: FloatArray
    group_of: NDArray[np.int64]

    @classmethod
    def of(cls, weights: FloatArray) -> Spectrum:
        """Decompose the graph with the given adjacency matrix, (m, m), symmetric with a zero diagonal.

        The constant vector spans the null space of a connected graph, so only its complement is decomposed: the
        eigenvalue 0 and its eigenvector are exact, and the other eigenvectors are orthogonal to it.
        """
        m = len(weights)
        laplacian = np.diag(weights.sum(axis=1)) - weights
        complement = helmert(m).T if m > 1 else np.empty((1, 0))
        values, vectors = np.linalg.eigh(complement.T @ laplacian @ complement)
        values = np.concatenate([[0.0], np.maximum(values, 0.0)])
        basis = np.column_stack([np.full(m, 1 / np.sqrt(m)), signed(complement @ vectors)])
        # The error of an eigenvalue is a small multiple of m eps |L|; eigenvalues closer than that count as equal.
        tolerance = 10 * m * np.finfo(np.float64).eps * values[-1]
        group_of = np.concatenate([[0], np.cumsum(np.diff(values) > tolerance)]).astype(np.int64)
        distinct = np.bincount(group_of, weights=values) / np.bincount(group_of)
        distinct[0] = 0.0
        return cls(distinct, np.ascontiguousarray(basis), group_of)


def with_inactive(weights: FloatArray) -> FloatArray:
    """Add a last vertex for inactivity to an adjacency matrix, joined to every other vertex with weight 1.

    Inactivity is then a further state of the parameter, at the same distance from every level of a complete graph.
    Kernels on graphs need no special case for it.
    """
    m = len(weights)
    extended = np.ones((m + 1, m + 1))
    extended[:m, :m] = weights
    extended[m, m] = 0.0
    return extended


def signed(vectors: FloatArray) -> FloatArray:
    """Return the columns with their first large entry positive, since the sign of an eigenvector is arbitrary."""
    large = np.abs(vectors) > 0.5 * np.abs(vectors).max(axis=0, initial=0.0)
    first = np.take_along_axis(vectors, np.argmax(large, axis=0)[None], axis=0)
    return vectors * np.sign(first)
