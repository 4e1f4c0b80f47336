r"""Draws of a posterior with many parameters from draws near it, by tempered sequential Monte Carlo.

In thirty dimensions the importance ratios of any mixture vary too much, and in a dozen if there are several modes.
Instead, a normal distribution or a mixture of a few, q, is fitted to the draws, and particles move from q to the
posterior p through the distributions q^(1 - b) p^b, b from 0 to 1 (Neal 2001, "Annealed importance sampling"; Del
Moral, Doucet & Jasra 2006, "Sequential Monte Carlo samplers"). Each step of b is as large as the importance ratios
permit. After each step the particles are resampled, and Hamiltonian Monte Carlo moves them in the coordinates in which
the mean covariance of the components of q is the identity. A trajectory is long enough to draw afresh in every
direction in which p and q are alike, such as the directions about which the data say nothing.

The effective number of draws follows from lineages: only particles with a common ancestor among the first proposals
depend on each other (Lee & Whiteley 2018, "Variance estimation in the particle filter", eq. 9). The particles are moved
until this number suffices. If it does not after many moves, it stays near a share of the particles, and more particles
start anew. Where nearly all particles have one ancestor, how much of their positions is left after the moves tells the
number instead.

Symbols
-------
s : proposals; m : particles; K : components of q; P : parameters of the program; b : inverse temperature; x :
coordinates in which the mean covariance of the components is the identity; ratio : log p - log q.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from slayr_py.inference.diagnostics.arviz_bridge import pareto_smooth
from slayr_py.inference.diagnostics.checks import PARETO_K_LIMIT
from slayr_py.inference.diagnostics.importance import systematic_rows
from slayr_py.inference.sampling.population import INFLATION, Normals, StandardNormal, normal_mixture, power_for
from slayr_py.space import FloatArray

PARTICLES = 100
PER_PARTICLE = 10
"""Proposals from q for each particle."""

_EFFECTIVE = 0.35  # smallest effective share of the particles after a step of b
_SMALLEST_INCREASE = 1e-3  # of b
_MOST_STEPS = 20  # of b; a path usually takes two to five
_MOST_MOVES = 20  # of the particles at b = 1; chains, which follow, cost ten times as much
_MOST_NEAR = 30  # the same while the effective number is near what is wanted; other particles cost more than 10 moves
_NEAR = 0.75  # share of the wanted effective number that is near it
_FEWEST_MOVES = 6  # at b = 1; draws that fail are the start of a further attempt, and resampled particles are equal
_FEWEST_LINEAGES = 5.0  # effective number of lineages whose means estimate a variance
_MOST_CHANCE = 1.0  # standard errors of an effective number by which the smallest one is raised at most
_SLOWEST = 0.5  # least growth of the effective number with the moves, relative to what would just suffice
_MORE_PARTICLES = 3  # times as many particles in a second attempt
_LAST = 2  # moves after which the particles are draws
_LENGTH = np.pi / 2  # of a trajectory; it draws afresh from a normal distribution, a longer one turns back
_MOST_LEAPFROG = 10  # steps of a trajectory, which is shorter if the step size is small
_FIRST_STEP = 0.4  # of the leapfrog integrator, relative to the fitted normal distribution
_LARGEST_STEP = 0.4  # a trajectory has at least four steps
_JITTER = 0.3  # of the step size of a particle, so that no direction has a period of one trajectory
_ACCEPTANCE = 0.8  # wanted mean acceptance probability; Stan's default
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
        Smallest effective number of draws of a coordinate, see `EffectiveNumbers.smallest`.
    temperatures : list of float
        b after each step; the last one is 1 unless the number of steps was exceeded.
    moves : int
        Number of trajectories of each particle.
    """

    draws: FloatArray
    pareto_k: float
    ess: float
    temperatures: list[float]
    moves: int

    def is_good(self, smallest_ess: float) -> bool:
        """Return whether the ratios are good and the draws are worth enough."""
        return self.pareto_k <= PARETO_K_LIMIT and self.ess >= smallest_ess


