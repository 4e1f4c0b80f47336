"""Log density of ``stan/fm_gp.stan`` in NumPy, for many points at once, with the modulator "laplacian".

Symbols
-------
s : points; N : observations; D : real dimensions; pairs : N (N + 1) / 2; Q : vertices, G : distinct eigenvalues of the
graphs' Laplacians; W : products of eigenvectors at the vertices of a pair, summed over equal eigenvalues.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from typing_extensions import override

from slayr_py.inference.sampling.coordinate_priors import Hyper
from slayr_py.inference.sampling.numpy_density import NumpyDensity, Slopes, is_plain
from slayr_py.kernels import COMBINATIONS, MODULATORS
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
        self._multiplicities = np.array([len(group) for group in groups], dtype=np.float64)

    @staticmethod
    @override
    def serves(program: str, data: Mapping[str, Any]) -> bool:
        if program != "fm_gp" or not is_plain(data):
            return False
        return bool(data["modulator"] == MODULATORS["laplacian"] and data["combine"] == COMBINATIONS["modulation"])

    @override
    def hyper(self, points: FloatArray) -> Hyper:
        hyper = super().hyper(points)
        mean_variance = np.ones(len(points))
        for shares, total in self._shares(hyper.theta["beta"]):
            mean_variance *= shares.sum(axis=1) / total
        sigma_f = hyper.theta["sigma_f"] / np.sqrt(mean_variance)[:, None]
        return hyper._replace(theta=hyper.theta | {"sigma_f": sigma_f})

    @override
    def covariances(self, theta: Mapping[str, FloatArray]) -> tuple[FloatArray, Slopes]:
        s = len(theta["mu"])
        product = np.empty((s, len(self._pairs.rows)))
        product[:] = np.square(theta["sigma_f"])
        distances = np.zeros_like(product)
        if "lengthscale" in theta:
            distances = (1 / np.square(theta["lengthscale"])) @ self._squares
        damped = theta["beta"][:, self._graph_of] * self._data["lambda"]

        def denominators(p: int) -> Iterator[tuple[np.intp, FloatArray]]:
            """Yield the eigenvalues of a graph and the denominators that modulate them."""
            modulated = 1 + theta["alpha"][:, p, None] * distances if "alpha" in theta else 1 + distances
            for g in self._graphs[p]:
                yield g, modulated + damped[:, g, None]

        totals = []
        for p in range(len(self._graphs)):
            total = np.zeros_like(product)
            for g, denominator in denominators(p):
                total += self._weights[g] / denominator
            product *= total
            totals.append(total)

        def slopes(by_covariance: FloatArray) -> dict[str, FloatArray]:
            by_log_k = by_covariance * product
            by_log = {"sigma_f": 2 * by_log_k.sum(axis=1, keepdims=True)}
            by_distance = np.zeros_like(product)
            by_log["beta"] = by_log["sigma_f"] * self._sigma_f_by_log_beta(theta["beta"])
            by_alpha = np.zeros_like(by_log["beta"])
            for p, total in enumerate(totals):
                by_total = np.divide(by_log_k, total, out=np.zeros_like(total), where=total != 0)
                by_modulated = np.zeros_like(total)
                for g, denominator in denominators(p):
                    by_denominator = -self._weights[g] * by_total / np.square(denominator)
                    by_log["beta"][:, p] += damped[:, g] * by_denominator.sum(axis=1)
                    by_modulated += by_denominator
                by_alpha[:, p] = np.einsum("sk,sk->s", by_modulated, distances)
                by_distance += theta["alpha"][:, p, None] * by_modulated if "alpha" in theta else by_modulated
            if "alpha" in theta:
                by_log["alpha"] = by_alpha * theta["alpha"]
            if "lengthscale" in theta:
                by_log["lengthscale"] = -2 * (by_distance @ self._squares.T) / np.square(theta["lengthscale"])
            return by_log

        return product, slopes

    def _shares(self, beta: FloatArray) -> Iterator[tuple[FloatArray, float]]:
        """Yield, for each graph, the variances of its eigenvectors (s, eigenvalues) and the number of its vertices."""
        shares = self._multiplicities / (1 + beta[:, self._graph_of] * self._data["lambda"])
        for graph in self._graphs:
            yield shares[:, graph], self._multiplicities[graph].sum()

    def _sigma_f_by_log_beta(self, beta: FloatArray) -> FloatArray:
        """Return the derivatives of log sigma_f, which is relative to the mean variance, by log beta, (s, P)."""
        slopes = []
        for graph, (shares, _) in zip(self._graphs, self._shares(beta), strict=True):
            falls = shares * (1 - shares / self._multiplicities[graph])  # derivatives of the shares, negative
            slopes.append(0.5 * falls.sum(axis=1) / shares.sum(axis=1))
        return np.stack(slopes, axis=1)

    @property
    def _graph_of(self) -> np.ndarray[Any, np.dtype[np.intp]]:
        """Graph of each distinct eigenvalue, from 0, (G,)."""
        return np.asarray(self._data["graph_of"], dtype=np.intp) - 1
