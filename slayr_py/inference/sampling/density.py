"""Evaluate the log density and other quantities of a program at given points, by its generated quantities."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from slayr_py.inference.sampling.command import generated_quantities
from slayr_py.inference.sampling.method import Job
from slayr_py.inference.sampling.output import Run, variables_of
from slayr_py.inference.sampling.population import Population
from slayr_py.kernels import program_contracts
from slayr_py.space import FloatArray


def pointwise(job: Job, shapes: Mapping[str, tuple[int, ...]], points: FloatArray) -> dict[str, FloatArray]:
    """Return ``log_lik`` and ``y_rep`` of the program of a job at points (s, P), each (1, s, N)."""
    parameters = pd.DataFrame(points, columns=_header(shapes))
    table = generated_quantities(str(job.model.exe_file), Path(job.common["data"]), parameters, job.common["seed"])
    variables = variables_of(table.to_numpy()[None], list(table.columns))
    return {name: variables[name] for name in ("log_lik", "y_rep")}


def _header(shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    """Return the names of the columns of points, as Stan writes them."""
    return [f"{z}.{i + 1}" if shape else z for z, shape in shapes.items() for i in range(prod(shape))]


class StanDensity:
    """Log density of a program's coordinates, and the hyperparameters and quantities of resampled points.

    Parameters
    ----------
    job : Job
    shapes : dict
        Shapes of the coordinates by name.
    """

    def __init__(self, job: Job, shapes: dict[str, tuple[int, ...]]) -> None:
        self._exe = str(job.model.exe_file)
        self._data = Path(job.common["data"])
        self._seed = job.common["seed"]
        self._density_data = self._data.with_name("density.json")
        data = json.loads(self._data.read_text())
        self._density_data.write_text(json.dumps(data | {"want_density": 1, "want_pointwise": 0}))
        self._pointwise = data["want_pointwise"]
        self._shapes = shapes
        self._contract = program_contracts()[job.model.name]
        self._header = _header(shapes)
        self._generated = pd.DataFrame()

    def __call__(self, points: FloatArray) -> FloatArray:
        """Return log densities (s,) at points (s, P); minus infinity where undefined."""
        generated = self._generate(points, self._density_data)
        self._generated = pd.concat([self._generated, generated], ignore_index=True)
        values = generated["log_density.1"].to_numpy(dtype=np.float64)
        return np.where(np.isnan(values), -np.inf, values)

    def run(self, population: Population, settings: dict[str, Any], calls: list[dict[str, Any]]) -> Run:
        """Return the run of points that were resampled from the points of all calls."""
        generated = self._generated.iloc[population.rows].drop(columns="log_density.1")
        if self._pointwise:
            generated = self._generate(population.draws, self._data)
        table = np.hstack([population.draws, generated])[None]
        variables = variables_of(table, [*self._header, *generated.columns])
        theta = variables.pop("theta")
        lengths = {z.removeprefix("z_"): v.shape[-1] for z, v in variables.items() if z.startswith("z_")}
        variables |= self._contract.split(theta, lengths)
        return Run(variables, self._shapes, settings, {}, population.pareto_k, population.ess, calls=calls)

    def _generate(self, points: FloatArray, data: Path) -> pd.DataFrame:
        return generated_quantities(self._exe, data, pd.DataFrame(points, columns=self._header), self._seed)
