r"""Draws of a posterior with many parameters from draws near it, by tempered sequential Monte Carlo.

In thirty dimensions the importance ratios of any mixture vary too much. Instead, a normal distribution q is fitted to
the draws, and particles move from q to the posterior p through the distributions q^(1 - b) p^b, b from 0 to 1 (Neal
2001, "Annealed importance sampling"; Del Moral, Doucet & Jasra 2006, "Sequential Monte Carlo samplers"). Each step of b
is as large as the importance ratios permit. After each step the particles are resampled, and Hamiltonian Monte Carlo
moves them in the coordinates in which q is standard normal. A trajectory is long enough to draw afresh in every
direction in which p and q are alike, such as the directions about which the data say nothing.

The effective number of draws follows from lineages: only particles with a common ancestor among the first proposals
depend on each other (Lee & Whiteley 2018, "Variance estimation in the particle filter", eq. 9). The particles are moved
until this number suffices.

Symbols
-------
s : proposals; m : particles; P : parameters of the program; b : inverse temperature; x : coordinates in which q is
standard normal; ratio : log p - log q.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from slayr_py.inference.diagnostics.arviz_bridge import pareto_smooth
from slayr_py.inference.diagnostics.checks import PARETO_K_LIMIT
from slayr_py.inference.diagnostics.importance import systematic_rows
from slayr_py.inference.sampling.population import power_for
from slayr_py.space import FloatArray

PARTICLES = 100
PER_PARTICLE = 10
"""Proposals from q for each particle."""

_EFFECTIVE = 0.5  # smallest effective share of the particles after a step of b
_SMALLEST_INCREASE = 1e-3  # of b
_MOST_STEPS = 12
_MOST_MOVES = 10  # of the particles at b = 1
_LAST = 2  # moves after which the particles are draws
_LEAPFROG = 8  # steps of a trajectory
_FIRST_STEP = 0.2
_LARGEST_STEP = 0.4  # longer trajectories than pi turn back
_JITTER = 0.3  # of the step size of a particle, so that no direction has a period of one trajectory
_ACCEPTANCE = 0.8
_ADAPTATION = 1.5  # change of the logarithm of the step size per unit of the acceptance rate
_FEWEST = 5  # proposals with a finite density


class Gradients(Protocol):
    """Log density and its gradient."""

    def __call__(self, points: FloatArray) -> FloatArray:
        """Return log densities (s,) at points (s, P), minus infinity where undefined."""

    def with_gradient(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log densities (s,) and gradients (s, P), zero where undefined."""


class Tempered(NamedTuple):
    """Draws of the particles.

    Attributes
    ----------
    draws : (n, P) float64
        Draws of equal weight.
    pareto_k : float
        Largest Pareto shape of the importance ratios of a step of b.
    ess : float
        Smallest effective number of draws of a coordinate.
    temperatures : list of float
        b after each step; the last one is 1 unless the number of steps was exceeded.
    moves : int
        Number of trajectories of each particle.
    acceptance : float
        Mean acceptance rate of the last move.
    """

    draws: FloatArray
    pareto_k: float
    ess: float
    temperatures: list[float]
    moves: int
    acceptance: float


