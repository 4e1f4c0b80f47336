"""Log density of ``stan/fm_gp.stan`` in NumPy, for many points at once, with the modulator "laplacian".

Symbols
-------
s : points; N : observations; D : real dimensions; pairs : N (N + 1) / 2; Q : vertices, G : distinct eigenvalues of the
graphs' Laplacians; W : products of eigenvectors at the vertices of a pair, summed over equal eigenvalues.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from typing_extensions import override

from slayr_py.inference.sampling.coordinate_priors import Hyper
from slayr_py.inference.sampling.numpy_density import CovarianceDensity, is_plain
from slayr_py.kernels import COMBINATIONS, MODULATORS
from slayr_py.space import FloatArray


class FrequencyModulatedDensity(CovarianceDensity):
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
        damped = hyper.theta["beta"][:, self._graph_of] * self._data["lambda"]
        shares = self._multiplicities / (1 + damped)
        mean_variance = np.ones(len(points))
        for graph in self._graphs:
            mean_variance *= shares[:, graph].sum(axis=1) / self._multiplicities[graph].sum()
        sigma_f = hyper.theta["sigma_f"] / np.sqrt(mean_variance)[:, None]
        return hyper._replace(theta=hyper.theta | {"sigma_f": sigma_f})

    @override
    def covariances(self, theta: Mapping[str, FloatArray]) -> FloatArray:
        s = len(theta["mu"])
        product = np.empty((s, len(self._pairs.rows)))
        product[:] = np.square(theta["sigma_f"])
        distances = np.zeros_like(product)
        if len(self._squares):
            distances = (1 / np.square(theta["lengthscale"])) @ self._squares
        damped = theta["beta"][:, self._graph_of] * self._data["lambda"]
        for p, graph in enumerate(self._graphs):
            modulated = 1 + theta["alpha"][:, p, None] * distances if "alpha" in theta else 1 + distances
            total = np.zeros_like(product)
            for g in graph:
                total += self._weights[g] / (modulated + damped[:, g, None])
            product *= total
        return product

    @property
    def _graph_of(self) -> np.ndarray[Any, np.dtype[np.intp]]:
        """Graph of each distinct eigenvalue, from 0, (G,)."""
        return np.asarray(self._data["graph_of"], dtype=np.intp) - 1
