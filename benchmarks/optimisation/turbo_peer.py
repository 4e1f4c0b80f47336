"""TuRBO-1, a trust region with Thompson sampling, on models of BoTorch.

Eriksson, Pearce, Gardner, Turner & Poloczek (2019), *Scalable Global Optimization via Local Bayesian Optimization*,
NeurIPS, algorithm 1 and supplement: floats on the unit cube, one evaluation at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import qmc

from benchmarks.common.problems import Problem
from benchmarks.optimisation.told import Told
from slayr_py.study.storage.distributions import to_params

_LENGTH, _SHORTEST, _LONGEST = 0.8, 0.5**7, 1.6
_SUCCESSES = 3  # in a row, until the region doubles
_USEFUL = 1e-3  # least gain of a success, relative to the best value
_PERTURBED = 20  # mean number of coordinates in which a candidate differs from the best point
_CANDIDATES = 5000


class Region(NamedTuple):
    """The trust region after some evaluations.

    Attributes
    ----------
    first : int
        Number of the first evaluation since the last restart.
    length : float
        Side of the region before the length-scales stretch it.
    """

    first: int
    length: float


def region_after(values: Sequence[float], n_design: int, dimension: int) -> Region:
    """Return the region after evaluations whose values are minimised.

    The first design has ``n_design`` points, a later one 2 D. The region doubles after three improvements in a row,
    halves after as many failures as parameters, and starts again with another design where it becomes too small.
    """
    first, length, successes, failures = 0, _LENGTH, 0, 0
    best = np.inf
    for number, value in enumerate(values):
        success = not np.isfinite(best) or value < best - _USEFUL * abs(best)
        best = min(best, value)
        if number < first + (2 * dimension if first else n_design):
            continue
        successes, failures = (successes + 1, 0) if success else (0, failures + 1)
        if successes == _SUCCESSES:
            length, successes = min(2 * length, _LONGEST), 0
        elif failures == dimension:
            length, failures = length / 2, 0
        if length < _SHORTEST:
            first, length, successes, failures, best = number + 1, _LENGTH, 0, 0, np.inf
    return Region(first, length)


class Turbo(Told):
    """The optimiser: see `benchmarks.optimisation.peers.Optimiser`.

    What it is told before its first suggestion is the first design; a later design has the 2 D points of the paper.
    """

    packages = ("botorch", "gpytorch", "torch")
    resumes = False

    def __init__(self, problem: Problem, seed: int) -> None:
        super().__init__(problem, seed)
        if any(d.kind != "float" for d in self.encoder.dimensions):
            raise ValueError("TuRBO is for floats only")
        self.n_design: int | None = None

    def ask(self) -> dict[str, Any]:
        dimension = len(self.encoder.dimensions)
        if self.n_design is None:
            self.n_design = len(self.values)
        region = region_after(self.values, self.n_design, dimension)
        number = len(self.values) - region.first
        if region.first and number < 2 * dimension:
            point = qmc.Sobol(dimension, rng=np.random.default_rng([self.seed, region.first])).random(number + 1)[-1]
        else:
            point = self._thompson(region)
        encoded, _ = self.encoder.resolve(point[None, :])
        return to_params(self.encoder.decode(encoded)[0])

    def _thompson(self, region: Region) -> Any:
        """Return the best of random points in the region under one function of the posterior."""
        import torch
        from botorch.fit import fit_gpytorch_mll
        from botorch.generation import MaxPosteriorSampling
        from botorch.models import SingleTaskGP
        from gpytorch.constraints import Interval
        from gpytorch.kernels import MaternKernel, ScaleKernel
        from gpytorch.mlls import ExactMarginalLogLikelihood

        torch.manual_seed(int(np.random.SeedSequence([self.seed, len(self.values)]).generate_state(1)[0]))
        rows = np.array(self.rows[region.first :])
        dimension = rows.shape[1]
        values = -torch.tensor(self.values[region.first :], dtype=torch.double)[:, None]
        kernel = ScaleKernel(MaternKernel(2.5, ard_num_dims=dimension, lengthscale_constraint=Interval(0.005, 4.0)))
        model = SingleTaskGP(torch.tensor(rows, dtype=torch.double), values, covar_module=kernel)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        lengths = kernel.base_kernel.lengthscale.detach().numpy()[0]
        lengths = lengths / lengths.mean()
        half = region.length / 2 * lengths / np.exp(np.mean(np.log(lengths)))
        centre = rows[int(values.argmax())]
        lower, upper = np.clip(centre - half, 0.0, 1.0), np.clip(centre + half, 0.0, 1.0)
        rng = np.random.default_rng([self.seed, len(self.values), 1])
        count = min(100 * dimension, _CANDIDATES)
        points = lower + (upper - lower) * qmc.Sobol(dimension, rng=rng).random(count)
        moved = rng.random(points.shape) < min(1.0, _PERTURBED / dimension)
        moved[np.arange(count), rng.integers(dimension, size=count)] |= ~moved.any(axis=1)
        candidates = torch.tensor(np.where(moved, points, centre), dtype=torch.double)
        with torch.no_grad():
            return MaxPosteriorSampling(model, replacement=False)(candidates, num_samples=1).numpy()[0]
