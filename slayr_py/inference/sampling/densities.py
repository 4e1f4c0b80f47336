"""The log density of a program, in NumPy where it is written there, and the run of draws that it has weighted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from slayr_py.inference.sampling.composite_density import CompositeDensity
from slayr_py.inference.sampling.density import StanDensity, pointwise
from slayr_py.inference.sampling.fm_density import FrequencyModulatedDensity
from slayr_py.inference.sampling.hierarchical_density import HierarchicalDensity
from slayr_py.inference.sampling.matern_density import MaternDensity
from slayr_py.inference.sampling.method import Job
from slayr_py.inference.sampling.numpy_density import NumpyDensity
from slayr_py.inference.sampling.output import Run
from slayr_py.inference.sampling.population import Population


def numpy_density(program: str, data: Mapping[str, Any]) -> type[NumpyDensity] | None:
    """Return the class of the density of a program with these data, if it is written in NumPy."""
    for density in (MaternDensity, FrequencyModulatedDensity, HierarchicalDensity, CompositeDensity):
        if density.serves(program, data):
            return density
    return None


def density_of(job: Job, shapes: dict[str, tuple[int, ...]]) -> NumpyDensity | StanDensity:
    """Return the density of the program of a job, whose coordinates have these shapes."""
    here = numpy_density(job.model.name, job.data)
    return here(job.data, shapes) if here else StanDensity(job, shapes)


def run_of(
    job: Job,
    density: NumpyDensity | StanDensity,
    shapes: dict[str, tuple[int, ...]],
    population: Population,
    settings: Mapping[str, Any] = MappingProxyType({}),
    calls: Sequence[dict[str, Any]] = (),
) -> Run:
    """Return the run of a population; where the density is written in NumPy, the program adds pointwise densities."""
    run = density.run(population, {"steps": population.steps, **settings}, list(calls))
    if isinstance(density, StanDensity) or not job.data["want_pointwise"]:
        return run
    return replace(run, variables={**run.variables, **pointwise(job, shapes, population.draws)})
