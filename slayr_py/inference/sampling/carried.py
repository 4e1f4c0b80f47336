"""Importance sampling from the draws of an earlier fit, or of chains whose checks fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from typing_extensions import override

from slayr_py.inference.diagnostics.checks import CARRIED_CHECKS, importance_limits
from slayr_py.inference.sampling.density import Density
from slayr_py.inference.sampling.matern_density import MaternDensity
from slayr_py.inference.sampling.method import FitMethod, Job, Kind
from slayr_py.inference.sampling.output import Run
from slayr_py.inference.sampling.population import improve
from slayr_py.inference.sampling.warm_start import WarmStart
from slayr_py.space import FloatArray

CARRIED_PARAMETERS = 15
"""Largest number of parameters for which a posterior is carried. Importance sampling fails in more dimensions."""


class Carried(FitMethod):
    """Importance sampling from a mixture fitted to the draws of an earlier fit."""

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
        start = job.start
        shapes = {name: values.shape[1:] for name, values in start.points.items()}
        here = MaternDensity.serves(job.model.name, job.data)
        density = MaternDensity(job.data, shapes) if here else Density(job, shapes)
        good = importance_limits(CARRIED_CHECKS, job.total_draws)
        try:
            population = improve(density, start.draws, job.total_draws, good, np.random.default_rng(job.seed))
        except np.linalg.LinAlgError as error:
            raise ValueError(f"no proposal can be fitted to the {len(start.draws)} earlier draws: {error}") from error
        return density.run(population, {"steps": population.steps}, [])


def can_carry(start: WarmStart) -> bool:
    """Return whether the parameters are few enough to carry a posterior, and fewer than the draws of the start."""
    s, p = start.draws.shape
    return bool(p <= CARRIED_PARAMETERS and s > p)
