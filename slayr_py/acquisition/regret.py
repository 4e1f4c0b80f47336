r"""Posterior of the regret: what is still to be gained over the incumbent.

For a function f drawn from the posterior, the simple regret of the incumbent x+ is f(x+) - min f over the feasible
configurations. Its distribution over draws answers when to stop: once P(regret < epsilon) is large enough (Wilson 2024,
"Stopping Bayesian optimization with probabilistic regret bounds", NeurIPS).

The minimum is taken over a pool of configurations. It starts with those of a search, grows near the minima of drawn
functions for a few rounds, and the last functions are drawn jointly at the minima found.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from slayr_py.acquisition.candidates import Candidates, candidates, perturbed
from slayr_py.inference import Posterior, StackedPosterior
from slayr_py.inference.functions import draw_functions
from slayr_py.space import Encoded, Encoder, Fixed
from slayr_py.space.dimension import FloatArray

_FUNCTIONS = 256
_DRAWS = 32  # of the hyperparameters; each has several functions
_POOL = 1000
_ANCHORS = 200
_ROUNDS = 3
_PERTURBATIONS = 3  # of each minimum in every round


def sample_regret(
    posterior: Posterior | StackedPosterior,
    incumbent: Encoded,
    rng: np.random.Generator,
    conditions: Sequence[Posterior] = (),
    fixed: Fixed | None = None,
) -> FloatArray:
    """Draw the simple regret of the incumbent from its posterior.

    Parameters
    ----------
    posterior : Posterior or StackedPosterior
    incumbent : Encoded
        One evaluated, feasible configuration.
    rng : numpy.random.Generator
    conditions : sequence of Posterior
        Models of failures and of constraints. Each function has its own feasible configurations: those where functions
        drawn from these models succeed with probability 1/2 at least and violate no constraint.
    fixed : Fixed, optional
        Values that all configurations of the minimum have.

    Returns
    -------
    (256,) float64
        In the user's units, at least 0.

    Raises
    ------
    InferenceError
        If a joint covariance is not positive definite up to rounding errors.
    """
    encoder = posterior.encoder
    assert isinstance(encoder, Encoder)
    pool = candidates(posterior, rng, _POOL, fixed)
    anchors = _promising(posterior, pool)
    for _ in range(_ROUNDS):
        values = _values(posterior, incumbent, anchors.encoded, pool.encoded, rng, conditions)[1]
        minima = pool[np.unique(np.argmin(values, axis=1))]
        nearby = perturbed(encoder, np.repeat(minima.genotypes, _PERTURBATIONS, axis=0), rng)
        pool = pool.joined(Candidates.of(encoder, nearby, fixed))
        found = minima.joined(anchors)
        anchors = found[np.arange(min(_ANCHORS, len(found)))]
    at_incumbent, values = _values(posterior, incumbent, anchors.encoded, pool.encoded, rng, conditions)
    return np.asarray(np.maximum(at_incumbent - values.min(axis=1), 0.0))


def _promising(posterior: Posterior | StackedPosterior, pool: Candidates) -> Candidates:
    """Return the candidates with the best confidence bounds."""
    mean, variance = posterior.predictor(_DRAWS).moments(pool.encoded)
    bound = (mean - 2 * np.sqrt(variance)).mean(axis=0)
    return pool[np.argsort(bound, kind="stable")[: _ANCHORS // 2]]


def _values(
    posterior: Posterior | StackedPosterior,
    incumbent: Encoded,
    anchors: Encoded,
    pool: Encoded,
    rng: np.random.Generator,
    conditions: Sequence[Posterior],
) -> tuple[FloatArray, FloatArray]:
    """Return new functions at the incumbent (k,) and at the pool (k, m), smaller is better, infinite if infeasible."""
    both = incumbent.concatenate(anchors)
    drawn = _drawn(posterior, both, incumbent.concatenate(pool), rng)
    values = np.copysign(1.0, posterior.y_sd) * drawn
    for condition in conditions:
        values[:, 1:][_infeasible(condition, _drawn(condition, both, pool, rng))] = np.inf
    return values[:, 0], values[:, 1:]


def _drawn(
    posterior: Posterior | StackedPosterior, anchors: Encoded, new: Encoded, rng: np.random.Generator
) -> FloatArray:
    """Return `_FUNCTIONS` functions at m configurations."""
    draws = min(_DRAWS, posterior.n_draws)
    values = draw_functions(posterior, anchors, draws, rng, each=-(-_FUNCTIONS // draws))(new)
    return values[np.arange(_FUNCTIONS) % len(values)]


def _infeasible(condition: Posterior, values: FloatArray) -> NDArray[np.bool_]:
    return np.asarray(values < 0 if condition.model.likelihood == "probit" else values > 0)
