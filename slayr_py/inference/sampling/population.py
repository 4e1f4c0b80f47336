"""Population Monte Carlo: draws of a posterior from draws near it, by importance sampling.

The draws may come from an approximation, from chains that do not mix, or from the posterior of all observations except
the last. They locate the posterior, which may have several modes. Proposals come from a mixture fitted to the draws.
A quarter of the mixture is a kernel density estimate, which covers every mode that has a draw. The rest is a mixture of
a few normal distributions, which describes the shapes of the modes. Both have the tails of t distributions. The
importance ratios are exact, so modes get their true weights. The weighted proposals are the population of the next step
(Cappé, Guillin, Marin & Robert 2004, "Population Monte Carlo"). A step evaluates the density once per proposal and
needs no chain and no warm-up.

Symbols
-------
m : draws of the population; n : draws to return; s : proposals; K : components; P : parameters of the program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp

from slayr_py.inference.diagnostics.arviz_bridge import pareto_smooth
from slayr_py.inference.diagnostics.importance import smoothed_resample, systematic_rows
from slayr_py.inference.log_sum_exp import log_sum_exp
from slayr_py.space import FloatArray

PROPOSALS = 500
PER_PARAMETER = 100
"""Proposals of a step for up to 10 parameters, and additional proposals for each further parameter."""

STEPS = 6
"""Most steps from the draws of an earlier fit."""

INFLATION = 1.2
"""Scale of a component of a mixture relative to the normal distribution that was fitted."""

_PARTS = (0.25, 0.5, 0.75, 1.0)  # of the proposals of a step; the fewest that should suffice are added
# Degrees of freedom of the t distributions; 5 took more proposals, docs/decisions/carried-posteriors.md.
_FREEDOM = 10.0
_WIDE_SHARE = 0.2  # of the proposals
_KERNELS = 0.25  # share of the kernel density estimate
_WIDTH = 0.8  # scale of a kernel relative to the population; narrower kernels leave gaps in nine dimensions
_MOST_CENTRES = 512  # of the kernel density estimate; the points of largest weight
_MOST_MIXTURES = 2  # whose proposals are weighted; earlier ones are far from the posterior
_MOST_COMPONENTS = 8  # normal distributions of a mixture; BIC chooses the number
_DRAWS_PER_PARAMETER = 4  # effective draws that the weights of a population are worth
_DRAWS_PER_COMPONENT = 4  # per parameter; fewer draws do not determine a covariance
_WIDE = 64  # draws by powers of the ratios
_PATIENCE = 2  # components that may be added without a better BIC; two may improve it together
_RIDGE = 1e-3  # added to the variances of components, relative to the variances of the population
_ITERATIONS = 30  # most steps of expectation maximisation
_LIKELIHOOD_GAIN = 1e-3  # least gain of the mean log likelihood for a further step


class Population(NamedTuple):
    """Resampled draws.

    Attributes
    ----------
    draws : (n, P) float64
        Draws of equal weight.
    rows : (n,) int
        Their positions among the proposals of all steps.
    pareto_k, ess : float
        Pareto shape and effective number of the ratios that resampled them.
    steps : int
        Number of steps.
    wide : (m, P) float64
        If the ratios are not good, draws by powers of them that are worth enough draws to fit a proposal to.
    """

    draws: FloatArray
    rows: NDArray[np.intp]
    pareto_k: float
    ess: float
    steps: int
    wide: FloatArray = np.empty((0, 0))

    @property
    def spread(self) -> FloatArray:
        """Draws to fit a proposal to, (m, P): more of them if the ratios are not good."""
        return self.wide if len(self.wide) else self.draws


def improve(
    log_density: Callable[[FloatArray], FloatArray],
    start: FloatArray,
    n: int,
    good: Callable[[float, float], bool],
    rng: np.random.Generator,
    proposals: int | None = None,
    most_steps: int = STEPS,
    wide: FloatArray | None = None,
) -> Population:
    """Return n draws, resampled as soon as the importance ratios are good, or after the last step.

    The first step draws from a mixture fitted to ``start``. If the ratios are only too few, and the proposals that are
    left should suffice, the next step draws from the same mixture, as many as should suffice or as a step may have.
    Otherwise it draws from a mixture fitted to the weighted proposals. If their ratios are worth fewer draws than such
    a mixture needs, it is fitted to powers of them; without this, a few points would determine it. The ratios are to
    the mean density of the steps from the last two mixtures (Cornuet, Marin, Mira & Robert 2012, "Adaptive multiple
    importance sampling").

    Parameters
    ----------
    log_density : callable
        Maps points (s, P) to log posterior densities (s,) up to a constant.
    start : (m, P) float64
        Draws near the posterior.
    n : int
        Number of draws to return.
    good : callable
        Maps a Pareto shape and an effective number of draws to whether they are good enough.
    rng : numpy.random.Generator
    proposals : int, optional
        Proposals of a step; by default `PROPOSALS` plus `PER_PARAMETER` for every parameter after the tenth.
    most_steps : int
        Largest number of proposals, in steps of ``proposals``.
    wide : (k, P) float64, optional
        Draws of a distribution that has the tails of the posterior, such as the prior, if the start may lack them. A
        fifth of the proposals come from a t distribution fitted to them.

    Raises
    ------
    ValueError, LinAlgError
        If all draws are equal, fewer than five proposals have a finite density, or a covariance is singular.
    """
    centres, counts = np.unique(start, axis=0, return_counts=True)
    if len(centres) == 1:
        raise ValueError(f"the {len(start)} draws are all equal")
    extra = PER_PARAMETER * max(0, start.shape[1] - 10)
    size = PROPOSALS + extra if proposals is None else proposals
    used = _Proposals()
    beside = None if wide is None else _around_all(wide)

    def fitted(points: FloatArray, weights: FloatArray) -> _Mixture:
        proposal = _fit_proposal(points, weights, rng)
        return proposal if beside is None else proposal.beside(beside, _WIDE_SHARE)

    proposal = fitted(centres, counts / counts.sum())
    wanted = size
    while True:
        used.add(proposal, wanted, log_density, rng)
        log_ratio = used.log_ratio
        resampled = smoothed_resample(log_ratio, n, rng)
        rows = resampled.rows + used.discarded
        found = Population(used.points[resampled.rows], rows, resampled.pareto_k, resampled.ess, used.steps)
        if good(found.pareto_k, found.ess):
            return found
        left = most_steps * size - used.total
        wanted = _wanted(found, len(used.points), size, left, good)
        if wanted:
            continue
        finite = np.flatnonzero(np.isfinite(log_ratio))
        power = power_for(log_ratio[finite], 1.0, _DRAWS_PER_PARAMETER * start.shape[1])
        weights = pareto_smooth(power * log_ratio[finite])[0]
        if left <= 0:
            return found._replace(wide=used.points[finite[systematic_rows(weights, _WIDE, rng)]])
        proposal = fitted(used.points[finite], weights)
        wanted = size


def _wanted(found: Population, s: int, size: int, left: int, good: Callable[[float, float], bool]) -> int:
    """Return how many proposals of the same mixture should suffice, at most a step; 0 if more than are left.

    Parameters
    ----------
    found : Population
        From the first s proposals.
    s, size, left : int
        Numbers of proposals so far, of a step, and that are left.
    good : callable
    """

    def suffices(more: int) -> bool:
        return good(found.pareto_k, found.ess * (1 + more / s))

    if left <= 0 or not suffices(left):
        return 0
    return next((more for part in _PARTS if suffices(more := round(part * size))), size)


class _Proposals:
    """The proposals from the last mixtures, with their log densities under the posterior and under each mixture.

    Attributes
    ----------
    points : (s, P) float64
    total : int
        Number of proposals, with those of earlier mixtures.
    steps : int
    """

    def __init__(self) -> None:
        self._mixtures: list[_Mixture] = []
        self._counts: list[int] = []  # of the proposals of each mixture
        self._log_q: list[FloatArray] = []
        self._log_p = np.empty(0)
        self.points = np.empty((0, 0))
        self.total = 0
        self.steps = 0

    @property
    def discarded(self) -> int:
        """Number of proposals of earlier mixtures."""
        return self.total - len(self.points)

    @property
    def log_ratio(self) -> FloatArray:
        """Log ratios of the posterior to the mean density of the steps, (s,)."""
        return np.asarray(self._log_p - log_sum_exp(np.array(self._log_q) + np.log(self._counts)[:, None]))

    def add(
        self, proposal: _Mixture, size: int, log_density: Callable[[FloatArray], FloatArray], rng: np.random.Generator
    ) -> None:
        """Add proposals from a new mixture or from the last one."""
        points = proposal.draw(size, rng)
        if not self._mixtures or self._mixtures[-1] is not proposal:
            self._start(proposal, points.shape[1])
        self._counts[-1] += len(points)
        pairs = zip(self._log_q, self._mixtures, strict=True)
        self._log_q = [np.concatenate([before, mixture.log_density(points)]) for before, mixture in pairs]
        self._log_p = np.concatenate([self._log_p, log_density(points)])
        self.points = np.concatenate([self.points, points])
        self.total += size
        self.steps += 1

    def _start(self, proposal: _Mixture, p: int) -> None:
        """Add a mixture without proposals; keep those of the mixture before it."""
        old = 0
        if len(self._mixtures) == _MOST_MIXTURES:
            old = self._counts[0]
            del self._mixtures[0], self._counts[0], self._log_q[0]
        self.points = self.points.reshape(-1, p)[old:]
        self._log_p = self._log_p[old:]
        self._log_q = [values[old:] for values in self._log_q]
        self._mixtures.append(proposal)
        self._counts.append(0)
        self._log_q.append(proposal.log_density(self.points) if len(self.points) else np.empty(0))


def power_for(log_ratio: FloatArray, most: float, effective: float) -> float:
    """Return the largest power, at most ``most``, of which ratios are worth an effective number of draws."""

    def excess(power: float) -> float:
        return float(2 * logsumexp(power * log_ratio) - logsumexp(2 * power * log_ratio) - np.log(effective))

    if len(log_ratio) <= effective or excess(most) >= 0:
        return most
    return float(brentq(excess, 0.0, most, xtol=1e-4))


@dataclass(frozen=True)
class _Mixture:
    """Mixture of multivariate t distributions whose components share a few scale matrices.

    Attributes
    ----------
    centres : list of (k, P) float64
        Centres of the components with each scale matrix.
    weights : list of (k,) float64
        Their weights; all weights add up to 1.
    roots : list of (P, P) float64
        Lower Cholesky factors of the scale matrices.
    """

    centres: list[FloatArray]
    weights: list[FloatArray]
    roots: list[FloatArray]

    def draw(self, s: int, rng: np.random.Generator) -> FloatArray:
        """Return s draws, (s, P)."""
        group = np.repeat(np.arange(len(self.roots)), [len(w) for w in self.weights])
        centres = np.concatenate(self.centres)
        weights = np.concatenate(self.weights)
        chosen = rng.choice(len(weights), s, p=weights / weights.sum())
        steps = rng.standard_normal((s, centres.shape[1]))
        steps *= np.sqrt(_FREEDOM / rng.chisquare(_FREEDOM, (s, 1)))
        scaled = np.einsum("sij,sj->si", np.stack(self.roots)[group[chosen]], steps)
        return np.asarray(centres[chosen] + scaled)

    def log_density(self, points: FloatArray) -> FloatArray:
        """Return log densities (s,) at points (s, P)."""
        p = points.shape[1]
        power = -(_FREEDOM + p) / 2
        constant = gammaln(-power) - gammaln(_FREEDOM / 2) - p / 2 * np.log(_FREEDOM * np.pi)
        total = np.full(len(points), np.finfo(np.float64).tiny)
        for centres, weights, root in zip(self.centres, self.weights, self.roots, strict=True):
            white, white_centres = (solve_triangular(root, x.T, lower=True).T for x in (points, centres))
            terms = (-2 / _FREEDOM) * white @ white_centres.T
            terms += np.square(white).sum(1)[:, None] / _FREEDOM
            terms += 1 + np.square(white_centres).sum(1) / _FREEDOM
            # The tails of t distributions do not underflow; NumPy's log is faster than its log1p.
            np.log(np.maximum(terms, 1.0, out=terms), out=terms)
            terms *= power
            total += np.exp(terms, out=terms) @ (weights / np.diagonal(root).prod())
        return np.asarray(np.log(total) + constant)

    def beside(self, other: _Mixture, share: float) -> _Mixture:
        """Return a mixture with another one, which has a share of the draws."""
        weights = [*((1 - share) * w for w in self.weights), *(share * w for w in other.weights)]
        return _Mixture([*self.centres, *other.centres], weights, [*self.roots, *other.roots])


def _around_all(points: FloatArray) -> _Mixture:
    """Return a t distribution with the mean and, but for `INFLATION`, the covariance of draws (m, P)."""
    root = np.linalg.cholesky(np.cov(points.T).reshape(points.shape[1], points.shape[1]))
    return _Mixture([points.mean(axis=0, keepdims=True)], [np.ones(1)], [np.asarray(INFLATION * root)])


def _fit_proposal(points: FloatArray, weights: FloatArray, rng: np.random.Generator) -> _Mixture:
    """Fit the proposal to weighted draws (m, P)."""
    p = points.shape[1]
    covariance = np.cov(points.T, aweights=weights).reshape(p, p)
    relevant = np.argsort(-weights, kind="stable")[:_MOST_CENTRES]
    points = points[relevant]
    weights = weights[relevant] / weights[relevant].sum()
    centres, shares, roots = normal_mixture(points, weights, covariance, rng)
    return _Mixture(
        [points, *(centre[None] for centre in centres)],
        [_KERNELS * weights, *(np.array([(1 - _KERNELS) * share]) for share in shares)],
        [np.asarray(_WIDTH * np.linalg.cholesky(covariance)), *(INFLATION * root for root in roots)],
    )


class Normals(NamedTuple):
    """Normal distributions: centres (K, P), shares (K,) and lower Cholesky factors of the covariances (K, P, P)."""

    centres: FloatArray
    shares: FloatArray
    roots: FloatArray

    def draw(self, s: int, rng: np.random.Generator) -> FloatArray:
        """Return s draws, (s, P)."""
        normal = rng.standard_normal((s, self.centres.shape[1]))
        if len(self.shares) == 1:
            return np.asarray(self.centres + normal @ self.roots[0].T)
        chosen = rng.choice(len(self.shares), s, p=self.shares)
        return np.asarray(self.centres[chosen] + np.einsum("sij,sj->si", self.roots[chosen], normal))

    def log_density(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log densities (m,) at points (m, P), and their gradients (m, P)."""
        white = self._white(points)
        terms = self._log_terms(white).T
        total = log_sum_exp(terms)
        shares = np.exp(terms - total)
        slopes = np.linalg.solve(self.roots.transpose(0, 2, 1), white)
        return total, -np.einsum("km,kpm->mp", shares, slopes)

    def log_terms(self, points: FloatArray) -> FloatArray:
        """Return log share and density of every component, (m, K), at points (m, P)."""
        return self._log_terms(self._white(points))

    def _white(self, points: FloatArray) -> FloatArray:
        """Return the points in the coordinates in which each component is standard normal, (K, P, m)."""
        return np.asarray(np.linalg.solve(self.roots, (points - self.centres[:, None]).transpose(0, 2, 1)))

    def _log_terms(self, white: FloatArray) -> FloatArray:
        log_roots = np.log(np.diagonal(self.roots, axis1=1, axis2=2)).sum(axis=1)
        squares = np.square(white).sum(axis=1) + white.shape[1] * np.log(2 * np.pi)
        return np.asarray((np.log(self.shares) - log_roots) - 0.5 * squares.T)


class StandardNormal(NamedTuple):
    """The standard normal distribution of P coordinates, with the methods of `Normals`."""

    p: int

    def draw(self, s: int, rng: np.random.Generator) -> FloatArray:
        """Return s draws, (s, P)."""
        return rng.standard_normal((s, self.p))

    def log_density(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log densities (m,) at points (m, P), and their gradients (m, P)."""
        squares = np.square(np.ascontiguousarray(points.T)).sum(axis=0)  # summed in the order of `Normals`
        return -0.5 * (squares + self.p * np.log(2 * np.pi)), -points


def normal_mixture(
    points: FloatArray, weights: FloatArray, covariance: FloatArray, rng: np.random.Generator, distant: bool = False
) -> Normals:
    """Fit normal distributions to weighted points by maximum likelihood; the BIC decides their number.

    The number grows until two further distributions do not improve the BIC. Expectation maximisation starts around
    points that are far from each other where all variances are 1. There the variances between distant modes hide the
    modes: with ``distant``, it also starts from the points nearest to each of some that are far from each other in the
    program's coordinates, and the larger likelihood decides.
    """
    p = points.shape[1]
    root = np.linalg.cholesky(covariance)
    white = solve_triangular(root, points.T, lower=True).T  # unit variances, for the ridge
    effective = 1 / np.sum(np.square(weights))
    best = None
    lowest = np.inf
    best_k = 0
    for k in range(1, 1 + max(1, min(_MOST_COMPONENTS, int(effective / (_DRAWS_PER_COMPONENT * p))))):
        starts = [_around(white, weights, k, rng)]
        if distant and k > 1:
            nearest = _nearest(points, _spread(points, weights, k, rng))
            starts.append(_normals(white, weights[:, None] * (nearest[:, None] == np.arange(k))))
        normals, log_likelihood = max((_fit_normals(white, weights, start) for start in starts), key=lambda fit: fit[1])
        size = k * (1 + p + p * (p + 1) / 2) - 1
        criterion = size * np.log(effective) - 2 * effective * log_likelihood
        if criterion < lowest:
            best = normals
            lowest = criterion
            best_k = k
        elif k == best_k + _PATIENCE:
            break
    if best is None:
        raise ValueError("no normal distribution fits the draws")
    return Normals(best.centres @ root.T, best.shares, root @ best.roots)


def _fit_normals(points: FloatArray, weights: FloatArray, normals: Normals) -> tuple[Normals, float]:
    """Return normal distributions by expectation maximisation, and the mean log likelihood of the weighted points."""
    before = -np.inf
    for _ in range(_ITERATIONS):
        log_terms = normals.log_terms(points)
        total = log_sum_exp(log_terms.T)
        log_likelihood = float(weights @ total)
        if log_likelihood < before + _LIKELIHOOD_GAIN:
            break
        before = log_likelihood
        normals = _normals(points, weights[:, None] * np.exp(log_terms - total[:, None]))
    return normals, before


def _normals(points: FloatArray, shares: FloatArray) -> Normals:
    """Return normal distributions with the moments of points of which they have shares (m, k)."""
    size = np.maximum(shares.sum(axis=0), 1e-12)
    centres = shares.T @ points / size[:, None]
    apart = points - centres[:, None]
    covariances = np.einsum("mk,kmi,kmj->kij", shares, apart, apart, optimize=True) / size[:, None, None]
    return Normals(centres, size / size.sum(), np.linalg.cholesky(covariances + _RIDGE * np.eye(points.shape[1])))


def _around(points: FloatArray, weights: FloatArray, k: int, rng: np.random.Generator) -> Normals:
    """Return normal distributions with unit covariances around k points."""
    centres = _spread(points, weights, k, rng) if k > 1 else (weights @ points)[None]
    return Normals(centres, np.full(k, 1 / k), np.tile(np.eye(points.shape[1]), (k, 1, 1)))


def _nearest(points: FloatArray, centres: FloatArray) -> NDArray[np.intp]:
    """Return the nearest centre of each point."""
    return np.asarray(np.square(points[:, None] - centres).sum(axis=2).argmin(axis=1))


def _spread(points: FloatArray, weights: FloatArray, k: int, rng: np.random.Generator) -> FloatArray:
    """Return k of the points (m, P) that are far from each other (Arthur & Vassilvitskii 2007, "k-means++")."""
    chosen = [rng.choice(len(points), p=weights)]
    squares = np.full(len(points), np.inf)
    for _ in range(1, k):
        squares = np.minimum(squares, np.square(points - points[chosen[-1]]).sum(axis=1))
        far = weights * squares
        chosen.append(rng.choice(len(points), p=far / far.sum()))
    return points[chosen]
