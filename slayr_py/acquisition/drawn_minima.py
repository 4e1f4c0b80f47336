"""Minima of functions drawn from a posterior, each over its own feasible configurations.

The k-th functions drawn from the posterior of an objective and from the models of failures and constraints make one
joint draw, since these posteriors are independent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from slayr_py.acquisition.candidates import SIZES, Candidates
from slayr_py.acquisition.feasibility import infeasible
from slayr_py.acquisition.identity import keys
from slayr_py.inference import DrawnFunctions, Exact, Posterior, draw_functions
from slayr_py.space import Encoded, Fixed, FloatArray


@dataclass(frozen=True)
class Functions:
    """k functions that were drawn from a posterior, in the user's units.

    Attributes
    ----------
    drawn : DrawnFunctions
    rows : (k,) int
        Their places among those that were drawn.
    """

    drawn: DrawnFunctions
    rows: NDArray[np.intp]

    def __call__(self, new: Encoded) -> FloatArray:
        """Return the values at m configurations, (k, m)."""
        return self.drawn(new)[self.rows]

    def some(self, functions: slice) -> Functions:
        """Return some of the functions, without the others' draws."""
        return Functions(*self.drawn.some(self.rows[functions]))


def functions_of(
    posterior: Posterior,
    anchors: Encoded,
    rng: np.random.Generator,
    n_draws: int,
    count: int,
    scale: float = 1.0,
    exact: Exact | None = None,
) -> Functions:
    """Draw functions, jointly at the anchors, of at most ``n_draws`` draws of the hyperparameters.

    Beyond ``count``, functions are cut off; if the draws of a stack make fewer, some count twice.
    """
    draws = min(n_draws, posterior.n_draws)
    drawn = draw_functions(posterior, anchors, draws, rng, each=-(-count // draws), scale=scale, exact=exact)
    return Functions(drawn, np.arange(count) % len(drawn))


@dataclass(frozen=True)
class JointDraws:
    """Functions of an objective, smaller is better, with their feasible configurations.

    Attributes
    ----------
    sign : float
        -1 if larger values are better in the user's units.
    functions : Functions
        Of the objective.
    models : tuple of (Posterior, Functions)
        Models of failures and of constraints, and the functions drawn from them.
    known : mapping of bytes to float
        Values that all functions have, smaller is better, by the key of a configuration: see `knowing`.
    """

    sign: float
    functions: Functions
    models: tuple[tuple[Posterior, Functions], ...]
    known: Mapping[bytes, float] = field(default_factory=dict)

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
        exact: Exact | None = None,
    ) -> JointDraws:
        """Draw functions from all posteriors; ``scale`` and ``exact`` are as in `draw_functions`, of the objective."""
        functions = functions_of(posterior, anchors, rng, n_draws, count, scale, exact)
        models = [(model, functions_of(model, anchors, rng, n_draws, count)) for model in feasibility]
        return cls(posterior.sign, functions, tuple(models))

    def knowing(self, encoded: Encoded, values: FloatArray) -> JointDraws:
        """Return the functions with exact values (n,), in the user's units, at n configurations.

        What a model with noise does not explain of an exact value is then a detail of the function at this
        configuration only. Of several values of one configuration, also of earlier calls, the best counts.
        """
        known = dict(self.known)
        for key, value in zip(keys(encoded), (self.sign * values).tolist(), strict=True):
            known[key] = min(value, known.get(key, value))
        return replace(self, known=known)

    def excluding(self, infeasible: Encoded | None) -> JointDraws:
        """Return the functions without known infeasible configurations, unless they have exact values."""
        if infeasible is None:
            return self
        return self.knowing(infeasible, np.full(len(infeasible), self.sign * np.inf))

    def at(self, new: Encoded) -> FloatArray:
        """Return the values at m configurations that are feasible, (k, m)."""
        values = self.sign * self.functions(new)
        for column, key in enumerate(keys(new) if self.known else ()):
            if key in self.known:
                values[:, column] = self.known[key]
        return values

    def __call__(self, new: Encoded, below: FloatArray | float = np.inf) -> FloatArray:
        """Return the values at m configurations, (k, m), infinite where infeasible or at least ``below``.

        ``below`` is one number, or has one for each function, (k, 1). Models of feasibility are evaluated only at
        configurations where a value is still finite.
        """
        values = self.at(new)
        values[values >= below] = np.inf
        for model, functions in self.models:
            columns = np.flatnonzero(np.isfinite(values).any(axis=0))
            if len(columns):
                excluded = infeasible(model, functions(new[columns]))
                values[:, columns] = np.where(excluded, np.inf, values[:, columns])
        return values

    def some(self, functions: slice) -> JointDraws:
        """Return some of the functions with their feasible configurations."""
        models = tuple((model, of_model.some(functions)) for model, of_model in self.models)
        return replace(self, functions=self.functions.some(functions), models=models)


def descend(
    draws: JointDraws,
    found: Candidates,
    lowest: FloatArray,
    rng: np.random.Generator,
    fixed: Fixed | None,
    rounds: int,
    perturbations: int,
    sizes: tuple[float, float] = SIZES,
    together: int | None = None,
) -> tuple[Candidates, FloatArray]:
    """Improve the minima of k functions by perturbations, of which each function takes its best.

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
    together : int, optional
        Number of consecutive functions that try the perturbations of each other's minima; all by default.
    """
    count = len(lowest)
    size = count if together is None else together
    blocks = [slice(first, first + size) for first in range(0, count, size)]
    groups = [(block, draws.some(block) if size < count else draws) for block in blocks]
    lowest = lowest.copy()
    for _ in range(rounds):
        near, origins = found.near(np.repeat(np.arange(count), perturbations), rng, fixed, sizes)
        rows = np.arange(count)
        for block, functions in groups:
            # Forbidden clauses exclude some perturbations, and perhaps all of them.
            first, last = np.searchsorted(origins, [block.start, block.stop])
            if first == last:
                continue
            values = functions(near.encoded[first:last], lowest[block, None])
            best = np.argmin(values, axis=1)
            lower = values[np.arange(len(best)), best]
            rows[block] = np.where(lower < lowest[block], count + first + best, rows[block])
            lowest[block] = np.minimum(lower, lowest[block])
        found = found.concatenate(near)[rows]
    return found, lowest
