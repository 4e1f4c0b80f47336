"""What the log densities in NumPy of single programs have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from typing_extensions import override

from slayr_py.inference.sampling.coordinate_priors import CoordinatePriors, Hyper
from slayr_py.inference.sampling.output import Run
from slayr_py.inference.sampling.packed import PackedPairs
from slayr_py.inference.sampling.population import Population
from slayr_py.inference.warp import log_slope, pivot_of, warped
from slayr_py.space import FloatArray

BLOCK = 2**16  # doubles in the covariances of a block of points, which stay in the cache


class NumpyDensity(ABC):
    """Log density of the coordinates of a program, and the run of its draws.

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
        self._data = {name: np.asarray(value, dtype=np.float64) for name, value in data.items()}
        self._shapes = shapes
        self._priors = CoordinatePriors(self._data, shapes)
        self._pivot = pivot_of(data)
        self._order = int(data["p"])
        self._pairs = PackedPairs.of(int(data["N"]))
        self._errors = np.square(self._data["y_sd"]) + self._data["noise_floor"] ** 2

    @staticmethod
    @abstractmethod
    def serves(program: str, data: Mapping[str, Any]) -> bool:
        """Return whether the density of a program with these data is computed here."""

    @abstractmethod
    def __call__(self, points: FloatArray) -> FloatArray:
        """Return log densities (s,) at points (s, P), up to a constant; minus infinity where undefined."""

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


class CovarianceDensity(NumpyDensity):
    """Log density of a program from the covariances of all pairs of observations."""

    @abstractmethod
    def covariances(self, theta: Mapping[str, FloatArray]) -> FloatArray:
        """Return the covariances (s, pairs) of the function at pairs of observations, in the order of `PackedPairs`."""

    @override
    def __call__(self, points: FloatArray) -> FloatArray:
        density = np.empty(len(points))
        block = max(1, BLOCK // len(self._pairs.rows))
        for i in range(0, len(points), block):
            rows = slice(i, i + block)
            with np.errstate(all="ignore"):  # hyperparameters far outside have a density of 0
                hyper = self.hyper(points[rows])
                density[rows] = hyper.log_prior + self._log_likelihood(hyper.theta)
        return np.where(np.isfinite(density), density, -np.inf)

    def _log_likelihood(self, theta: Mapping[str, FloatArray]) -> FloatArray:
        """Return log N(T(y) | mu, K + S) + sum log T'(y), (s,), without its constant."""
        y = np.broadcast_to(self._data["y"], (len(theta["mu"]), len(self._errors)))
        by_slope = np.zeros(len(y))
        if "warp" in theta:
            by_slope = log_slope(y, theta["warp"], self._pivot).sum(axis=1)
            y = warped(y, theta["warp"], self._pivot)
        covariances = self.covariances(theta)
        covariances[:, self._pairs.diagonal] += np.square(theta["sigma_n"]) + self._errors
        return by_slope + self._pairs.log_normal(covariances, y - theta["mu"])[0]


def is_plain(data: Mapping[str, Any]) -> bool:
    """Return whether data ask for the density of real observations, and nothing else."""
    special = data["binary"] or data["prior_only"] or data["want_pointwise"]
    return not special and int(data["N"]) > 0