def temper(density: Gradients, start: FloatArray, n: int, smallest_ess: float, rng: np.random.Generator) -> Tempered:
    """Return n draws of a posterior.

    Parameters
    ----------
    density : Gradients
        Of the posterior, up to a constant factor.
    start : (m, P) float64
        Draws near the posterior, more than P.
    n : int
        Number of draws to return.
    smallest_ess : float
        Effective number of draws from which the particles are not moved further.
    rng : numpy.random.Generator

    Raises
    ------
    ValueError, LinAlgError
        If fewer than five proposals have a finite density, or the covariance of the draws is singular.
    """
    normal = _Normal.fitted(start)
    m = max(PARTICLES, -(-n // _LAST))
    x = rng.standard_normal((PER_PARTICLE * m, start.shape[1]))
    log_p = density(normal.points(x))
    if np.isfinite(log_p).sum() < _FEWEST:
        raise ValueError(f"only {np.isfinite(log_p).sum()} of {len(x)} proposals have a finite density")
    particles = _Particles(density, normal, x, log_p)
    shapes = []
    temperatures: list[float] = []
    b = 0.0
    wanted = float(m)
    while b < 1 and len(temperatures) < _MOST_STEPS:
        ratio = particles.log_p + 0.5 * np.square(particles.x).sum(axis=1)
        finite = np.flatnonzero(np.isfinite(ratio))
        increase = power_for(ratio[finite], 1 - b, wanted)
        weights, shape = pareto_smooth(increase * ratio[finite])
        while shape > PARETO_K_LIMIT and increase > _SMALLEST_INCREASE:
            increase /= 2  # and with it the shape of the tail
            weights, shape = pareto_smooth(increase * ratio[finite])
        b = 1.0 if increase == 1 - b else b + increase
        particles.select(finite[systematic_rows(weights, m, rng)])
        particles.move(b, rng)
        shapes.append(shape)
        temperatures.append(b)
        wanted = _EFFECTIVE * m
    last = [particles.x]
    ess = 0.0
    for _ in range(1, _MOST_MOVES):
        particles.move(b, rng)
        last = [*last, particles.x][-_LAST:]
        ess = effective_number(np.concatenate(last), np.tile(particles.ancestors, _LAST))
        if ess >= smallest_ess:
            break
    rows = np.linspace(0, _LAST * m - 1, n).round().astype(np.intp)
    draws = normal.points(np.concatenate(last)[rows])
    reached = max(shapes) if b == 1 else np.inf  # another distribution than the posterior fails the check
    return Tempered(draws, reached, ess, temperatures, particles.moves, particles.acceptance)


def effective_number(draws: FloatArray, ancestors: NDArray[np.intp]) -> float:
    """Return the smallest effective number of draws of a coordinate.

    Parameters
    ----------
    draws : (n, P) float64
    ancestors : (n,) int
        Ancestor of each draw; draws with different ancestors are independent.
    """
    apart = draws - draws.mean(axis=0)
    lineages, index = np.unique(ancestors, return_inverse=True)
    totals = np.zeros((len(lineages), draws.shape[1]))
    np.add.at(totals, index, apart)
    return float(np.min(np.square(apart).sum(axis=0) / np.square(totals).sum(axis=0)) * len(draws))


@dataclass(frozen=True)
class _Normal:
    """The normal distribution q: its centre (P,) and the lower Cholesky factor (P, P) of its covariance."""

    centre: FloatArray
    root: FloatArray

    @classmethod
    def fitted(cls, draws: FloatArray) -> _Normal:
        """Fit to draws (m, P); correlations are shrunk by a share that grows with P / m."""
        m, p = draws.shape
        covariance = np.cov(draws.T).reshape(p, p) * (m / (m + p))
        covariance[np.diag_indices(p)] *= (m + p) / m
        return cls(draws.mean(axis=0), np.linalg.cholesky(covariance))

    def points(self, x: FloatArray) -> FloatArray:
        """Return the program's coordinates (s, P) of points x."""
        return np.asarray(self.centre + x @ self.root.T)


class _Particles:
    """Particles x (m, P) with their log p, its gradients by x, and their ancestors (m,) among the proposals."""

    def __init__(self, density: Gradients, normal: _Normal, x: FloatArray, log_p: FloatArray) -> None:
        self._density = density
        self._normal = normal
        self.x = x
        self.log_p = log_p
        self.slope: FloatArray | None = None
        self.ancestors = np.arange(len(x))
        self.step = _FIRST_STEP
        self.moves = 0
        self.acceptance = np.nan

    def select(self, rows: NDArray[np.intp]) -> None:
        """Keep the particles of some rows."""
        self.x = self.x[rows]
        self.log_p = self.log_p[rows]
        self.ancestors = self.ancestors[rows]
        self.slope = self._evaluate(self.x)[1] if self.slope is None else self.slope[rows]

    def move(self, b: float, rng: np.random.Generator) -> None:
        """Move each particle by a trajectory of Hamiltonian Monte Carlo at inverse temperature b.

        The step size follows the acceptance rates of the moves before.
        """
        assert self.slope is not None
        momentum = rng.standard_normal(self.x.shape)
        step = self.step * rng.uniform(1 - _JITTER, 1 + _JITTER, (len(self.x), 1))
        before = self._energy(self.x, self.log_p, momentum, b)
        x = self.x
        log_p = self.log_p
        slope = self.slope
        with np.errstate(all="ignore"):  # a trajectory that diverges is rejected
            for _ in range(_LEAPFROG):
                momentum = momentum + 0.5 * step * (b * slope - (1 - b) * x)
                x = x + step * momentum
                log_p, slope = self._evaluate(x)
                momentum = momentum + 0.5 * step * (b * slope - (1 - b) * x)
            gain = np.nan_to_num(before - self._energy(x, log_p, momentum, b), nan=-np.inf)
            probability = np.exp(np.minimum(gain, 0.0))
        accepted = rng.random(len(x)) < probability
        self.x = np.where(accepted[:, None], x, self.x)
        self.log_p = np.where(accepted, log_p, self.log_p)
        self.slope = np.where(accepted[:, None], slope, self.slope)
        self.moves += 1
        self.acceptance = float(probability.mean())
        self.step = min(_LARGEST_STEP, self.step * float(np.exp(_ADAPTATION * (self.acceptance - _ACCEPTANCE))))

    def _evaluate(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log p and its gradient by x."""
        log_p, slope = self._density.with_gradient(self._normal.points(x))
        return log_p, slope @ self._normal.root

    @staticmethod
    def _energy(x: FloatArray, log_p: FloatArray, momentum: FloatArray, b: float) -> FloatArray:
        return np.asarray(0.5 * ((1 - b) * np.square(x) + np.square(momentum)).sum(axis=1) - b * log_p)
