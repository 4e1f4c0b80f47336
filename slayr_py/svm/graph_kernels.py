"""Kernels between the nodes of a graph: functions of its Laplacian.

With L = U diag(lambda) U' a kernel is K = U diag(f(lambda)) U' for some f >= 0 that decreases with lambda: eigenvectors
that change little along edges have the largest weight (Smola & Kondor 2003). K has the eigenvectors of L, so its Gram
matrix is never decomposed (slayR notes, "needsFactorization").

==============================  =========================  ===================================
diffusion                       exp(-beta lambda)          Kondor & Lafferty 2002
regularised Laplacian           1 / (1 + beta lambda)      Smola & Kondor 2003, eq. 13
p-step random walk              (a - lambda)^p             eq. 16; a at least the largest lambda
inverse cosine                  cos(lambda pi / 4)         eq. 17; lambda in [0, 2]
==============================  =========================  ===================================
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from slayr_py.errors import DataError
from slayr_py.space import FloatArray
from slayr_py.svm.eigenpairs import Eigenpairs, check_rank, keep
from slayr_py.svm.graph_laplacian import LaplacianSpectrum, laplacian_spectrum, nodes_of, weights_of
from slayr_py.svm.kernel_function import KernelFunction


class GraphKernel(KernelFunction):
    """A kernel on the nodes of one graph; points are nodes.

    Nodes are given as an array, a list or a single column: keys of a networkx graph, or indices of an adjacency matrix.
    """

    needs_factorization: ClassVar[bool] = False
    graph: Any
    normalized: bool

    @abstractmethod
    def response(self, spectrum: LaplacianSpectrum) -> FloatArray:
        """Return the eigenvalues f(lambda) of K; raise ``DataError`` unless they are non-negative and decreasing."""

    @override
    def eigenpairs(self, rank: float | None = None) -> Eigenpairs:
        """Return the positive eigenvalues (r,) of K for all N nodes, descending, and eigenvectors (N, r).

        Parameters
        ----------
        rank : int or float, optional
            Largest number of eigenpairs to keep, or the share of the trace that they explain; all by default.

        Raises
        ------
        DataError
            For an illegal graph, rank or parameter.
        """
        self.check()
        weights = weights_of(self.graph)
        check_rank(rank, weights.shape[0])
        spectrum = laplacian_spectrum(weights, self.normalized, rank)
        values = self.response(spectrum)
        return keep(Eigenpairs(values, spectrum.vectors), rank, float(values.sum()))

    @override
    def read(self, X: Any) -> NDArray[np.intp]:
        """Return the positions of n nodes in the graph."""
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


@dataclass(eq=False, repr=False)
class _Smoothing(GraphKernel):
    """Kernels with one parameter beta; a larger beta gives a smoother kernel."""

    graph: Any
    beta: float = 1.0
    normalized: bool = False

    @override
    def check(self) -> None:
        self._check_number("beta")


class Diffusion(_Smoothing):
    """Diffusion kernel ``exp(-beta L)`` (Kondor & Lafferty 2002).

    Parameters
    ----------
    graph : networkx.Graph, (N, N) array_like or sparse matrix
        Undirected; edges may have a non-negative ``weight``.
    beta : float
        Positive: the time for which heat diffuses between nodes.
    normalized : bool
        Whether L is D^(-1/2) (D - A) D^(-1/2) instead of D - A.
    """

    @override
    def response(self, spectrum: LaplacianSpectrum) -> FloatArray:
        return np.exp(-self.beta * spectrum.values)


class RegularizedLaplacian(_Smoothing):
    """Regularised Laplacian kernel ``(I + beta L)^-1`` (Smola & Kondor 2003).

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


@dataclass(eq=False, repr=False)
class RandomWalk(GraphKernel):
    """Kernel of a lazy random walk of p steps, ``(a I - L)^p`` (Smola & Kondor 2003).

    Parameters
    ----------
    graph, normalized
        As for :class:`Diffusion`, with the normalised Laplacian by default.
    p : int
        Number of steps, at least 1.
    a : float, optional
        Laziness: at least 2 for the normalised Laplacian, at least the largest eigenvalue for the unnormalised one.
        Below that, an eigenvalue of K is negative or increases with lambda. The smallest legal value by default.
    """

    graph: Any
    p: int = 2
    a: float | None = None
    normalized: bool = True

    @override
    def check(self) -> None:
        self._check_integer("p")
        if self.a is not None:
            self._check_number("a")

    @override
    def response(self, spectrum: LaplacianSpectrum) -> FloatArray:
        least = 2.0 if self.normalized else spectrum.greatest
        a = least if self.a is None else self.a
        if a < least * (1 - 1e-12):
            raise DataError(
                f"a of RandomWalk must be at least {least:.6g} for the {'' if self.normalized else 'un'}normalised "
                f"Laplacian of this graph, got {a!r}; omit it to use the smallest legal value"
            )
        return np.maximum(a - spectrum.values, 0.0) ** self.p


@dataclass(eq=False, repr=False)
class InverseCosine(GraphKernel):
    """Inverse cosine kernel ``cos(L pi / 4)`` (Smola & Kondor 2003).

    Parameters
    ----------
    graph : networkx.Graph, (N, N) array_like or sparse matrix
    normalized : bool
        False is legal only if no eigenvalue of D - A exceeds 2, above which the cosine is negative.
    """

    graph: Any
    normalized: bool = True

    @override
    def response(self, spectrum: LaplacianSpectrum) -> FloatArray:
        if spectrum.greatest > 2 + 1e-10:
            raise DataError(
                f"the Laplacian of this graph has the eigenvalue {spectrum.greatest:.6g}, and cos(lambda pi / 4) is a "
                "kernel for eigenvalues up to 2; use normalized=True"
            )
        return np.maximum(np.cos(spectrum.values * (np.pi / 4)), 0.0)
