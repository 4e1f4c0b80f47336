"""Population Monte Carlo: improve the draws of an approximation until their importance ratios are good.

The posterior of hyperparameters has heavier tails than a normal approximation, and possibly several modes; the
importance ratios then have a large Pareto k. The draws of the approximation still locate the posterior. A mixture of t
distributions centred on them has heavy tails and covers all modes that the draws have found. The weighted draws of the
mixture are the population of the next step (Cappé, Guillin, Marin & Robert 2004, "Population Monte Carlo"). A step
evaluates the density once per proposal and needs no chain and no warm-up.

Symbols
-------
m : draws of the population; n : draws to return; s : proposals; P : parameters of the program.
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
_WIDTH = 0.8  # scale of a component relative to the population's: narrower ones leave gaps in nine dimensions
_FREEDOM = 5.0


class Population(NamedTuple):
    """Draws of equal weight, (n, P), with Pareto shape and effective number of the ratios that resampled them."""

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
    """Return n draws resampled from the first step with good importance ratios, or else from the last step.

    Parameters
    ----------
    log_density : callable
        Maps points (s, P) to log posterior densities (s,) up to a constant.
    start : (m, P) float64
        Draws of an approximation.
    n : int
        Number of draws to return.
    good : callable
        Maps a Pareto shape and an effective number of draws to whether they are good enough.
    rng : numpy.random.Generator

    Raises
    ------
    ValueError, LinAlgError
        If fewer than five proposals have a finite density, or the covariance of the draws is singular.
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
    """Draw from t distributions centred on (m, P); return draws (s, P) and log densities (s,) up to a constant."""
    p = centres.shape[1]
    covariance = np.cov(centres.T, aweights=weights).reshape(p, p)
    root = _WIDTH * np.linalg.cholesky(covariance)
    t = multivariate_t(np.zeros(p), np.eye(p), df=_FREEDOM)
    kept = weights > weights.max() * 1e-6
    centres, weights = centres[kept], weights[kept] / weights[kept].sum()
    components = rng.choice(len(centres), PROPOSALS, p=weights)
    proposals = centres[components] + t.rvs(PROPOSALS, random_state=rng).reshape(PROPOSALS, p) @ root.T
    white, white_centres = (solve_triangular(root, points.T, lower=True).T for points in (proposals, centres))
    squares = np.square(white).sum(1)[:, None] + np.square(white_centres).sum(1) - 2 * white @ white_centres.T
    log_terms = -(_FREEDOM + p) / 2 * np.log1p(np.maximum(squares, 0.0) / _FREEDOM)
    return proposals, np.asarray(logsumexp(log_terms + np.log(weights), axis=1))
