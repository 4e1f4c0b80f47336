"""Importance sampling or tempering from draws of an earlier fit, of chains whose checks fail, or of the prior."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np
from typing_extensions import override

from slayr_py.inference.diagnostics.checks import CARRIED_CHECKS, TEMPERED_ESS, importance_limits
from slayr_py.inference.sampling.density import Density
from slayr_py.inference.sampling.fm_density import FrequencyModulatedDensity
from slayr_py.inference.sampling.hierarchical_density import HierarchicalDensity
from slayr_py.inference.sampling.matern_density import MaternDensity
from slayr_py.inference.sampling.method import FitMethod, Job, Kind
from slayr_py.inference.sampling.numpy_density import CovarianceDensity
from slayr_py.inference.sampling.options import FitOptions
from slayr_py.inference.sampling.output import Run
from slayr_py.inference.sampling.population import Population, improve
from slayr_py.inference.sampling.tempering import temper
from slayr_py.inference.sampling.warm_start import WarmStart
from slayr_py.kernels import program_contracts
from slayr_py.space import FloatArray

CARRIED_PARAMETERS = 15
"""Largest number of parameters for importance sampling. More parameters need gradients, see `tempering`."""

_PRIOR_PROPOSALS = 1000  # of a step from the prior
_PRIOR_STEPS = 14
_STEP_SIZE = 0.5  # of NUTS from draws of which no chain has found one, in a space with unit variances


class Carried(FitMethod):
    """Draws from the draws of an earlier fit: importance sampling, or tempering for many parameters.

    Without an earlier fit, importance sampling starts at the prior, in more steps.
    """

    name = "carried"
    checks = CARRIED_CHECKS
    carries = True

    @override
    def kind(self, start: WarmStart | None) -> Kind:
        return "carried" if start else "cold"

    @override
    def record(self, options: FitOptions) -> dict[str, Any]:
        return {"chains": options.chains, "draws": options.draws}

    @override
    def warm_start(
        self, draws: Mapping[str, FloatArray], record: Mapping[str, Any], acceptance_rate: float
    ) -> WarmStart:
        if record["start"] is None:
            return WarmStart.without_chains(draws, np.full(record["arguments"]["chains"], _STEP_SIZE))
        return WarmStart.without_chains(draws, WarmStart.fromdict(record["start"]).step_size)

    @override
    def sample(self, job: Job) -> Run:
        if job.start is None:
            return _from_prior(job)
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


def _from_prior(job: Job) -> Run:
    """Move draws of the prior to the posterior in steps of importance sampling."""
    found = _written_here(job.model.name, job.data)
    shapes = program_contracts()[job.model.name].coordinate_shapes_in(job.data)
    if found is None:
        raise ValueError("method 'carried' needs the draws of an earlier fit; pass start=posterior.warm_start()")
    density = found(job.data, shapes)
    good = importance_limits(CARRIED_CHECKS, job.total_draws)
    rng = np.random.default_rng(job.seed)
    start = density.prior_draws(_PRIOR_PROPOSALS, rng)
    population = improve(density, start, job.total_draws, good, rng, _PRIOR_PROPOSALS, _PRIOR_STEPS)
    return density.run(population, {"steps": population.steps}, [])


def _density(job: Job, shapes: dict[str, tuple[int, ...]]) -> CovarianceDensity | Density:
    """Return the log density of a program: in NumPy where it is written there, else by a process."""
    here = _written_here(job.model.name, job.data)
    return here(job.data, shapes) if here else Density(job, shapes)


def _written_here(program: str, data: Mapping[str, Any]) -> type[CovarianceDensity] | None:
    """Return the class of the density of a program with these data, if it is written in NumPy."""
    for density in (MaternDensity, FrequencyModulatedDensity):
        if density.serves(program, data):
            return density
    return None


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


def can_carry(start: WarmStart | None) -> bool:
    """Return whether the parameters are few enough for importance sampling, and fewer than the draws of the start."""
    if start is None:
        return False
    s, p = start.draws.shape
    return bool(p <= CARRIED_PARAMETERS and s > p)


def carries_to(program: str, data: Mapping[str, Any]) -> Callable[[WarmStart | None], bool]:
    """Return a function that tells whether a start, or None for the prior, can be carried to a program's posterior."""
    if HierarchicalDensity.serves(program, data):
        return lambda start: start is not None and len(start.draws) > start.draws.shape[1]
    if _written_here(program, data) is None:
        return can_carry
    shapes = program_contracts()[program].coordinate_shapes_in(data)
    few = sum(prod(shape) for shape in shapes.values()) <= CARRIED_PARAMETERS
    return lambda start: few if start is None else can_carry(start)
