"""Posterior of the optimum: where functions drawn from the posterior have their minima.

Functions are drawn jointly at anchors, which are the minima of earlier functions, as for the regret
(:mod:`slayr_py.acquisition.regret`). The minimum of each of them is then refined by perturbations: every function takes
the best of the candidates of its draw's functions. Those of all functions would cost as many covariances for each draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from slayr_py.acquisition.candidates import Candidates, candidates
from slayr_py.acquisition.drawn_minima import JointDraws, descend
from slayr_py.acquisition.identity import distinct
from slayr_py.acquisition.regret import anchors_of_minima
from slayr_py.inference import Exact, Posterior
from slayr_py.space import Encoded, Fixed, FloatArray

_DRAWS = 64  # of the hyperparameters
_FUNCTIONS = 256  # several for each draw; the standard error of a probability of 1/2 is about 0.03
_REFINEMENTS = 10  # rounds that refine each minimum; chosen by hand
_PERTURBATIONS = 16  # of each minimum in a round; chosen by hand
_PERTURBATIONS_PER_DRAW = 4  # the most for each draw: functions of few draws share many; chosen by hand
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
        Values at n evaluated configurations; larger values are worse.
    pool : Encoded
        m candidates; the evaluated configurations are among them.
    regrets : (k, m) float64
        Regrets of the candidates under each function, at least 0 and infinite where infeasible.
    draws : JointDraws
        The functions.
    fixed : Fixed or None
        Values that the minima have.
    """

    encoded: Encoded
    values: FloatArray
    at_evaluated: FloatArray
    pool: Encoded
    regrets: FloatArray
    draws: JointDraws
    fixed: Fixed | None


def sample_optima(
    posterior: Posterior,
    evaluated: Encoded,
    rng: np.random.Generator,
    feasibility: Sequence[Posterior] = (),
    fixed: Fixed | None = None,
    scale: float = 1.0,
    exact: FloatArray | None = None,
    infeasible: Encoded | None = None,
) -> Optima:
    """Draw functions from the posterior and find the minimum of each, the maximum if larger values are better.

    Parameters
    ----------
    posterior : Posterior
    evaluated : Encoded
        n evaluated, feasible configurations, n >= 1; they are feasible, whatever the functions of ``feasibility`` say.
    rng : numpy.random.Generator
    feasibility : sequence of Posterior
        Models of failures and constraints, of which functions are drawn too: see `sample_regret`.
    fixed : Fixed, optional
        Values that all minima have.
    scale : float
        Factor on the posterior standard deviations of the function, as of `sample_regret`.
    exact : (n,) float64, optional
        Values of the evaluated configurations, in the user's units, if they have no noise. All functions have them, so
        that no minimum is worse than the best of them, on which they are conditioned.
    infeasible : Encoded, optional
        Configurations that are known to be infeasible, beside ``exact`` values: none of them is a minimum, except
        evaluated ones.

    Raises
    ------
    InferenceError
        If a joint covariance is not positive definite up to rounding errors.
    """
    anchors = anchors_of_minima(posterior, evaluated[:1], rng, feasibility, fixed, scale)[0]
    both = evaluated.concatenate(anchors.encoded)
    best = None if exact is None else _best(posterior, evaluated, exact)
    draws = JointDraws.draw(posterior, both, rng, feasibility, _DRAWS, _FUNCTIONS, scale, best)
    if exact is not None:
        draws = draws.knowing(evaluated, exact)
    draws = draws.excluding(infeasible)
    at_evaluated = draws.at(evaluated)
    rows = distinct(evaluated)
    pool = Candidates.at(evaluated[rows], rng, fixed).join(anchors).join(candidates(posterior, rng, _ELSEWHERE, fixed))
    values = np.column_stack([at_evaluated[:, rows], draws(pool.encoded[len(rows) :])])
    found = pool[np.argmin(values, axis=1)]
    n_draws = min(_DRAWS, posterior.n_draws)
    perturbations = min(_PERTURBATIONS, _PERTURBATIONS_PER_DRAW * n_draws)
    together = -(-_FUNCTIONS // n_draws)  # the functions of one draw, whose covariances are computed together
    found, lowest = descend(
        draws, found, values.min(axis=1), rng, fixed, _REFINEMENTS, perturbations, together=together
    )
    every = pool.join(found).encoded
    regrets = np.maximum(np.column_stack([values, draws(every[len(pool) :])]) - lowest[:, None], 0.0)
    return Optima(found.encoded, draws.sign * lowest, at_evaluated, every, regrets, draws, fixed)


def _best(posterior: Posterior, evaluated: Encoded, exact: FloatArray) -> Exact:
    row = int(np.argmin(posterior.sign * exact))
    return Exact(evaluated[[row]], float(exact[row]))
