"""Graphs as matrices: nodes, weights of edges, and the spectrum of the Laplacian."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import pairwise
from numbers import Integral
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components, laplacian
from scipy.sparse.linalg import LinearOperator, splu

from slayr_py.errors import DataError
from slayr_py.space import FloatArray
from slayr_py.svm.eigenpairs import REPEATED, is_few, largest


class LaplacianSpectrum(NamedTuple):
    """The smallest eigenvalues (r,), ascending, and eigenvectors (N, r) of a Laplacian, and its largest eigenvalue."""

    values: FloatArray
    vectors: FloatArray
    greatest: float


def nodes_of(graph: Any) -> list[Hashable]:
    """Return the nodes in the order of the adjacency matrix; integers from 0 if the graph is given as a matrix."""
    if isinstance(graph, nx.Graph):
        return list(graph)
    return list(range(graph.shape[0] if sparse.issparse(graph) else len(graph)))


def weights_of(graph: Any) -> Any:
    """Return the weights of the edges as a sparse (N, N) array; weights of parallel edges are added.

    Parameters
    ----------
    graph : networkx.Graph, (N, N) array_like or sparse matrix
        An edge of a networkx graph may have a ``weight``; the default is 1.

    Raises
    ------
    DataError
        If it is not a graph, is directed, has no nodes or no edges, or a weight is negative or not finite.
    """
    if isinstance(graph, nx.Graph):
        if graph.is_directed():
            raise DataError(f"the graph is directed ({graph}); use an undirected one, such as graph.to_undirected()")
        weights: Any = sparse.csr_array((0, 0))
        if len(graph):
            weights = nx.to_scipy_sparse_array(graph, dtype=np.float64, format="csr")
    else:
        weights = _matrix(graph)
    if not np.count_nonzero(weights.data):
        raise DataError(f"the graph is empty: {weights.shape[0]} nodes and no edges; a graph kernel needs edges")
    if np.any(bad := ~(np.isfinite(weights.data) & (weights.data >= 0))):
        raise DataError(f"the graph has an edge of weight {weights.data[bad][0]}; weights are non-negative and finite")
    difference = abs(weights - weights.T).tocoo()
    if difference.nnz and difference.max() > 1e-12 * weights.max():
        worst = np.argmax(difference.data)
        i = int(difference.row[worst])
        j = int(difference.col[worst])
        raise DataError(
            f"the graph is directed: its adjacency matrix has {weights[i, j]:.6g} at ({i}, {j}) and "
            f"{weights[j, i]:.6g} at ({j}, {i}); use an undirected one, such as (A + A.T) / 2"
        )
    return weights


def laplacian_spectrum(weights: Any, normalized: bool, rank: float | None) -> LaplacianSpectrum:
    """Return the spectrum of L = D - A, or of D^(-1/2) L D^(-1/2), whose eigenvalues lie in [0, 2].

    It consists of the spectra of the components; they share the eigenvalue 0 and often others. The row of a node
    without edges is zero in either Laplacian; self-loops have no effect.
    """
    matrix = laplacian(weights, normed=normalized).tocsr()
    component = connected_components(matrix, directed=False)[1]
    nodes = np.argsort(component, kind="stable")
    ends = np.cumsum(np.bincount(component)).tolist()
    if len(ends) == 1:
        return _of_component(matrix.tocsc(), rank)
    ordered = matrix[nodes][:, nodes]
    parts = [_of_component(ordered[a:b, a:b].tocsc(), rank) for a, b in pairwise([0, *ends])]
    values = np.concatenate([part.values for part in parts])
    smallest = np.argsort(values, kind="stable")
    if isinstance(rank, Integral):
        smallest = smallest[: int(rank)]
    blocks = sparse.block_diag([sparse.csc_array(part.vectors) for part in parts], format="csc")
    vectors = np.empty((len(nodes), len(smallest)))
    vectors[nodes] = blocks[:, smallest].toarray()
    return LaplacianSpectrum(values[smallest], vectors, max(part.greatest for part in parts))


def _of_component(matrix: Any, rank: float | None) -> LaplacianSpectrum:
    """Return the spectrum of the Laplacian of a connected graph.

    All eigenvalues, or the ``rank`` smallest by ARPACK if these are few, with one more run for a single eigenpair, and
    another one for each copy of a repeated eigenvalue that is missing.
    """
    n = matrix.shape[0]
    if rank is not None and is_few(rank, n):
        # Eigenvalues of a large graph cluster near 0; the eigenvalues of (L + shift I)^-1 are well separated.
        shift = 1e-2 * matrix.trace() / n
        inverse = LinearOperator((n, n), matvec=splu(matrix + shift * sparse.eye_array(n, format="csc")).solve)
        smallest = largest(matrix, int(rank), sigma=-shift, which="LM", OPinv=inverse)
        top = largest(matrix, 1)
        if smallest is not None and top is not None:
            found = _completed(smallest.values[::-1], smallest.vectors[:, ::-1], inverse, shift)
            if found is not None:
                return LaplacianSpectrum(*found, float(top.values[0]))
    values, vectors = eigh(matrix.toarray(), driver="evd", check_finite=False)
    return LaplacianSpectrum(np.maximum(values, 0.0), vectors, float(values[-1]))


def _completed(
    values: FloatArray, vectors: FloatArray, inverse: LinearOperator, shift: float
) -> tuple[FloatArray, FloatArray] | None:
    """Return the r smallest eigenpairs of L from r that may lack copies of repeated eigenvalues; None without success.

    A copy that is missing is the largest eigenpair of (L + shift I)^-1 without the part of those found.
    """
    r = len(values)
    while True:
        weights = 1 / (values + shift)

        def rest(x: FloatArray, weights: FloatArray = weights, vectors: FloatArray = vectors) -> FloatArray:
            return np.asarray(inverse.matvec(x) - vectors @ (weights * (vectors.T @ x)))

        missing = largest(LinearOperator(inverse.shape, matvec=rest, dtype=np.float64), 1, seed=len(values))
        if missing is None:
            return None
        if missing.values[0] <= (1 + REPEATED) * np.sort(weights)[-r]:
            order = np.argsort(values, kind="stable")[:r]
            return np.maximum(values[order], 0.0), vectors[:, order]
        values = np.append(values, 1 / missing.values - shift)
        vectors = np.column_stack([vectors, missing.vectors])


def _matrix(graph: Any) -> Any:
    try:
        weights = sparse.csr_array(graph, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"expected a networkx graph or an adjacency matrix, got {graph!r:.200}") from error
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
        raise DataError(
            f"an adjacency matrix must be square, with one row and column per node; got shape {weights.shape}"
        )
    return weights
