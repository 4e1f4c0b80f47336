r"""Fronts drawn from the posteriors of several objectives: the hypervolume still to be gained.

The posteriors of the objectives are independent, so that the k-th functions drawn from each make one joint draw. Its
front is that of its values at the evaluated configurations and at a pool.

A front consists of many configurations, each of which gains little: a pool of scattered configurations, or of those
that may gain most, lacks most of the volume. Therefore the pool starts as an approximation of the fronts of the
posterior mean and of optimistic values, made in a few generations, each of which adds perturbations and keeps the
configurations that few others dominate. As for the regret of one objective (`slayr_py.acquisition.regret`), functions
are then drawn in each of a few rounds, and the pool keeps the configurations on their fronts and gets perturbations of
these. The last functions are drawn jointly at the evaluated configurations and at the fronts of the last round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from slayr_py.acquisition.boxes import hypervolume, non_dominated
from slayr_py.acquisition.candidates import Candidates, candidates
from slayr_py.acquisition.drawn_minima import functions_of
from slayr_py.acquisition.feasibility import Feasibility, infeasible, log_probability_of
from slayr_py.acquisition.identity import keys
from slayr_py.inference import Posterior, Predictor
from slayr_py.space import Encoded, Fixed, FloatArray

_FUNCTIONS = {2: 128, 3: 128, 4: 32}  # by the number of objectives: hypervolumes of four are expensive
_DRAWS = 16  # of the hyperparameters in a round, twice as many at the end; each has several functions
_CANDIDATES = 1000  # configurations from the whole space; chosen by hand, as all sizes below
_GENERATIONS = 6  # of configurations near the fronts of the mean and of optimistic values
_CHILDREN = 300  # perturbations in a generation or round
_POOL = 300  # promising configurations that are kept
_ANCHORS = 150  # configurations at which functions are drawn jointly, beside the evaluated ones
_ROUNDS = 3  # most rounds in which functions are drawn and the pool moves to their fronts
_EVALUATED = 100  # evaluated configurations that are drawn jointly
_OPTIMISTIC = (0.0, 1.0, 2.0)  # posterior standard deviations below the mean
_FEASIBLE = (0.5, 0.2, 0.05)  # least probability of feasibility of the configurations with these values


@dataclass(frozen=True)
class FrontDraws:
    """Fronts of functions drawn from the posteriors.

    Attributes
    ----------
    fronts : tuple of (n, p) float64
        For each of k joint draws, the non-dominated values of feasible configurations within the reference point.
    gained : (k,) float64
        Volume that each front dominates and the evaluated configurations of the same draw do not.
    """

    fronts: tuple[FloatArray, ...]
    gained: FloatArray


@dataclass(frozen=True)
class FrontTask:
    """Inputs of `draw_fronts`.

    Attributes
    ----------
    posteriors : sequence of Posterior
        One for each objective, of the same configurations.
    evaluated : (n,) int
        Rows of the feasible evaluated configurations.
    reference : (p,) float64
        Reference point, in the user's units.
    scales : sequence of float
        For each objective, a factor on the posterior standard deviations of its functions.
    feasibility : sequence of Posterior
        Models of failures and of constraints; each function has its own feasible configurations.
    fixed : Fixed, optional
        Values that all configurations have.
    infeasible : Encoded, optional
        Configurations that are known to be infeasible; none of them is on a front, except evaluated ones.
    """

    posteriors: Sequence[Posterior]
    evaluated: NDArray[np.intp]
    reference: FloatArray
    scales: Sequence[float]
    feasibility: Sequence[Posterior] = ()
    fixed: Fixed | None = None
    infeasible: Encoded | None = None

    @property
    def n_functions(self) -> int:
        """Number of joint draws."""
        return _FUNCTIONS[len(self.posteriors)]

    @property
    def signs(self) -> FloatArray:
        """1 for minimised objectives, -1 for maximised ones, (p,)."""
        return np.array([posterior.sign for posterior in self.posteriors])

    @property
    def limit(self) -> FloatArray:
        """The reference point, smaller is better."""
        return self.signs * self.reference

    def candidates(self, rng: np.random.Generator) -> Candidates:
        """Return promising configurations: near the fronts of the mean and of optimistic values."""
        front = self.evaluated[non_dominated(self._optimistic(self.posteriors[0].train[self.evaluated])[0])]
        pool = candidates(self.posteriors[0], rng, _CANDIDATES, self.fixed, front=front)
        values = self._optimistic(pool.encoded)
        for _ in range(_GENERATIONS):
            kept = _least_dominated(values, self.limit, rng)
            parents = pool[kept]
            pool = parents.join(parents.near(rng.integers(len(parents), size=_CHILDREN), rng, self.fixed)[0])
            new = self._optimistic(pool.encoded[np.arange(len(parents), len(pool))])
            values = np.concatenate([values[:, kept], new], axis=1)
        return pool[_least_dominated(values, self.limit, rng)]

    def relevant(self) -> Encoded:
        """Return the evaluated configurations that may be on the front of a draw."""
        train = self.posteriors[0].train[self.evaluated]
        centre, spread = self._centres_and_spreads(train)
        optimistic = centre - _OPTIMISTIC[-1] * spread
        pessimistic = centre + _OPTIMISTIC[-1] * spread
        worse = np.all(pessimistic[:, None] < optimistic, axis=2).any(axis=0)
        order = np.argsort(worse, kind="stable")
        return train[order[: min(_EVALUATED, max(1, int((~worse).sum())))]]

    def draw(
        self, known: Encoded, anchors: Encoded, pool: Encoded, rng: np.random.Generator, n_draws: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return new functions at known (k, n, p) and at other configurations (k, m, p); infinite if infeasible."""
        both = known.concatenate(anchors)
        new = known.concatenate(pool)
        drawn = []
        for posterior, sign, scale in zip(self.posteriors, self.signs, self.scales, strict=True):
            drawn.append(sign * functions_of(posterior, both, rng, n_draws, self.n_functions, scale)(new))
        values = np.stack(drawn, axis=2)
        n = len(known)
        for model in self.feasibility:
            functions = functions_of(model, both, rng, n_draws, self.n_functions)
            values[:, n:][infeasible(model, functions(pool))] = np.inf
        if self.infeasible is not None:
            excluded = set(keys(self.infeasible))
            values[:, n:][:, [key in excluded for key in keys(pool)]] = np.inf
        return values[:, :n], values[:, n:]

    @cached_property
    def _predictors(self) -> list[Predictor]:
        return [posterior.predictor(2 * _DRAWS) for posterior in self.posteriors]

    @cached_property
    def _models(self) -> list[Feasibility]:
        nothing = self.posteriors[0].train[:0]
        return [Feasibility.of(model, nothing, 2 * _DRAWS) for model in self.feasibility]

    def _centres_and_spreads(self, encoded: Encoded) -> tuple[FloatArray, FloatArray]:
        """Return posterior centres and standard deviations (m, p) in the user's units; smaller centres are better."""
        pairs = zip(self._predictors, self.posteriors, strict=True)
        predictions = [predictor.predict(encoded, p.y_mean, p.y_sd).centre_and_spread() for predictor, p in pairs]
        centres, spreads = zip(*predictions, strict=True)
        return self.signs * np.column_stack(centres), np.column_stack(spreads)

    def _optimistic(self, encoded: Encoded) -> FloatArray:
        """Return centres less some standard deviations, (3, m, p); infinite if too improbably feasible."""
        centre, spread = self._centres_and_spreads(encoded)
        values = centre - np.array(_OPTIMISTIC)[:, None, None] * spread
        if self.feasibility:
            values[log_probability_of(self._models, encoded) < np.log(_FEASIBLE)[:, None]] = np.inf
        return values