def temper(
    density: Gradients,
    start: FloatArray,
    n: int,
    smallest_ess: float,
    rng: np.random.Generator,
    m: int = PARTICLES,
) -> Tempered:
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
    m : int
        Number of particles, of which there are twice as many if q has several components, and at least n / 2. If the
        effective number is too small, but at least a third of what is wanted, a second attempt has three times as many.

    Raises
    ------
    ValueError, LinAlgError
        If fewer than five proposals have a finite density, or the covariance of the draws is singular.
    """
    target = _Target.fitted(density, start, rng)
    m = max(m if isinstance(target.normals, StandardNormal) else 2 * m, -(-n // _LAST))
    tempered = _attempt(target, n, smallest_ess, rng, m)
    if tempered.is_good(smallest_ess / _MORE_PARTICLES) and not tempered.is_good(smallest_ess):
        tempered = _attempt(target, n, smallest_ess, rng, _MORE_PARTICLES * m)
    return tempered


def _attempt(target: _Target, n: int, smallest_ess: float, rng: np.random.Generator, m: int) -> Tempered:
    """Return n draws of the last positions of m particles; see `temper`."""
    x = target.normals.draw(PER_PARTICLE * m, rng)
    log_p = target.density(target.points(x))
    if np.isfinite(log_p).sum() < _FEWEST:
        raise ValueError(f"only {np.isfinite(log_p).sum()} of {len(x)} proposals have a finite density")
    particles = _Particles(target, x, log_p)
    largest = -np.inf
    temperatures: list[float] = []
    b = 0.0
    wanted = float(m)
    while b < 1 and largest <= PARETO_K_LIMIT and len(temperatures) < _MOST_STEPS:
        ratio = particles.log_p - particles.log_q
        finite = np.flatnonzero(np.isfinite(ratio))
        increase = power_for(ratio[finite], 1 - b, wanted)
        weights, shape = pareto_smooth(increase * ratio[finite])
        while shape > PARETO_K_LIMIT and increase > _SMALLEST_INCREASE:
            increase /= 2  # and with it the shape of the tail
            weights, shape = pareto_smooth(increase * ratio[finite])
        b = 1.0 if increase == 1 - b else b + increase
        particles.select(finite[systematic_rows(weights, m, rng)])
        particles.move(b, rng)
        largest = max(largest, shape)
        temperatures.append(b)
        wanted = _EFFECTIVE * m
    reached = largest if b == 1 else np.inf  # another distribution than the posterior fails the check
    lineages = effective_lineages(particles.ancestors)
    path = [particles.x]
    ess = 1.0
    most = _MOST_NEAR if reached <= PARETO_K_LIMIT else 0
    for moves in range(1, 1 + most):
        particles.move(b, rng)
        path.append(particles.x)
        if lineages < _FEWEST_LINEAGES:
            numbers = numbers_of_moves(np.array(path), lineages)
        else:
            numbers = effective_numbers(np.concatenate(path[-_LAST:]), np.tile(particles.ancestors, _LAST))
        ess = numbers.smallest
        slow = ess < _SLOWEST * smallest_ess * moves / _MOST_MOVES
        late = moves >= _MOST_MOVES and ess < _NEAR * smallest_ess
        if ess >= smallest_ess or (slow and moves >= _FEWEST_MOVES) or late:
            break
    last = np.concatenate([path[0], *path][-_LAST:])  # twice the same without a move
    draws = target.points(last[np.linspace(0, len(last) - 1, n).round().astype(np.intp)])
    return Tempered(draws, reached, ess, temperatures, particles.moves)


class EffectiveNumbers(NamedTuple):
    """Effective numbers of draws.

    Attributes
    ----------
    numbers : (P,) float64
        Of each coordinate.
    error : float
        Standard error of their logarithms: root of the mean square.
    """

    numbers: FloatArray
    error: float

    @property
    def smallest(self) -> float:
        """The smallest number, without the part of its distance from the others that is chance.

        The smallest of many estimates is too small. Their logarithms are shrunk towards their mean by the share of
        their variance that is the variance of an estimate (James & Stein 1961), but by at most one standard error, so
        that a coordinate which mixes slowly keeps a small number (Efron & Morris 1972, "Limiting the risk of Bayes and
        empirical Bayes estimators, part II").
        """
        logs = np.log(self.numbers)
        spread = float(np.square(logs - logs.mean()).sum())
        if not spread > 0:
            return float(self.numbers.min())
        chance = min(1.0, max(len(logs) - 3, 0) * self.error**2 / spread)
        return float(self.numbers.min() * np.exp(min(chance * (logs.mean() - logs.min()), _MOST_CHANCE * self.error)))


def effective_numbers(draws: FloatArray, ancestors: NDArray[np.intp]) -> EffectiveNumbers:
    """Return the effective number of draws of each coordinate.

    Its reciprocal estimates the variance of the mean, relative to that of the draws: without bias if relatives are
    independent, or if all lineages have equally many draws. As deviations are from the mean of the draws, the number
    has the factor 1 - (sum of the squared shares of the lineages). The standard error is that of a sum of squares of
    independent normal variables, the sums of the lineages. If few lineages have most of the draws, their means tell too
    little about the variance of a mean: see `numbers_of_moves`.

    Parameters
    ----------
    draws : (n, P) float64
    ancestors : (n,) int
        Ancestor of each draw; draws with different ancestors are independent.
    """
    apart = draws - draws.mean(axis=0)
    _, index, counts = np.unique(ancestors, return_inverse=True, return_counts=True)
    squared_shares = float(np.square(counts / len(draws)).sum())
    totals = np.zeros((len(counts), draws.shape[1]))
    np.add.at(totals, index, apart)
    squares = np.square(totals)
    numbers = np.square(apart).sum(axis=0) / squares.sum(axis=0) * len(draws) * (1 - squared_shares)
    relative_variances = 2 / 3 * np.square(squares).sum(axis=0) / np.square(squares.sum(axis=0))
    return EffectiveNumbers(numbers, float(np.sqrt(relative_variances.mean())))


def effective_lineages(ancestors: NDArray[np.intp]) -> float:
    """Return the effective number of lineages of particles with these ancestors, (m,): 1 / (sum of squared shares)."""
    _, counts = np.unique(ancestors, return_counts=True)
    return float(len(ancestors) ** 2 / np.square(counts).sum())


def numbers_of_moves(path: FloatArray, lineages: float) -> EffectiveNumbers:
    """Return the effective number of draws of each coordinate after moves that leave the posterior as it is.

    A coordinate of a particle after the moves is a share a of what it was before, plus a part that is independent of
    that of all other particles. The variance of its mean over m particles of L lineages, relative to that of the draws,
    is then at most a^2 / L + (1 - a^2) / m, even if relatives were equal before. The share is the slope of a regression
    over the particles; its mean square over the second half of the moves, less what chance adds, is too large rather
    than too small. Of the part that relatives have in common, the variance is that of the draws, or that before the
    moves if it is larger.

    Parameters
    ----------
    path : (k + 1, m, P) float64
        Positions before the first of k moves and after each.
    lineages : float
        Effective number of lineages.
    """
    m = path.shape[1]
    late = path[(len(path) + 1) // 2 :]
    before = path[0] - path[0].mean(axis=0)
    spread = np.square(before).mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = np.einsum("mp,kmp->kp", before, late) / (m * spread)
        squares = np.square(slopes).mean(axis=0) * np.maximum(1.0, spread / late.var(axis=1).mean(axis=0))
    left = np.clip(np.nan_to_num(squares, nan=np.inf, posinf=np.inf) - 1 / m, 0.0, 1.0)
    numbers = 1 / (left / lineages + (1 - left) / m)
    by_chance = np.sqrt(2 / len(late)) / (m * lineages)  # standard error of left / L where nothing is left
    return EffectiveNumbers(numbers, float(np.sqrt(np.square(numbers * by_chance).mean())))


@dataclass(frozen=True)
class _Target:
    """The posterior p and the mixture q in coordinates x.

    Attributes
    ----------
    density : Gradients
    centre, root : (P,), (P, P) float64
        The program's coordinates are centre + root x.
    normals : Normals or StandardNormal
        q in the coordinates x.
    """

    density: Gradients
    centre: FloatArray
    root: FloatArray
    normals: Normals | StandardNormal

    @classmethod
    def fitted(cls, density: Gradients, draws: FloatArray, rng: np.random.Generator) -> _Target:
        """Fit q to draws (m, P); the correlations of a single normal are shrunk by a share that grows with P / m."""
        m, p = draws.shape
        covariance = np.cov(draws.T).reshape(p, p)
        fitted = normal_mixture(draws, np.full(m, 1 / m), covariance, rng, distant=True)
        if len(fitted.shares) == 1:
            covariance = covariance * (m / (m + p))
            covariance[np.diag_indices(p)] *= (m + p) / m
            root = np.linalg.cholesky(covariance)
            return cls(density, draws.mean(axis=0), root, StandardNormal(p))
        roots = INFLATION * fitted.roots
        root = np.linalg.cholesky(np.einsum("k,kij,klj->il", fitted.shares, roots, roots))
        centre = fitted.shares @ fitted.centres
        centres = np.asarray(np.linalg.solve(root, (fitted.centres - centre).T).T)
        return cls(density, centre, root, Normals(centres, fitted.shares, np.asarray(np.linalg.solve(root, roots))))

    def points(self, x: FloatArray) -> FloatArray:
        """Return the program's coordinates (s, P) of points x."""
        return np.asarray(self.centre + x @ self.root.T)

    def log_p(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log p (s,) and its gradient (s, P) by x."""
        log_p, slope = self.density.with_gradient(self.points(x))
        return log_p, slope @ self.root


class _State(NamedTuple):
    """Particles x (m, P), log p and log q (m,), and their gradients (m, P) by x."""

    x: FloatArray
    log_p: FloatArray
    slope_p: FloatArray
    log_q: FloatArray
    slope_q: FloatArray

    def log_density(self, b: float) -> FloatArray:
        """Return log q^(1 - b) p^b."""
        return np.asarray((1 - b) * self.log_q + b * self.log_p)

    def slope(self, b: float) -> FloatArray:
        """Return its gradient."""
        return np.asarray((1 - b) * self.slope_q + b * self.slope_p)


class _Particles:
    """Particles and their ancestors (m,) among the proposals."""

    def __init__(self, target: _Target, x: FloatArray, log_p: FloatArray) -> None:
        self._target = target
        self._state: _State | None = None
        self._proposals = x
        self.log_p = log_p
        self.log_q = target.normals.log_density(x)[0]
        self.ancestors = np.arange(len(x))
        self.step = _FIRST_STEP
        self.moves = 0

    @property
    def x(self) -> FloatArray:
        """The particles (m, P)."""
        return self._proposals if self._state is None else self._state.x

    def select(self, rows: NDArray[np.intp]) -> None:
        """Keep the particles of some rows."""
        if self._state is None:
            self._set(self._evaluate(self._proposals[rows]))
        else:
            self._set(_State(*(values[rows] for values in self._state)))
        self.ancestors = self.ancestors[rows]

    def move(self, b: float, rng: np.random.Generator) -> None:
        """Move each particle by a trajectory of Hamiltonian Monte Carlo at inverse temperature b.

        The step size follows the acceptance rates of the moves before.
        """
        before = self._state
        assert before is not None
        momentum = rng.standard_normal(before.x.shape)
        step = self.step * rng.uniform(1 - _JITTER, 1 + _JITTER, (len(before.x), 1))
        energy = 0.5 * np.square(momentum).sum(axis=1) - before.log_density(b)
        state = before
        with np.errstate(all="ignore"):  # a trajectory that diverges is rejected
            for _ in range(min(_MOST_LEAPFROG, round(_LENGTH / self.step))):
                momentum = momentum + 0.5 * step * state.slope(b)
                state = self._evaluate(state.x + step * momentum)
                momentum = momentum + 0.5 * step * state.slope(b)
            gain = energy - 0.5 * np.square(momentum).sum(axis=1) + state.log_density(b)
            probability = np.exp(np.minimum(np.nan_to_num(gain, nan=-np.inf), 0.0))
        accepted = rng.random(len(momentum)) < probability
        chosen = (
            np.where(accepted if a.ndim == 1 else accepted[:, None], a, b) for a, b in zip(state, before, strict=True)
        )
        self._set(_State(*chosen))
        self.moves += 1
        change = _ADAPTATION * (float(probability.mean()) - _ACCEPTANCE)
        self.step = min(_LARGEST_STEP, self.step * float(np.exp(change)))

    def _evaluate(self, x: FloatArray) -> _State:
        return _State(x, *self._target.log_p(x), *self._target.normals.log_density(x))

    def _set(self, state: _State) -> None:
        self._state = state
        self.log_p = state.log_p
        self.log_q = state.log_q
