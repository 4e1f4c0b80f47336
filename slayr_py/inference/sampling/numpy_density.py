r"""What the log densities in NumPy of single programs have in common, and their gradients.

With C = L L' the covariance of the observations, t = T(y) - mu and v = C^-1 t,

    d log p / d theta = tr(G dC / d theta),   G = (v v' - C^-1) / 2

(Rasmussen & Williams 2006, eq. 5.9). The log evidence of binary observations by expectation propagation has the same
derivatives, with its targets and their variances, in which it is stationary.

Symbols
-------
s : points; N : observations; P : coordinates; pairs : N (N + 1) / 2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from slayr_py.inference.expectation_propagation import CONVERGED_EVIDENCE, propagate
from slayr_py.inference.sampling.coordinate_priors import CoordinatePriors, Hyper
from slayr_py.inference.sampling.output import Run
from slayr_py.inference.sampling.packed import PackedPairs
from slayr_py.inference.sampling.population import Population
from slayr_py.inference.warp import counts_in_jacobian, log_slope, pivot_of, slopes_by_log_warp, warped
from slayr_py.memory import keep_freed_memory
from slayr_py.space import FloatArray

BLOCK = 2**16  # doubles in the covariances of a block of points, which stay in the cache


Slopes: TypeAlias = Callable[[FloatArray], dict[str, FloatArray]]
"""Map derivatives by covariances or other numbers of the pairs (s, pairs) to those by the logarithms of positive
hyperparameters."""


class NumpyDensity(ABC):
    """Log density of the coordinates of a program and its gradient, and the run of its draws.

    A carried posterior evaluates the density at a thousand points. This takes less time here than in a process, which
    has to start and to read and write text. The result differs from the program's by rounding and by a constant.

    Parameters
    ----------
    data : mapping
        Data of the program.
    shapes : dict
        Shapes of the coordinates by name.
    """

    def __init__(self, data: Mapping[str, Any], shapes: dict[str, tuple[int, ...]]) -> None:
        keep_freed_memory()
        self._data = {name: np.asarray(value, dtype=np.float64) for name, value in data.items()}
        self._shapes = shapes
        self._priors = CoordinatePriors(self._data, shapes)
        self._pivot = pivot_of(data)
        self._counts = counts_in_jacobian(self._data["y"], self._pivot)
        self._order = int(data.get("p", 0))
        self._pairs = PackedPairs.of(int(data["N"]))
        self._errors = np.square(self._data["y_sd"]) + self._data["noise_floor"] ** 2
        self._binary = bool(data["binary"])

    @staticmethod
    @abstractmethod
    def serves(program: str, data: Mapping[str, Any]) -> bool:
        """Return whether the density of a program with these data is computed here."""

    @abstractmethod
    def covariances(self, theta: Mapping[str, FloatArray]) -> tuple[FloatArray, Slopes]:
        """Return the covariances (s, pairs) of the function at pairs of observations, and their `Slopes`.

        The pairs are in the order of `PackedPairs`.
        """

    def hyper(self, points: FloatArray) -> Hyper:
        """Return the hyperparameters and prior densities at points (s, P)."""
        return self._priors(points)

    def prior_draws(self, s: int, rng: np.random.Generator) -> FloatArray:
        """Return draws of the coordinates from the prior, (s, P)."""
        return self._priors.draw(s, rng)

    def run(self, population: Population, settings: dict[str, Any], calls: list[dict[str, Any]]) -> Run:
        """Return the run of the draws of a population."""
        coordinates = self._priors.split(population.draws)
        theta = self.hyper(population.draws).theta
        variables = {name: values[None] for name, values in {**coordinates, **theta}.items()}
        settings = settings | {"density": "numpy"}
        return Run(variables, self._shapes, settings, {}, population.pareto_k, population.ess, calls=calls)

    def __call__(self, points: FloatArray) -> FloatArray:
        """Return log densities (s,) at points (s, P), up to a constant; minus infinity where undefined."""
        return self._evaluate(points, gradient=False)[0]

    def with_gradient(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log densities (s,) and gradients (s, P); minus infinity and zeros where they are undefined."""
        return self._evaluate(points, gradient=True)

    def _evaluate(self, points: FloatArray, gradient: bool) -> tuple[FloatArray, FloatArray]:
        size = max(1, BLOCK // len(self._pairs.rows))
        with np.errstate(all="ignore"):  # hyperparameters far outside have a density of 0
            hyper = self.hyper(points)
            density = hyper.log_prior.copy()
            slopes = hyper.gradient.copy() if gradient else np.zeros(points.shape)
            for i in range(0, len(points), size):
                block = slice(i, i + size)
                likelihood, by_coordinate = self._log_likelihood(hyper.rows(block), gradient)
                density[block] += likelihood
                if gradient:
                    slopes[block] += by_coordinate
        undefined = ~np.isfinite(density) | ~np.isfinite(slopes).all(axis=1)
        density[undefined] = -np.inf
        slopes[undefined] = 0.0
        return density, slopes

    def _log_likelihood(self, hyper: Hyper, gradient: bool) -> tuple[FloatArray, FloatArray]:
        """Return log N(T(y) | mu, K + S) + sum log T'(y), (s,), and its derivatives by the coordinates (s, P).

        For binary observations it is the log evidence by expectation propagation.
        """
        if self._binary:
            return self._log_evidence(hyper, gradient)
        theta = hyper.theta
        y = np.broadcast_to(self._data["y"], (len(theta["mu"]), len(self._errors)))
        targets = (warped(y, theta["warp"], self._pivot) if "warp" in theta else y) - theta["mu"]
        covariances, slopes = self.covariances(theta)
        packed = covariances.copy() if gradient else covariances
        packed[:, self._pairs.diagonal] += np.square(theta["sigma_n"]) + self._errors
        total, solved = self._pairs.log_normal(packed, targets, gradient)
        if "warp" in theta:
            total += np.sum(self._counts * log_slope(y, theta["warp"], self._pivot), axis=1)
        if not gradient:
            return total, np.empty(0)

        by_covariance = self._by_covariance(solved, packed)
        trace = by_covariance[:, self._pairs.diagonal].sum(axis=1, keepdims=True)
        by_log = slopes(by_covariance)
        by_log["mu"] = solved.sum(axis=1, keepdims=True)
        by_log["sigma_n"] = 2 * np.square(theta["sigma_n"]) * trace
        if "warp" in theta:
            by_target, by_slope = slopes_by_log_warp(y, theta["warp"], self._pivot)
            by_log["warp"] = np.sum(self._counts * by_slope - solved * by_target, axis=1, keepdims=True)
        return total, np.concatenate([by_log[name] * hyper.slopes[name] for name in theta], axis=1)

    def _log_evidence(self, hyper: Hyper, gradient: bool) -> tuple[FloatArray, FloatArray]:
        """Return the log evidence of binary observations, (s,), and its derivatives by the coordinates (s, P)."""
        theta = hyper.theta
        covariances, slopes = self.covariances(theta)
        full = np.empty((len(covariances), len(self._errors), len(self._errors)))
        full[:, self._pairs.rows, self._pairs.columns] = covariances
        full[:, self._pairs.columns, self._pairs.rows] = covariances
        found = propagate(self._data["y"], full, theta["mu"][:, 0], CONVERGED_EVIDENCE)
        if not gradient:
            return found.log_evidence, np.empty(0)
        packed = covariances.copy()
        packed[:, self._pairs.diagonal] += found.variance
        _, solved = self._pairs.log_normal(packed, found.targets - theta["mu"], gradient)
        by_log = slopes(self._by_covariance(solved, packed))
        by_log["mu"] = solved.sum(axis=1, keepdims=True)
        by_log["sigma_n"] = np.zeros((len(solved), 1))
        return found.log_evidence, np.concatenate([by_log[name] * hyper.slopes[name] for name in theta], axis=1)

    def _by_covariance(self, solved: FloatArray, inverses: FloatArray) -> FloatArray:
        """Return the diagonal of G, and twice its entries below it, (s, pairs), from C^-1 t and C^-1."""
        by_covariance = np.take(solved, self._pairs.rows, axis=1)
        by_covariance *= np.take(solved, self._pairs.columns, axis=1)
        by_covariance -= inverses
        by_covariance[:, self._pairs.diagonal] *= 0.5
        return by_covariance


def is_plain(data: Mapping[str, Any]) -> bool:
    """Return whether data ask for the posterior density of observations."""
    return not data["prior_only"] and int(data["N"]) > 0
