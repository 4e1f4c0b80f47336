"""Log density of ``stan/fm_gp.stan`` in NumPy, for many points at once, with "laplacian" and "diffusion".

Both as modulators, and as kernels of the graphs that are multiplied with or added to a kernel of the real parameters.

Symbols
-------
s : points; N : observations; D : real dimensions; pairs : N (N + 1) / 2; Q : vertices, G : distinct eigenvalues of the
graphs' Laplacians; W : products of eigenvectors at the vertices of a pair, summed over equal eigenvalues.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
from typing_extensions import override

from slayr_py.inference.sampling.coordinate_priors import Hyper
from slayr_py.inference.sampling.numpy_density import NumpyDensity, Slopes, is_plain
from slayr_py.kernels import BASES, COMBINATIONS, MODULATORS, Base, correlation, slope
from slayr_py.space import FloatArray


class FrequencyModulatedDensity(NumpyDensity):
    """Log density of the coordinates of the program, and the hyperparameters of resampled points."""

    def __init__(self, data: Mapping[str, Any], shapes: dict[str, tuple[int, ...]]) -> None:
        super().__init__(data, shapes)
        n = len(self._errors)
        inputs = self._data["X"].reshape(n, int(data["D"]))
        self._squares = np.square(inputs[self._pairs.rows] - inputs[self._pairs.columns]).T
        vectors = self._data["U"].reshape(n, int(data["Q"]))
        products = (vectors[self._pairs.rows] * vectors[self._pairs.columns]).T
        self._graphs = [np.flatnonzero(self._data["graph_of"] == p + 1) for p in range(int(data["P"]))]
        groups = [np.flatnonzero(self._data["group_of"] == g + 1) for g in range(int(data["G"]))]
        self._weights = [products[group].sum(axis=0) for group in groups]
        self._combine = int(data["combine"])
        self._diffusion = int(data["modulator"]) == MODULATORS["diffusion"]
        self._base: Base = next(base for base in get_args(Base) if BASES[base] == data["base"])
        self._multiplicities = np.array([len(group) for group in groups], dtype=np.float64)

    @staticmethod
    @override
    def serves(program: str, data: Mapping[str, Any]) -> bool:
        if program != "fm_gp" or not is_plain(data):
            return False
        return bool(data["modulator"] in (MODULATORS["laplacian"], MODULATORS["diffusion"]))

    @override
    def hyper(self, points: FloatArray) -> Hyper:
        hyper = super().hyper(points)
        sigma_f = hyper.theta["sigma_f"] / np.sqrt(self._mean_variance(hyper.theta["beta"])[0])[:, None]
        return hyper._replace(theta=hyper.theta | {"sigma_f": sigma_f})

    @override
    def covariances(self, theta: Mapping[str, FloatArray]) -> tuple[FloatArray, Slopes]:
        s = len(theta["mu"])
        variance = np.square(theta["sigma_f"])
        distances = np.zeros((s, len(self._pairs.rows)))
        if "lengthscale" in theta:
            distances = (1 / np.square(theta["lengthscale"])) @ self._squares
        damped = theta["beta"][:, self._graph_of, None] * self._data["lambda"][:, None]

        def modulation(p: int) -> FloatArray:
            """Return 1 + alpha t of a graph, (s, pairs); ones (s, 1) if the real parameters have their own kernel."""
            if self._combine != COMBINATIONS["modulation"]:
                return np.ones((s, 1))
            return 1 + theta["alpha"][:, p, None] * distances if "alpha" in theta else 1 + distances

        on_graphs = np.empty_like(distances)
        on_graphs[:] = variance
        totals = []
        for p, graph in enumerate(self._graphs):
            total = np.zeros_like(on_graphs)
            modulated = modulation(p)
            for g in graph:
                total += self._term(g, damped[:, g], modulated)
            on_graphs *= total
            totals.append(total)
        covariances = on_graphs
        if self._combine == COMBINATIONS["product"]:
            covariances = on_graphs * correlation(distances, self._base, self._order, None)
        elif self._combine == COMBINATIONS["sum"]:
            covariances = on_graphs + variance * correlation(distances, self._base, self._order, None)

        def slopes(by_covariance: FloatArray) -> dict[str, FloatArray]:
            by_log_k = by_covariance * covariances
            by_log = {"sigma_f": 2 * by_log_k.sum(axis=1, keepdims=True)}
            by_log["beta"] = by_log["sigma_f"] * self._sigma_f_by_log_beta(theta["beta"])
            by_alpha = np.zeros_like(by_log["beta"])
            by_distance = np.zeros_like(on_graphs)
            by_log_graphs = by_log_k
            if self._combine != COMBINATIONS["modulation"]:
                added = self._combine == COMBINATIONS["sum"]
                by_correlation = by_covariance * (variance if added else on_graphs)
                by_distance = by_correlation * slope(distances, self._base, self._order, None)
                by_log_graphs = by_covariance * on_graphs if added else by_log_k
            for p, (graph, total) in enumerate(zip(self._graphs, totals, strict=True)):
                by_total = np.divide(by_log_graphs, total, out=np.zeros_like(total), where=total != 0)
                modulated = modulation(p)
                by_modulation = np.zeros_like(total)
                for g in graph:
                    by_damping, by_modulated = self._term_slopes(g, damped[:, g], modulated)
                    by_log["beta"][:, p] += damped[:, g, 0] * np.einsum("sk,sk->s", by_total, by_damping)
                    by_modulation += by_total * by_modulated
                if self._combine == COMBINATIONS["modulation"]:
                    by_alpha[:, p] = np.einsum("sk,sk->s", by_modulation, distances)
                    by_distance += theta["alpha"][:, p, None] * by_modulation if "alpha" in theta else by_modulation
            if "alpha" in theta:
                by_log["alpha"] = by_alpha * theta["alpha"]
            if "lengthscale" in theta:
                by_log["lengthscale"] = -2 * (by_distance @ self._squares.T) / np.square(theta["lengthscale"])
            return by_log

        return covariances, slopes

    def _term(self, g: np.intp, damping: FloatArray, modulation: FloatArray) -> FloatArray:
        """Return W f of a distinct eigenvalue, (s, pairs), from beta lambda (s, 1) and 1 + alpha t."""
        if self._diffusion:
            return np.asarray(self._weights[g] * np.exp(-modulation * damping))
        return np.asarray(self._weights[g] / (modulation + damping))

    def _term_slopes(self, g: np.intp, damping: FloatArray, modulation: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives of `_term` by beta lambda and by 1 + alpha t."""
        if self._diffusion:
            term = self._term(g, damping, modulation)
            return -modulation * term, -damping * term
        by_both = -self._weights[g] / np.square(modulation + damping)
        return by_both, by_both

    def _mean_variance(self, beta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean of k(x, x) / sigma_f^2 over all vertices, (s,), and its derivatives by log beta, (s, P)."""
        damped = beta[:, self._graph_of] * self._data["lambda"]
        response = np.exp(-damped) if self._diffusion else 1 / (1 + damped)
        falls = -damped * (response if self._diffusion else np.square(response)) * self._multiplicities
        response *= self._multiplicities
        sums = np.stack([response[:, graph].sum(axis=1) for graph in self._graphs], axis=1)
        slopes = np.stack([falls[:, graph].sum(axis=1) for graph in self._graphs], axis=1) / sums
        mean = np.prod(sums / [self._multiplicities[graph].sum() for graph in self._graphs], axis=1)
        slopes *= mean[:, None]
        return mean + (self._combine == COMBINATIONS["sum"]), slopes

    def _sigma_f_by_log_beta(self, beta: FloatArray) -> FloatArray:
        """Return the derivatives of log sigma_f, which is relative to the mean variance, by log beta, (s, P)."""
        mean, slopes = self._mean_variance(beta)
        return -0.5 * slopes / mean[:, None]

    @property
    def _graph_of(self) -> np.ndarray[Any, np.dtype[np.intp]]:
        """Graph of each distinct eigenvalue, from 0, (G,)."""
        return np.asarray(self._data["graph_of"], dtype=np.intp) - 1
