"""What the log densities in NumPy of single programs have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from slayr_py.inference.sampling.coordinate_priors import CoordinatePriors
from slayr_py.inference.sampling.output import Run
from slayr_py.inference.sampling.population import Population
from slayr_py.inference.warp import pivot_of


class NumpyDensity:
    """Data, priors and pairs of observations of a density, and the run of its draws.

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
        self._rows, self._columns = np.tril_indices(int(data["N"]), -1)
        self._errors = np.square(self._data["y_sd"]) + self._data["noise_floor"] ** 2

    def run(self, population: Population, settings: dict[str, Any], calls: list[dict[str, Any]]) -> Run:
        """Return the run of the draws of a population."""
        coordinates = self._priors.split(population.draws)
        theta = self._priors(population.draws).theta
        variables = {name: values[None] for name, values in {**coordinates, **theta}.items()}
        settings = settings | {"density": "numpy"}
        return Run(variables, self._shapes, settings, {}, population.pareto_k, population.ess, calls=calls)


def is_plain(data: Mapping[str, Any], largest: int) -> bool:
    """Return whether data ask for the density of 1 to ``largest`` real observations, and nothing else."""
    special = data["binary"] or data["prior_only"] or data["want_pointwise"]
    return not special and 0 < int(data["N"]) <= largest
