r"""Fronts drawn from the posteriors of several objectives: the hypervolume still to be gained.

The posteriors of the objectives are independent, so that the k-th functions drawn from each make one joint draw. Its
front is that of its values at the evaluated configurations and at a pool. As for the regret of one objective
(`slayr_py.acquisition.regret`), the pool starts with promising candidates; in each of a few rounds, functions are
drawn, and the pool keeps the configurations on their fronts, gets neighbours of these, and loses others that are not
promising. The last functions are drawn jointly at the evaluated configurations and at the fronts of the last round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slayr_py.acquisition.boxes import hypervolume, non_dominated, non_dominated_boxes, volumes_gained
from slayr_py.acquisition.candidates import Candidates, candidates, perturb
from slayr_py.acquisition.feasibility import infeasible
from slayr_py.acquisition.regret import draw_values
from slayr_py.inference import Posterior
from slayr_py.space import Encoded, Fixed, FloatArray

_FUNCTIONS = {2: 128, 3: 128, 4: 32}  # by the number of objectives: hypervolumes of four are expensive
_DRAWS = 16
_CANDIDATES = 1000
_POOL = 300  # promising configurations that are kept
_ANCHORS = 150
_ROUNDS = 3
_EVALUATED = 100  # evaluated configurations that are drawn jointly
_DEVIATIONS = 2.0  # posterior standard deviations between the mean and an optimistic value


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
    """What fronts are drawn of.

    Attributes
    ----------
    posteriors : sequence of Posterior
        One for each objective, of the same configurations.
    evaluated : (n,) int
        Rows of the feasible evaluated configurations.
    reference : (p,) float64
        Reference point, in the user's units.
    feasibility : sequence of Posterior
        Models of failures and of constraints; each function has its own feasible configurations.
    fixed : Fixed, optional
        Values that all configurations have.
    scales : sequence of float, optional
        For each objective, a factor on the posterior standard deviations of its functions.
    """

    posteriors: Sequence[Posterior]
    evaluated: NDArray[np.intp]
    reference: FloatArray
    feasibility: Sequence[Posterior] = ()
    fixed: Fixed | None = None
    scales: Sequence[float] | None = None

    @property
    def n_functions(self) -> int:
        """Number of joint draws."""
        return _FUNCTIONS[len(self.posteriors)]

    @property
    def signs(self) -> FloatArray:
        """1 for minimised objectives, -1 for maximised ones, (p,)."""
        return np.array([np.copysign(1.0, posterior.y_sd) for posterior in self.posteriors])

    @property
    def limit(self) -> FloatArray:
        """The reference point, smaller is better."""
        return self.signs * self.reference

    def candidates(self, rng: np.random.Generator) -> Candidates:
        """Return promising configurations, the best first."""
        first = self.posteriors[0]
        pool = candidates(first, rng, _CANDIDATES, self.fixed, front=self.evaluated)
        optimistic, _ = self._bounds(pool.encoded)
        known = self._bounds(first.train[self.evaluated])[0]
        return pool[_largest(volumes_gained(non_dominated_boxes(known, self.limit), optimistic), _POOL)]

    def relevant(self) -> Encoded:
        """Return the evaluated configurations that may be on the front of a draw."""
        train = self.posteriors[0].train[self.evaluated]
        optimistic, pessimistic = self._bounds(train)
        worse = np.all(pessimistic[:, None] < optimistic, axis=2).any(axis=0)
        order = np.argsort(worse, kind="stable")
        return train[order[: min(_EVALUATED, max(1, int((~worse).sum())))]]

    def draw(
        self, known: Encoded, anchors: Encoded, pool: Encoded, rng: np.random.Generator, n_draws: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return new functions at known (k, n, p) and at other configurations (k, m, p); infinite if infeasible."""
        scales = [1.0] * len(self.posteriors) if self.scales is None else self.scales
        both = known.concatenate(anchors)
        new = known.concatenate(pool)
        drawn = []
        for posterior, sign, scale in zip(self.posteriors, self.signs, scales, strict=True):
            drawn.append(sign * draw_values(posterior, both, new, rng, n_draws, self.n_functions, scale))
        values = np.stack(drawn, axis=2)
        n = len(known)
        for model in self.feasibility:
            values[:, n:][infeasible(model, draw_values(model, both, pool, rng, n_draws, self.n_functions))] = np.inf
        return values[:, :n], values[:, n:]

    def _bounds(self, encoded: Encoded) -> tuple[FloatArray, FloatArray]:
        """Return optimistic and pessimistic values (m, p), smaller is better."""
        centres, spreads = zip(*(p.predict(encoded).centre_and_spread() for p in self.posteriors), strict=True)
        centre = self.signs * np.column_stack(centres)
        spread = _DEVIATIONS * np.column_stack(spreads)
        return centre - spread, centre + spread


def draw_fronts(task: FrontTask, rng: np.random.Generator) -> FrontDraws:
    """Draw fronts of several objectives from the posteriors.

    Raises
    ------
    InferenceError
        If a joint covariance is not positive definite up to rounding errors.
    """
    encoder = task.posteriors[0].encoder
    known = task.relevant()
    pool = task.candidates(rng)
    anchors = pool[np.arange(min(_ANCHORS, len(pool)))]
    for _ in range(_ROUNDS):
        at_known, values = task.draw(known, anchors.encoded, pool.encoded, rng, _DRAWS)
        counts = _counts_on_fronts(at_known, values, task.limit)
        on_fronts = np.argsort(-counts, kind="stable")[: min(_ANCHORS, int((counts > 0).sum()))]
        if not len(on_fronts):  # no function improves on the evaluated configurations
            break
        nearby = perturb(encoder, np.repeat(pool.genotypes[on_fronts], 2, axis=0), rng)
        anchors = pool[on_fronts]
        others = np.flatnonzero(counts == 0)[: _POOL - len(on_fronts)]
        pool = pool[np.concatenate([on_fronts, others])].join(Candidates.of(encoder, nearby, task.fixed))
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


def _largest(values: FloatArray, n: int) -> NDArray[np.intp]:
    return np.argsort(-values, kind="stable")[:n]
