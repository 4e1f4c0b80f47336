"""Minima of functions drawn from a posterior, each over its own feasible configurations.

The k-th functions drawn from the posterior of an objective and from the models of failures and constraints make one
joint draw, since these posteriors are independent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from slayr_py.acquisition.candidates import SIZES, Candidates
from slayr_py.acquisition.feasibility import infeasible
from slayr_py.inference import Posterior, draw_functions
from slayr_py.space import Encoded, Fixed, FloatArray

Functions = Callable[[Encoded], FloatArray]
"""Values of k functions at m configurations, (k, m)."""


def functions_of(
    posterior: Posterior, anchors: Encoded, rng: np.random.Generator, n_draws: int, count: int, scale: float = 1.0
) -> Functions:
    """Draw functions, jointly at the anchors, of at most ``n_draws`` draws of the hyperparameters.

    Their values are in the user's units. Beyond ``count``, functions are cut off; if the draws of a stack make fewer,
    some count twice.
    """
    draws = min(n_draws, posterior.n_draws)
    drawn = draw_functions(posterior, anchors, draws, rng, each=-(-count // draws), scale=scale)
    rows = np.arange(count) % len(drawn)
    return lambda new: drawn(new)[rows]


@dataclass(frozen=True)
class JointDraws:
    """Functions of an objective, smaller is better, with their feasible configurations.

    Attributes
    ----------
    sign : float
        -1 if larger values are better in the user's units.
    functions : callable
        Of the objective, in the user's units.
    models : tuple of (Posterior, callable)
        Models of failures and of constraints, and the functions drawn from them.
    """

    sign: float
    functions: Functions
    models: tuple[tuple[Posterior, Functions], ...]

    @classmethod
    def draw(
        cls,
        posterior: Posterior,
        anchors: Encoded,
        rng: np.random.Generator,
        feasibility: Sequence[Posterior],
        n_draws: int,
        count: int,
        scale: float = 1.0,
    ) -> JointDraws:
        """Draw functions from all posteriors; ``scale`` is a factor on the deviations of the objective's."""
        functions = functions_of(posterior, anchors, rng, n_draws, count, scale)
        models = [(model, functions_of(model, anchors, rng, n_draws, count)) for model in feasibility]
        return cls(float(np.copysign(1.0, posterior.y_sd)), functions, tuple(models))

    def at(self, new: Encoded) -> FloatArray:
        """Return the values at m configurations that are feasible, (k, m)."""
        return self.sign * self.functions(new)

    def __call__(self, new: Encoded) -> FloatArray:
        """Return the values at m configurations, (k, m), infinite where they are infeasible."""
        values = self.at(new)
        for model, functions in self.models:
            values[infeasible(model, functions(new))] = np.inf
        return values


def descend(
    draws: JointDraws,
    found: Candidates,
    lowest: FloatArray,
    rng: np.random.Generator,
    fixed: Fixed | None,
    rounds: int,
    perturbations: int,
    sizes: tuple[float, float] = SIZES,
) -> tuple[Candidates, FloatArray]:
    """Improve the minima of k functions by perturbations of all of them, of which each function takes its best.

    Parameters
    ----------
    draws : JointDraws
    found : Candidates
        The k minima so far.
    lowest : (k,) float64
        Values there.
    rng : numpy.random.Generator
    fixed : Fixed, optional
        Values that all minima have.
    rounds, perturbations : int
        Number of rounds, and of perturbations of each minimum in a round.
    sizes : (float, float)
        Range of the decimal logarithm of a perturbation's standard deviation on the unit cube.
    """
    for _ in range(rounds):
        near = found.near(np.repeat(np.arange(len(found)), perturbations), rng, fixed, sizes)
        if not len(near):  # forbidden clauses exclude all of them
            continue
        values = draws(near.encoded)
        best = np.argmin(values, axis=1)
        lower = values[np.arange(len(best)), best]
        rows = np.where(lower < lowest, len(found) + best, np.arange(len(found)))
        found = found.concatenate(near)[rows]
        lowest = np.minimum(lower, lowest)
    return found, lowest
