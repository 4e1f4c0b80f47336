"""Log density of ``stan/fm_gp.stan`` in NumPy, for many points at once.

Symbols
-------
s : points; N : observations; D : real dimensions; pairs : N (N + 1) / 2; Q : vertices, G : distinct eigenvalues of the
graphs' Laplacians; W : products of eigenvectors at the vertices of a pair, summed over equal eigenvalues; f : response
to an eigenvalue, of beta lambda and of 1 + alpha t.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
from typing_extensions import override

from slayr_py.inference.sampling.coordinate_priors import Hyper
from slayr_py.inference.sampling.fm_parts import (
    Combination,
    Distance,
    HierarchicalDistance,
    Modulation,
    NeuralDistance,
    PowerOfDistance,
    ProductCombination,
    Squared,
    SumCombination,
)
from slayr_py.inference.sampling.hierarchical_parts import HierarchicalPairs
from slayr_py.inference.sampling.numpy_density import NumpyDensity, Slopes, is_plain
from slayr_py.kernels import (
    BASES,
    COMBINATIONS,
    MODULATORS,
    Base,
    Exponential,
    Inverse,
    Powers,
    Response,
)
from slayr_py.space import FloatArray


class FrequencyModulatedDensity(NumpyDensity):
    """Log density of the coordinates of the program, and the hyperparameters of resampled points."""

    def __init__(self, data: Mapping[str, Any], shapes: dict[str, tuple[int, ...]]) -> None:
        super().__init__(data, shapes)
        n = len(self._errors)
        inputs = self._data["X"].reshape(n, int(data["D"]))
        left, right = inputs[self._pairs.rows], inputs[self._pairs.columns]
        vectors = self._data["U"].reshape(n, int(data["Q"]))
        products = (vectors[self._pairs.rows] * vectors[self._pairs.columns]).T
        self._graphs = [np.flatnonzero(self._data["graph_of"] == p + 1) for p in range(int(data["P"]))]
        groups = [np.flatnonzero(self._data["group_of"] == g + 1) for g in range(int(data["G"]))]
        self._weights = [products[group].sum(axis=0) for group in groups]
        self._modulator = int(data["modulator"])
        self._distance: Distance = Squared(left, right)
        if self._modulator == MODULATORS["power"]:
            self._distance = PowerOfDistance(left, right, float(data["tau"]))
        elif self._modulator == MODULATORS["neural"]:
            self._distance = NeuralDistance(left, right)
        elif self._modulator == MODULATORS["hierarchical"]:
            levels = np.zeros(int(data["D"]))
            self._distance = HierarchicalDistance(HierarchicalPairs(self._data, self._pairs, levels))
        self._combination: Combination = Modulation()
        if data["combine"] != COMBINATIONS["modulation"]:
            base: Base = next(base for base in get_args(Base) if BASES[base] == data["base"])
            kind = SumCombination if data["combine"] == COMBINATIONS["sum"] else ProductCombination
            self._combination = kind(base, self._order)
        self._multiplicities = np.array([len(group) for group in groups], dtype=np.float64)

    @staticmethod
    @override
    def serves(program: str, data: Mapping[str, Any]) -> bool:
        return program == "fm_gp" and is_plain(data)

    @override
    def hyper(self, points: FloatArray) -> Hyper:
        hyper = super().hyper(points)
        sigma_f = hyper.theta["sigma_f"] / np.sqrt(self._mean_variance(hyper.theta)[0])[:, None]
        return hyper._replace(theta=hyper.theta | {"sigma_f": sigma_f})

    @override
    def covariances(self, theta: Mapping[str, FloatArray]) -> tuple[FloatArray, Slopes]:
        variance = np.square(theta["sigma_f"])
        distances, by_distances = self._distance(theta)
        response = self._response(theta)
        damped = theta["beta"][:, self._graph_of, None] * self._data["lambda"][:, None]

        on_graphs, modulated, term, *totals = (np.empty(distances.shape) for _ in range(3 + len(self._graphs)))

        def modulate(p: int) -> None:
            """Set ``modulated`` to the argument of a graph's response."""
            if not self._combination.modulates:
                modulated[:] = 1.0
            elif "alpha" in theta:
                np.multiply(theta["alpha"][:, p, None], distances, out=modulated)
                np.add(modulated, 1.0, out=modulated)
            else:
                np.add(distances, 1.0, out=modulated)

        on_graphs[:] = variance
        for p, (graph, total) in enumerate(zip(self._graphs, totals, strict=True)):
            modulate(p)
            response.term(self._weights[graph[0]], damped[:, graph[0]], modulated, out=total)
            for g in graph[1:]:
                total += response.term(self._weights[g], damped[:, g], modulated, out=term)
            on_graphs *= total
        covariances, split = self._combination(on_graphs, distances, variance)

        def slopes(by_covariance: FloatArray) -> dict[str, FloatArray]:
            by_log_k = by_covariance * covariances
            by_log = self._by_scale(theta, 2 * by_log_k.sum(axis=1, keepdims=True))
            by_alpha = np.zeros_like(by_log["beta"])
            by_log_graphs, by_distance = split(by_covariance, by_log_k)
            by_total, by_modulated = (np.empty(distances.shape) for _ in range(2))
            for p, (graph, total) in enumerate(zip(self._graphs, totals, strict=True)):
                np.divide(by_log_graphs, total, out=by_total)
                if not total.all():  # the covariance is 0 there
                    by_total[total == 0] = 0.0
                modulate(p)
                by_modulated[:] = 0.0
                for g in graph:
                    weights, z = self._weights[g], damped[:, g]
                    by_damping, by_term = response.slopes(weights, z, modulated, out=term)
                    if self._data["lambda"][g] > 0:
                        by_log["beta"][:, p] += z[:, 0] * np.einsum("sk,sk->s", by_total, by_damping)
                    by_modulated += by_term
                    for name, by in response.by_orders(by_total, weights, z, modulated).items():
                        by_log[name] += by
                if self._combination.modulates:
                    by_modulated *= by_total
                    if "alpha" in theta:
                        by_alpha[:, p] = np.einsum("sk,sk->s", by_modulated, distances)
                        by_modulated *= theta["alpha"][:, p, None]
                    by_distance += by_modulated
            if "alpha" in theta:
                by_log["alpha"] = by_alpha * theta["alpha"]
            if "weights" in theta:  # each coordinate moves all weights
                by_log["weights"] -= theta["weights"] * by_log["weights"].sum(axis=1, keepdims=True)
            return by_log | by_distances(by_distance)

        return covariances, slopes

    def _by_scale(self, theta: Mapping[str, FloatArray], by_sigma_f: FloatArray) -> dict[str, FloatArray]:
        """Return the derivatives by sigma_f, (s, 1), and by the quantities of the mean variance of its unit."""
        mean, by_mean = self._mean_variance(theta)
        by_log = {name: -0.5 * by_sigma_f * by_quantity / mean[:, None] for name, by_quantity in by_mean.items()}
        return {"sigma_f": by_sigma_f} | by_log

    def _response(self, theta: Mapping[str, FloatArray]) -> Response:
        if "weights" in theta:
            return Powers(theta["weights"])
        return Exponential() if self._modulator == MODULATORS["diffusion"] else Inverse()

    def _mean_variance(self, theta: Mapping[str, FloatArray]) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Return the mean of k(x, x) / sigma_f^2 over all vertices, (s,), and its derivatives by log beta and weights.

        The neural kernel too counts as if t were 0, see ``stan/fm_gp.stan``.
        """
        response = self._response(theta)
        mean = np.ones(len(theta["beta"]))
        by_beta = np.empty_like(theta["beta"])
        by_orders: dict[str, FloatArray] = {}
        for p, graph in enumerate(self._graphs):
            damped = theta["beta"][:, p, None] * self._data["lambda"][graph]
            shares = self._multiplicities[graph] / self._multiplicities[graph].sum()
            one = np.ones_like(damped)
            of_graph = response.term(shares, damped, one, out=np.empty_like(one)).sum(axis=1)
            slopes = response.slopes(shares, damped, one, out=np.empty_like(one))[0]
            by_beta[:, p] = np.sum(damped * slopes, axis=1) / of_graph
            for name, by in response.by_orders(one, shares, damped, one).items():
                by_orders[name] = by_orders.get(name, 0) + by / of_graph[:, None]
            mean *= of_graph
        by_log = {"beta": by_beta, **by_orders}
        return mean + self._combination.added, {name: mean[:, None] * by for name, by in by_log.items()}

    @property
    def _graph_of(self) -> np.ndarray[Any, np.dtype[np.intp]]:
        """Graph of each distinct eigenvalue, from 0, (G,)."""
        return np.asarray(self._data["graph_of"], dtype=np.intp) - 1