def draw_fronts(task: FrontTask, rng: np.random.Generator) -> FrontDraws:
    """Draw fronts of several objectives from the posteriors.

    Raises
    ------
    InferenceError
        If a joint covariance is not positive definite up to rounding errors.
    """
    known = task.relevant()
    pool = task.candidates(rng)
    anchors = pool[np.arange(min(_ANCHORS, len(pool)))]
    for _ in range(_ROUNDS):
        at_known, values = task.draw(known, anchors.encoded, pool.encoded, rng, _DRAWS)
        counts = _counts_on_fronts(at_known, values, task.limit)
        n = int((counts > 0).sum())
        if not n:  # no function improves on the evaluated configurations
            break
        pool = pool[np.argsort(-counts, kind="stable")[: max(n, _POOL)]]
        anchors = pool[np.arange(min(n, _ANCHORS))]
        pool = pool.join(pool.near(rng.integers(n, size=_CHILDREN), rng, task.fixed)[0])
    at_known, values = task.draw(known, anchors.encoded, pool.encoded, rng, 2 * _DRAWS)
    fronts = []
    gained = np.zeros(len(values))
    for k, (before, new) in enumerate(zip(at_known, values, strict=True)):
        both = np.vstack([before, new[_improving(before, new, task.limit)]])
        inside = both[np.all(both < task.limit, axis=1)]
        front = inside[non_dominated(inside)]
        gained[k] = hypervolume(front, task.limit) - hypervolume(before, task.limit)
        fronts.append(task.signs * front)
    return FrontDraws(tuple(fronts), np.maximum(gained, 0.0))


def _improving(known: FloatArray, new: FloatArray, limit: FloatArray) -> NDArray[np.intp]:
    """Return the rows of new values (m, p) that are non-dominated, also by known ones (n, p), and below the limit."""
    rows = np.flatnonzero(np.all(new < limit, axis=1))
    rows = rows[~np.any(np.all(known[:, None] <= new[rows], axis=2), axis=0)]
    return np.asarray(rows[non_dominated(new[rows])], dtype=np.intp)


def _counts_on_fronts(known: FloatArray, values: FloatArray, limit: FloatArray) -> NDArray[np.intp]:
    """Return on how many fronts each configuration of the pool is, (m,)."""
    counts = np.zeros(values.shape[1], dtype=np.intp)
    for before, new in zip(known, values, strict=True):
        counts[_improving(before, new, limit)] += 1
    return counts


def _least_dominated(values: FloatArray, limit: FloatArray, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return `_POOL` of m configurations: in the first layers by any of k kinds of values (k, m, p), the first before.

    A layer consists of the points that are non-dominated without those of earlier layers. Points that are not below the
    limit come last. Within a layer the order is random.
    """
    layers = np.full(values.shape[1], np.inf)
    for each in values:
        left = np.flatnonzero(np.all(each < limit, axis=1))
        taken = 0
        layer = 0
        while len(left) and taken < _POOL:
            front = non_dominated(each[left])
            layers[left[front]] = np.minimum(layers[left[front]], layer)
            taken += int(front.sum())
            left = left[~front]
            layer += 1
    return np.lexsort((rng.random(len(layers)), layers))[:_POOL]
