r"""Posterior of the regret: the possible gain over the incumbent.

For a function f drawn from the posterior, the simple regret of the incumbent x+ is f(x+) - min f over the feasible
configurations. Its distribution over draws answers when to stop: once P(regret < epsilon) is large enough (Wilson 2024,
"Stopping Bayesian optimization with probabilistic regret bounds", NeurIPS).

The minimum is taken over a pool of configurations. It starts with the most promising candidates of a search. In each of
a few rounds, functions are drawn, and the pool keeps their minima, gets neighbours of these, and loses configurations
that are not promising. The last functions are drawn jointly at the minima of the last round.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from slayr_py.acquisition.candidates import Candidates, candidates
from slayr_py.acquisition.feasibility import Feasibility, infeasible
from slayr_py.inference import Posterior, draw_functions
from slayr_py.space import Encoded, Fixed, FloatArray

_FUNCTIONS = 256
_DRAWS = 16
_LAST_DRAWS = 32  # of the hyperparameters, in a round and at the end; each has several functions
_CANDIDATES = 1000
_POOL = 400  # promising configurations that are kept
_DOUBTFUL = 0.05  # probability of feasibility below which a configuration comes last
_ANCHORS = 200
_ROUNDS = 4
_PERTURBATIONS = 3  # of each minimum in every round


def sample_regret(
    posterior: Posterior,
    incumbent: Encoded,
    rng: np.random.Generator,
    feasibility: Sequence[Posterior] = (),
    fixed: Fixed | None = None,
    scale: float = 1.0,
) -> FloatArray:
    """Draw the simple regret of the incumbent from its posterior.

    Parameters
    ----------
    posterior : Posterior
    incumbent : Encoded
        One evaluated, feasible configuration.
    rng : numpy.random.Generator
    feasibility : sequence of Posterior
        Models of failures and of constraints. Each function has its own feasible configurations: those where functions
        drawn from these models succeed with probability 1/2 at least and violate no constraint.
    fixed : Fixed, optional
        Values that all configurations of the minimum have.
    scale : float
        Factor on the posterior standard deviations of the function, above 1 for a model that has been too certain.

    Returns
    -------
    (256,) float64
        In the user's units, at least 0.

    Raises
    ------
    InferenceError
        If a joint covariance is not positive definite up to rounding errors.
    """
    anchors, pool = anchors_of_minima(posterior, incumbent, rng, feasibility, fixed, scale)
    at_incumbent, values = _values(
        posterior, incumbent, anchors.encoded, pool.encoded, rng, feasibility, _LAST_DRAWS, scale
    )
    return np.asarray(np.maximum(at_incumbent - values.min(axis=1), 0.0))


def anchors_of_minima(
    posterior: Posterior,
    incumbent: Encoded,
    rng: np.random.Generator,
    feasibility: Sequence[Posterior] = (),
    fixed: Fixed | None = None,
    scale: float = 1.0,
) -> tuple[Candidates, Candidates]:
    """Return minima of drawn functions, and a pool of promising configurations; arguments as of `sample_regret`."""
    pool = _promising(posterior, candidates(posterior, rng, _CANDIDATES, fixed), feasibility, scale)
    anchors = pool[np.arange(min(_ANCHORS // 2, len(pool)))]
    for _ in range(_ROUNDS):
        values = _values(posterior, incumbent, anchors.encoded, pool.encoded, rng, feasibility, _DRAWS, scale)[1]
        lowest = np.unique(np.argmin(values, axis=1))
        nearby = pool.near(np.repeat(lowest, _PERTURBATIONS), rng, fixed)
        anchors = pool[lowest[:_ANCHORS]]
        pool = pool[_keep(values, lowest)]
        pool = pool.join(nearby)
    return anchors, pool


def _promising(posterior: Posterior, pool: Candidates, feasibility: Sequence[Posterior], scale: float) -> Candidates:
    """Return the candidates with the lowest confidence bounds, the lowest first; infeasible ones come last."""
    mean, variance = posterior.predictor(_LAST_DRAWS).moments(pool.encoded)
    bound = (mean - 2 * scale * np.sqrt(variance)).mean(axis=0)
    models = [Feasibility.of(model, pool.encoded[:0], _LAST_DRAWS) for model in feasibility]
    log_probability = sum((model.log_probability(pool.encoded) for model in models), np.zeros(len(pool)))
    return pool[np.lexsort((bound, log_probability < np.log(_DOUBTFUL)))[:_POOL]]


def _keep(values: FloatArray, lowest: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the rows of the minima and of the configurations with the lowest confidence bounds, by (k, m) values."""
    finite = np.where(np.isfinite(values), values, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of configurations that no function admits
        bound = np.nanmean(finite, axis=0) - 2 * np.nanstd(finite, axis=0)
    promising = np.argsort(np.where(np.isfinite(bound), bound, np.inf), kind="stable")[:_POOL]
    return np.union1d(lowest, promising)


def _values(
    posterior: Posterior,
    incumbent: Encoded,
    anchors: Encoded,
    pool: Encoded,
    rng: np.random.Generator,
    feasibility: Sequence[Posterior],
    n_draws: int,
    scale: float,
) -> tuple[FloatArray, FloatArray]:
    """Return new functions at the incumbent (k,) and at the pool (k, m), smaller is better, infinite if infeasible."""
    both = incumbent.concatenate(anchors)
    drawn = draw_values(posterior, both, incumbent.concatenate(pool), rng, n_draws, _FUNCTIONS, scale)
    values = np.copysign(1.0, posterior.y_sd) * drawn
    for model in feasibility:
        values[:, 1:][infeasible(model, draw_values(model, both, pool, rng, n_draws, _FUNCTIONS))] = np.inf
    return values[:, 0], values[:, 1:]


def draw_values(
    posterior: Posterior,
    anchors: Encoded,
    new: Encoded,
    rng: np.random.Generator,
    n_draws: int,
    n_functions: int,
    scale: float = 1.0,
) -> FloatArray:
    """Return k functions at m configurations, (k, m), of ``n_draws`` draws of the hyperparameters."""
    draws = min(n_draws, posterior.n_draws)
    values = draw_functions(posterior, anchors, draws, rng, each=-(-n_functions // draws), scale=scale)(new)
    return values[np.arange(n_functions) % len(values)]
