"""Importance sampling or tempering from draws of an earlier fit, of chains whose checks fail, or of the prior."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from typing_extensions import override

from slayr_py.inference.diagnostics.checks import CARRIED_CHECKS, TEMPERED_ESS, importance_limits
from slayr_py.inference.sampling.densities import density_of, numpy_density, run_of
from slayr_py.inference.sampling.density import StanDensity
from slayr_py.inference.sampling.method import FitMethod, Job, Kind
from slayr_py.inference.sampling.numpy_density import NumpyDensity
from slayr_py.inference.sampling.options import FitOptions
from slayr_py.inference.sampling.output import Run
from slayr_py.inference.sampling.population import Population, improve
from slayr_py.inference.sampling.tempering import PARTICLES, temper
from slayr_py.inference.sampling.warm_start import WarmStart
from slayr_py.kernels import program_contracts
from slayr_py.space import FloatArray

CARRIED_PARAMETERS = 15
"""Largest number of parameters for importance sampling. More parameters need gradients, see `tempering`."""

_FEW_PARAMETERS = 10
"""Largest number of parameters for which importance sampling from the prior comes before tempering."""

_PRIOR_PROPOSALS = 1000  # of a step from the prior
_PRIOR_STEPS = 14  # most steps of a run; fits of loops needed 3 to 9, docs/decisions/carried-posteriors.md
_PRIOR_RUNS = 4  # each of which may find another mode
_PRIOR_PARTICLES = 200  # of tempering from the prior
_AGAIN = 4  # most further temperings, from the draws of one that fails
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
        return _from_prior(job) if job.start is None else _from_draws(job, job.start)


def _from_draws(job: Job, start: WarmStart) -> Run:
    """Move draws of a similar posterior by importance sampling; if that fails or the parameters are many, temper.

    Draws of the prior come before tempering if the parameters are few: there importance sampling seldom fails, and
    takes tenths of a second, while the effective number of particles in modes of which they had few draws stays small.
    """
    shapes = {name: values.shape[1:] for name, values in start.points.items()}
    density = density_of(job, shapes)
    p = start.draws.shape[1]
    if isinstance(density, StanDensity) and p > CARRIED_PARAMETERS:
        raise ValueError(
            f"method 'carried' takes at most {CARRIED_PARAMETERS} parameters of {job.model.name} with these data, and "
            f"the start has {p}; use method='nuts'"
        )
    rng = np.random.default_rng(job.seed)
    with _singular_covariances(start.draws):
        if p <= CARRIED_PARAMETERS:
            good = importance_limits(CARRIED_CHECKS, job.total_draws)
            population = improve(density, start.draws, job.total_draws, good, rng)
            if good(population.pareto_k, population.ess) or isinstance(density, StanDensity):
                return run_of(job, density, shapes, population)
        assert not isinstance(density, StanDensity)
        if p <= _FEW_PARAMETERS:
            population, passed = _improved_prior(job, density, rng)
            if passed:
                return run_of(job, density, shapes, population)
        return _tempered(job, density, shapes, start.draws, rng)


def _from_prior(job: Job) -> Run:
    """Move draws of the prior by importance sampling; if that fails or the parameters are many, temper."""
    here = numpy_density(job.model.name, job.data)
    if here is None:
        raise ValueError("method 'carried' needs the draws of an earlier fit; pass start=posterior.warm_start()")
    shapes = program_contracts()[job.model.name].coordinate_shapes_in(job.data)
    density = here(job.data, shapes)
    rng = np.random.default_rng(job.seed)
    if sum(math.prod(shape) for shape in shapes.values()) > CARRIED_PARAMETERS:
        return _tempered(job, density, shapes, density.prior_draws(_PRIOR_PROPOSALS, rng), rng, _PRIOR_PARTICLES)
    population, passed = _improved_prior(job, density, rng)
    if passed:
        return run_of(job, density, shapes, population)
    populations = [population, *(_improved_prior(job, density, rng)[0] for _ in range(_PRIOR_RUNS - 1))]
    draws = np.concatenate([each.spread for each in populations])
    with _singular_covariances(draws):
        return _tempered(job, density, shapes, draws, rng)


def _improved_prior(job: Job, density: NumpyDensity, rng: np.random.Generator) -> tuple[Population, bool]:
    """Return a population that importance sampling reaches from draws of the prior, and whether its checks pass."""
    good = importance_limits(CARRIED_CHECKS, job.total_draws)
    start = density.prior_draws(_PRIOR_PROPOSALS, rng)
    population = improve(density, start, job.total_draws, good, rng, _PRIOR_PROPOSALS, _PRIOR_STEPS)
    return population, good(population.pareto_k, population.ess)


def _tempered(
    job: Job,
    density: NumpyDensity,
    shapes: dict[str, tuple[int, ...]],
    draws: FloatArray,
    rng: np.random.Generator,
    particles: int = PARTICLES,
) -> Run:
    """Return the run of tempered draws; where they fail, as from a start that is far away, they are tempered again.

    They are near the posterior then, but most of them may descend from one proposal.
    """
    tempered = temper(density, draws, job.total_draws, TEMPERED_ESS, rng, particles)
    for _ in range(_AGAIN):
        if tempered.is_good(TEMPERED_ESS):
            break
        tempered = temper(density, tempered.draws, job.total_draws, TEMPERED_ESS, rng)
    rows = np.arange(len(tempered.draws))
    population = Population(tempered.draws, rows, tempered.pareto_k, tempered.ess, len(tempered.temperatures))
    return run_of(job, density, shapes, population, {"temperatures": tempered.temperatures, "moves": tempered.moves})


@contextmanager
def _singular_covariances(draws: FloatArray) -> Iterator[None]:
    try:
        yield
    except np.linalg.LinAlgError as error:
        raise ValueError(f"no proposal can be fitted to the {len(draws)} earlier draws: {error}") from error


def can_carry(start: WarmStart | None) -> bool:
    """Return whether the parameters are few enough for importance sampling, and fewer than the draws of the start."""
    if start is None:
        return False
    s, p = start.draws.shape
    return bool(p <= CARRIED_PARAMETERS and s > p)


def carries_to(program: str, data: Mapping[str, Any]) -> Callable[[WarmStart | None], bool]:
    """Return a function that tells whether a start, or None for the prior, can be carried to a program's posterior."""
    if numpy_density(program, data) is None:
        return can_carry
    return lambda start: start is None or len(start.draws) > start.draws.shape[1]
