"""Importance sampling or tempering from the draws of an earlier fit, or of chains whose checks fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from typing_extensions import override

from slayr_py.inference.diagnostics.checks import CARRIED_CHECKS, TEMPERED_ESS, importance_limits
from slayr_py.inference.sampling.density import Density
from slayr_py.inference.sampling.fm_density import FrequencyModulatedDensity
from slayr_py.inference.sampling.hierarchical_density import HierarchicalDensity
from slayr_py.inference.sampling.matern_density import MaternDensity
from slayr_py.inference.sampling.method import FitMethod, Job, Kind
from slayr_py.inference.sampling.numpy_density import NumpyDensity
from slayr_py.inference.sampling.output import Run
from slayr_py.inference.sampling.population import Population, improve
from slayr_py.inference.sampling.tempering import temper
from slayr_py.inference.sampling.warm_start import WarmStart
from slayr_py.space import FloatArray

CARRIED_PARAMETERS = 15
"""Largest number of parameters for importance sampling. More parameters need gradients, see `tempering`."""


class Carried(FitMethod):
    """Draws from the draws of an earlier fit: importance sampling, or tempering for many parameters."""

    name = "carried"
    checks = CARRIED_CHECKS
    carries = True

    @override
    def kind(self, start: WarmStart | None) -> Kind:
        return "carried"

    @override
    def warm_start(
        self, draws: Mapping[str, FloatArray], record: Mapping[str, Any], acceptance_rate: float
    ) -> WarmStart:
        return WarmStart.without_chains(draws, WarmStart.fromdict(record["start"]))

    @override
    def sample(self, job: Job) -> Run:
        if job.start is None:
            raise ValueError("method 'carried' needs the draws of an earlier fit; pass start=posterior.warm_start()")
        shapes = {name: values.shape[1:] for name, values in job.start.points.items()}
        draws = job.start.draws
        try:
            if draws.shape[1] > CARRIED_PARAMETERS:
                return _tempered(job, draws, shapes)
            return _reweighted(job, draws, shapes)
        except np.linalg.LinAlgError as error:
            raise ValueError(f"no proposal can be fitted to the {len(draws)} earlier draws: {error}") from error


def _reweighted(job: Job, draws: FloatArray, shapes: dict[str, tuple[int, ...]]) -> Run:
    density = _density(job, shapes)
    good = importance_limits(CARRIED_CHECKS, job.total_draws)
    population = improve(density, draws, job.total_draws, good, np.random.default_rng(job.seed))
    return density.run(population, {"steps": population.steps}, [])


def _density(job: Job, shapes: dict[str, tuple[int, ...]]) -> NumpyDensity | Density:
    """Return the log density of a program: in NumPy where it is written there, else by a process."""
    for density in (MaternDensity, FrequencyModulatedDensity):
        if density.serves(job.model.name, job.data):
            return density(job.data, shapes)
    return Density(job, shapes)


def _tempered(job: Job, draws: FloatArray, shapes: dict[str, tuple[int, ...]]) -> Run:
    if not HierarchicalDensity.serves(job.model.name, job.data):
        raise ValueError(
            f"method 'carried' takes at most {CARRIED_PARAMETERS} parameters of {job.model.name} with these data, and "
            f"the start has {draws.shape[1]}; use method='nuts'"
        )
    density = HierarchicalDensity(job.data, shapes)
    tempered = temper(density, draws, job.total_draws, TEMPERED_ESS, np.random.default_rng(job.seed))
    rows = np.arange(len(tempered.draws))
    population = Population(tempered.draws, rows, tempered.pareto_k, tempered.ess, len(tempered.temperatures))
    settings = {"steps": population.steps, "temperatures": tempered.temperatures, "moves": tempered.moves}
    return density.run(population, settings, [])


def can_carry(start: WarmStart) -> bool:
    """Return whether the parameters are few enough for importance sampling, and fewer than the draws of the start."""
    s, p = start.draws.shape
    return bool(p <= CARRIED_PARAMETERS and s > p)


def carries_to(program: str, data: Mapping[str, Any]) -> Callable[[WarmStart], bool]:
    """Return a function that tells whether a start can be carried to the posterior of a program and its data."""
    if HierarchicalDensity.serves(program, data):
        return lambda start: len(start.draws) > start.draws.shape[1]
    return can_carry
