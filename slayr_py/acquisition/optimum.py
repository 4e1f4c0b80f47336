"""Posterior of the optimum: where functions drawn from the posterior have their minima.

Functions are drawn jointly at anchors, which are the minima of earlier functions, as for the regret
(:mod:`slayr_py.acquisition.regret`). The minimum of each of them is then refined by perturbations: every function takes
the best of the candidates of all functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slayr_py.acquisition.candidates import Candidates, candidates
from slayr_py.acquisition.feasibility import infeasible
from slayr_py.acquisition.regret import anchors_of_minima
from slayr_py.inference import Posterior, draw_functions
from slayr_py.space import Encoded, Fixed, FloatArray

_DRAWS = 64  # of the hyperparameters
_EACH = 4  # functions for each of them
_REFINEMENTS = 6
_PERTURBATIONS = 4
_ELSEWHERE = 1000  # candidates from the whole space


class Optima(NamedTuple):
    """Minima of k functions drawn from a posterior.

    Attributes
    ----------
    encoded : Encoded
        k configurations, the minimum of each function.
    values : (k,) float64
        Values there, in the user's units.
    at_evaluated : (k, n) float64
        Values at n evaluated configurations; infinite where they are infeasible, as larger values are worse.
    pool : Encoded
        m candidates.
    regrets : (k, m) float64
        Regrets of the candidates under each function, at least 0 and infinite where infeasible.
    """

    encoded: Encoded
    values: FloatArray
    at_evaluated: FloatArray
    pool: Encoded
    regrets: FloatArray


def sample_optima(
    posterior: Posterior,
    evaluated: Encoded,
    rng: np.random.Generator,
    feasibility: Sequence[Posterior] = (),
    fixed: Fixed | None = None,
) -> Optima:
    """Draw functions from the posterior and find the minimum of each, the maximum if larger values are better.

    Parameters
    ----------
    posterior : Posterior
    evaluated : Encoded
        n evaluated configurations.
    rng : numpy.random.Generator
    feasibility : sequence of Posterior
        Models of failures and constraints, of which functions are drawn too: see `sample_regret`.
    fixed : Fixed, optional
        Values that all minima have.

    Raises
    ------
    InferenceError
        If a joint covariance is not positive definite up to rounding errors.
    """
    anchors = anchors_of_minima(posterior, evaluated[:1], rng, feasibility, fixed)[0]
    both = evaluated.concatenate(anchors.encoded)
    draw = _functions(posterior, both, rng, feasibility)
    pool = anchors.join(candidates(posterior, rng, _ELSEWHERE, fixed))
    values = draw(pool.encoded)
    found = pool[np.argmin(values, axis=1)]
    lowest = values.min(axis=1)
    for _ in range(_REFINEMENTS):
        near = found.near(np.repeat(np.arange(len(found)), _PERTURBATIONS), rng, fixed)
        at_near = draw(near.encoded)
        best = np.argmin(at_near, axis=1)
        lower = at_near[np.arange(len(best)), best]
        rows = np.where(lower < lowest, len(found) + best, np.arange(len(found)))
        together = Candidates(np.vstack([found.genotypes, near.genotypes]), found.encoded.concatenate(near.encoded))
        found = together[rows]
        lowest = np.minimum(lower, lowest)
    known = np.flatnonzero(np.isfinite(lowest))  # functions with a feasible configuration
    found = found[known]
    lowest = lowest[known]
    pool = pool.join(found)
    regrets = np.maximum(draw(pool.encoded)[known] - lowest[:, None], 0.0)
    sign = np.copysign(1.0, posterior.y_sd)
    return Optima(found.encoded, sign * lowest, draw(evaluated)[known], pool.encoded, regrets)


def _functions(
    posterior: Posterior, anchors: Encoded, rng: np.random.Generator, feasibility: Sequence[Posterior]
) -> Callable[[Encoded], FloatArray]:
    """Return k functions, smaller is better, which are infinite where they are infeasible."""
    drawn = draw_functions(posterior, anchors, min(_DRAWS, posterior.n_draws), rng, _each(posterior))
    success = [
        (model, draw_functions(model, anchors, min(_DRAWS, model.n_draws), rng, _each(model))) for model in feasibility
    ]
    rows: NDArray[np.intp] = np.arange(_DRAWS * _EACH)
    sign = np.copysign(1.0, posterior.y_sd)

    def values(new: Encoded) -> FloatArray:
        found = sign * drawn(new)
        found = found[rows % len(found)]
        for model, functions in success:
            at = functions(new)
            found = np.where(infeasible(model, at[rows % len(at)]), np.inf, found)
        return np.asarray(found)

    return values


def _each(posterior: Posterior) -> int:
    return -(-_DRAWS * _EACH // min(_DRAWS, posterior.n_draws))
