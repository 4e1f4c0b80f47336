r"""Posterior of the regret: the possible gain over the incumbent.

For a function f drawn from the posterior, the simple regret of the incumbent x+ is f(x+) - min f over the feasible
configurations. Its distribution over draws answers when to stop: once P(regret < epsilon) is large enough (Wilson 2024,
"Stopping Bayesian optimization with probabilistic regret bounds", NeurIPS).

The minimum is taken over a pool of configurations. It starts with the most promising candidates of a search. In each of
a few rounds, functions are drawn, and the pool keeps their minima, gets neighbours of these, and loses configurations
that are not promising. The last functions are drawn jointly at the minima of the last round. The minimum of each is
refined by perturbations, most of all with constraints. Where one is active at the minimum, a function falls linearly
up to the border of its feasible configurations, and a pool lacks as much of the regret as it is coarse.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from slayr_py.acquisition.candidates import SIZES, Candidates, candidates
from slayr_py.acquisition.drawn_minima import JointDraws, descend
from slayr_py.acquisition.feasibility import blocks_of, log_probability_feasible
from slayr_py.inference import Posterior
from slayr_py.space import Encoded, Fixed, FloatArray
from slayr_py.threads import ignored_warnings

_FUNCTIONS = 256  # in a round and at the end; the standard error of a probability of 1/2 is about 0.03
_DRAWS = 16  # of the hyperparameters in a round; each has several functions
_LAST_DRAWS = 32  # of the hyperparameters at the end
_CANDIDATES = 1000  # from the whole space; chosen by hand, as all sizes below
_POOL = 400  # promising configurations that are kept
_DOUBTFUL = 0.05  # probability of feasibility below which a configuration comes last
_ANCHORS = 200  # minima at which the next functions are drawn jointly
_ROUNDS = 4  # in which functions are drawn and the pool moves to their minima
_PERTURBATIONS = 3  # of each minimum in every round
_INSIDE = (10, 1, SIZES)  # arguments of the refinement: rounds, perturbations of each minimum in a round, their sizes
_AT_BORDERS = (30, 1, (-6.0, -1.0))  # with models of feasibility


def sample_regret(
    posterior: Posterior,
    incumbent: Encoded,
    rng: np.random.Generator,
    feasibility: Sequence[Posterior] = (),
    fixed: Fixed | None = None,
    scale: float = 1.0,
    excluded: Encoded | None = None,
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
    excluded : Encoded, optional
        Configurations that are known to be infeasible, or not to be better than the incumbent, by their exact values:
        the minimum is at none of them, except the incumbent.

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
    joint = incumbent.concatenate(anchors.encoded)
    draws = JointDraws.draw(posterior, joint, rng, feasibility, _LAST_DRAWS, _FUNCTIONS, scale)
    at_incumbent = draws.at(incumbent)[:, 0]
    draws = draws.excluding(excluded)
    values = draws(pool.encoded)
    # The incumbent is feasible, whatever the functions say.
    values = np.column_stack([at_incumbent, values])
    found = Candidates.at(incumbent, rng).concatenate(pool)[np.argmin(values, axis=1)]
    lowest = descend(draws, found, values.min(axis=1), rng, fixed, *(_AT_BORDERS if feasibility else _INSIDE))[1]
    return np.asarray(at_incumbent - lowest)


def anchors_of_minima(
    posterior: Posterior,
    incumbent: Encoded,
    rng: np.random.Generator,
    feasibility: Sequence[Posterior],
    fixed: Fixed | None,
    scale: float,
) -> tuple[Candidates, Candidates]:
    """Return minima of drawn functions, and a pool of promising configurations; arguments as of `sample_regret`."""
    pool = _promising(posterior, candidates(posterior, rng, _CANDIDATES, fixed), feasibility, scale)
    anchors = pool[np.arange(min(_ANCHORS // 2, len(pool)))]
    for _ in range(_ROUNDS):
        joint = incumbent.concatenate(anchors.encoded)
        values = JointDraws.draw(posterior, joint, rng, feasibility, _DRAWS, _FUNCTIONS, scale)(pool.encoded)
        lowest = np.unique(np.argmin(values, axis=1))
        nearby, _ = pool.near(np.repeat(lowest, _PERTURBATIONS), rng, fixed)
        anchors = pool[lowest[:_ANCHORS]]
        pool = pool[_keep(values, lowest)]
        pool = pool.join(nearby)
    return anchors, pool


def _promising(posterior: Posterior, pool: Candidates, feasibility: Sequence[Posterior], scale: float) -> Candidates:
    """Return the candidates with the lowest confidence bounds, the lowest first; infeasible ones come last."""
    moments = map(posterior.predictor(_LAST_DRAWS).moments, blocks_of(pool.encoded))
    bound = np.concatenate([(mean - 2 * scale * np.sqrt(variance)).mean(axis=0) for mean, variance in moments])
    log_probability = log_probability_feasible(feasibility, pool.encoded, _LAST_DRAWS)
    return pool[np.lexsort((bound, log_probability < np.log(_DOUBTFUL)))[:_POOL]]


def _keep(values: FloatArray, lowest: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the rows of the minima and of the configurations with the lowest confidence bounds, by (k, m) values."""
    finite = np.where(np.isfinite(values), values, np.nan)
    with ignored_warnings(RuntimeWarning):  # of configurations that no function admits
        bound = np.nanmean(finite, axis=0) - 2 * np.nanstd(finite, axis=0)
    promising = np.argsort(np.where(np.isfinite(bound), bound, np.inf), kind="stable")[:_POOL]
    return np.union1d(lowest, promising)
