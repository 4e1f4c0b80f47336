"""Kernels between the nodes of a graph: functions of its Laplacian.

With L = U diag(lambda) U' a kernel is K = U diag(f(lambda)) U' for some f >= 0 that falls with lambda: eigenvectors
that change little along edges count most (Smola & Kondor 2003). Its eigenpairs are those of L, so it is never
multiplied out to be decomposed again (slayR notes, "needsFactorization").

==============================  =========================  ===================================
diffusion                       exp(-beta lambda)          Kondor & Lafferty 2002
regularised Laplacian           1 / (1 + beta lambda)      Smola & Kondor 2003, eq. 13
p-step random walk              (a - lambda)^p             eq. 16; a at least the largest lambda
inverse cosine                  cos(lambda pi / 4)         eq. 17; lambda in [0, 2]
==============================  =========================  ===================================
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from slayr_py.errors import DataError
from slayr_py.space.dimension import FloatArray
from slayr_py.svm.eigenpairs import Eigenpairs, check_rank, keep
from slayr_py.svm.graph_laplacian import LaplacianSpectrum, laplacian_spectrum, nodes_of, weights_of
from slayr_py.svm.kernel_function import KernelFunction


class GraphKernel(KernelFunction):
    """A kernel on the nodes of one graph, which is known as a whole; points are nodes.

    An array, list or single column of nodes is read: keys of a networkx graph, indices of an adjacency matrix.
    """

    needs_factorization: ClassVar[bool] = False
    graph: Any
    normalized: bool

    @abstractmethod
    def response(self, spectrum: LaplacianSpectrum) -> FloatArray:
        """Eigenvalues f(lambda) of K, non-negative and falling; ``DataError`` where they would not be."""

    @override
    def check(self) -> None:
        """Nothing: graph and spectrum are checked where they are read."""

    @override
    def eigenpairs(self, rank: float | None = None) -> Eigenpairs:
        """Positive eigenvalues (r,) of K between all N nodes, descending, and eigenvectors (N, r).

        Parameters
        ----------
        rank : int or float, optional
            How many to keep at most, or the share of the trace that they explain; all by default.

        Raises
        ------
        DataError
            For a graph, a rank or a parameter that is illegal.
        """
        self.check()
        weights = weights_of(self.graph)
        check_rank(rank, weights.shape[0])
        spectrum = laplacian_spectrum(weights, self.normalized, rank)
        values = self.response(spectrum)
        return keep(Eigenpairs(values, spectrum.vectors), rank, float(values.sum()))

    @override
    def read(self, X: Any) -> NDArray[np.intp]:
        """Positions of nodes in the graph, (n,)."""
        column = X.to_numpy() if hasattr(X, "to_numpy") else X
        if isinstance(column, np.ndarray):
            column = (column[:, 0] if column.ndim == 2 and column.shape[1] == 1 else column).tolist()
        position = {node: i for i, node in enumerate(nodes_of(self.graph))}
        try:
            return np.array([position[node] for node in column], dtype=np.intp)
        except KeyError as error:
            few = list(position)[:3]
            raise DataError(
                f"{error.args[0]!r} is not a node of the graph; the first of its {len(position)} nodes are {few}"
            ) from None
        except TypeError:
            raise DataError(f"expected a list or a single column of nodes, got {X!r:.200}") from None

    @override
    def between(self, a: NDArray[np.intp], b: NDArray[np.intp]) -> FloatArray:
        values, vectors = self.eigenpairs()
        return np.asarray((vectors[a] * values) @ vectors[b].T)


class _Smoothing(GraphKernel):
    """Kernels with one parameter beta, the larger the smoother."""

    def __init__(self, graph: Any, beta: float = 1.0, normalized: bool = False) -> None:
        self.graph, self.beta, self.normalized = graph, beta, normalized

    @override
    def check(self) -> None:
        self._check_positive("beta")


class Diffusion(_Smoothing):
    """exp(-beta L) (Kondor & Lafferty 2002).

    Parameters
    ----------
    graph : networkx.Graph, (N, N) array_like or sparse matrix
        Undirected; edges may have a non-negative ``weight``.
    beta : float
        Positive: the time for which heat diffuses from one node to the others.
    normalized : bool
        Whether L is D^(-1/2) (D - A) D^(-1/2) instead of D - A.
    """

    @override
    def response(self, spectrum: LaplacianSpectrum) -> FloatArray:
        return np.exp(-self.beta * spectrum.values)


class RegularizedLaplacian(_Smoothing):
    """(I + beta L)^-1 (Smola & Kondor 2003).

    Parameters
    ----------
    graph, normalized
        As for :class:`Diffusion`.
    beta : float
        Positive.
    """

    @override
    def response(self, spectrum: LaplacianSpectrum) -> FloatArray:
        return 1 / (1 + self.beta * spectrum.values)


class RandomWalk(GraphKernel):
    """(a I - L)^p, a lazy random walk of p steps (Smola & Kondor 2003).

    Parameters
    ----------
    graph, normalized
        As for :class:`Diffusion`, with the normalised Laplacian by default.
    p : int
        Number of steps, at least 1.
    a : float, optional
        How lazy. At least 2 for the normalised Laplacian, at least its largest eigenvalue for the other one: below,
        some eigenvalue of K is negative, or grows where it should fall. The least possible by default.
    """

    def __init__(self, graph: Any, p: int = 2, a: float | None = None, normalized: bool = True) -> None:
        self.graph, self.p, self.a, self.normalized = graph, p, a, normalized

    @override
    def check(self) -> None:
        self._check_whole("p")
        if self.a is not None:
            self._check_positive("a")

    @override
    def response(self, spectrum: LaplacianSpectrum) -> FloatArray:
        least = 2.0 if self.normalized else spectrum.greatest
        a = least if self.a is None else self.a
        if a < least * (1 - 1e-12):
            raise DataError(
                f"a of RandomWalk must be at least {least:.6g} for the {'' if self.normalized else 'un'}normalised "
                f"Laplacian of this graph, got {a!r}; leave it out for the least possible"
            )
        return np.maximum(a - spectrum.values, 0.0) ** self.p


class InverseCosine(GraphKernel):
    """cos(L pi / 4) (Smola & Kondor 2003).

    Parameters
    ----------
    graph : networkx.Graph, (N, N) array_like or sparse matrix
    normalized : bool
        False is refused unless no eigenvalue of D - A is above 2, beyond which the cosine is negative.
    """

    def __init__(self, graph: Any, normalized: bool = True) -> None:
        self.graph, self.normalized = graph, normalized

    @override
    def response(self, spectrum: LaplacianSpectrum) -> FloatArray:
        if spectrum.greatest > 2 + 1e-10:
            raise DataError(
                f"the Laplacian of this graph has the eigenvalue {spectrum.greatest:.6g}, and cos(lambda pi / 4) is a "
                "kernel for eigenvalues up to 2; take normalized=True"
            )
        return np.maximum(np.cos(spectrum.values * (np.pi / 4)), 0.0)
