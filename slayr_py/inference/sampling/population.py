"""Population Monte Carlo: draws of an approximation, improved until their importance ratios are good.

A normal approximation has thinner tails than the posterior of hyperparameters, which may have several modes besides,
and its importance ratios say so. Its draws still know where the posterior is. A mixture of t distributions round them
has tails, and as many modes as they have found; the draws of the mixture, weighted, are the population of the next step
(Cappé, Guillin, Marin & Robert 2004, "Population Monte Carlo"). A step costs one evaluation of the density for each
proposal, with no chain and no warm-up.

Symbols
-------
m : draws of the population; s : proposals; P : parameters of the program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp
from scipy.stats import multivariate_t

from slayr_py.inference.diagnostics.arviz_bridge import pareto_smooth
from slayr_py.inference.diagnostics.importance import smoothed_resample
from slayr_py.space.dimension import FloatArray

PROPOSALS = 1000
_STEPS = 3
_WIDTH = 0.8  # of a component, in units of the population's covariance: narrower ones leave gaps in nine dimensions
_FREEDOM = 5.0


class Population(NamedTuple):
    """Draws of equal weight, (n, P), and how good the ratios were that they were resampled by."""

    draws: FloatArray
    pareto_k: float
    ess: float


def improve(
    log_density: Callable[[FloatArray], FloatArray],
    start: FloatArray,
    n: int,
    good: Callable[[float, float], bool],
    rng: np.random.Generator,
) -> Population:
    """Resample n draws from the first step that is good enough, else from the last.

    Parameters
    ----------
    log_density : callable
        Log density of the posterior at points (s, P), up to a constant; (s,).
    start : (m, P) float64
        Draws of an approximation.
    n : int
        Draws wanted.
    good : callable
        Whether a Pareto shape and an effective number of draws are good enough.
    rng : numpy.random.Generator

    Raises
    ------
    ValueError, LinAlgError
        If hardly any proposal has a finite density, or the draws lie in a plane.
    """
    centres, counts = np.unique(start, axis=0, return_counts=True)
    weights = counts / counts.sum()
    for _ in range(_STEPS):
        proposals, log_proposal = _mixture(centres, weights, rng)
        log_ratio = log_density(proposals) - log_proposal
        kept = smoothed_resample(log_ratio, n, rng)
        if good(kept.pareto_k, kept.ess):
            break
        finite = np.isfinite(log_ratio)
        centres, weights = proposals[finite], pareto_smooth(log_ratio[finite])[0]
    return Population(proposals[kept.rows], kept.pareto_k, kept.ess)


def _mixture(centres: FloatArray, weights: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draws (s, P) of t distributions round the centres (m, P), and their log density (s,) up to a constant."""
    p = centres.shape[1]
    covariance = np.cov(centres.T, aweights=weights).reshape(p, p)
    root = _WIDTH * np.linalg.cholesky(covariance)
    t = multivariate_t(np.zeros(p), np.eye(p), df=_FREEDOM)
    kept = weights > weights.max() * 1e-6
    centres, weights = centres[kept], weights[kept] / weights[kept].sum()
    of = rng.choice(len(centres), PROPOSALS, p=weights)
    proposals = centres[of] + t.rvs(PROPOSALS, random_state=rng).reshape(PROPOSALS, p) @ root.T
    white, white_centres = (solve_triangular(root, points.T, lower=True).T for points in (proposals, centres))
    squares = np.square(white).sum(1)[:, None] + np.square(white_centres).sum(1) - 2 * white @ white_centres.T
    log_terms = -(_FREEDOM + p) / 2 * np.log1p(np.maximum(squares, 0.0) / _FREEDOM)
    return proposals, np.asarray(logsumexp(log_terms + np.log(weights), axis=1))
