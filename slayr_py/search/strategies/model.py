"""Model-based search: Bayesian optimisation over expressions [1]_.

References
----------
.. [1] G. Malkomes, C. Schaff & R. Garnett (2016), Bayesian optimization for automated model selection.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from slayr_py.kernels.expressions import Node
from slayr_py.search.expressions import expansions, sample_expression
from slayr_py.search.strategies.affinity import Affinities
from slayr_py.search.strategies.surrogate import Surrogate, targets_of
from slayr_py.search.task import Candidate, Rounds, ScoredExpression, Task
from slayr_py.threads import one_thread

MOST_NEIGHBOURS = 40
"""Neighbours of each expression of the beam that are compared, drawn by the seed."""

N_DRAWS = 40
"""Draws from the grammar's prior that are compared."""

MOST_REPEATS = 1000
"""Draws of known expressions after which no more are looked for."""


def model(task: Task) -> Rounds:
    """Propose the expressions of the largest expected improvement under a Gaussian process over expressions.

    The first round is all base kernels, after the expressions of an earlier search. Then scores are regressed on
    expressions, see :class:`Affinities` and :class:`Surrogate`. Candidates are neighbours of the best ``task.beam``
    expressions that have new ones, and draws of the grammar's prior. Each round proposes ``task.batch`` of them, one
    after the other, with the predicted mean as the score of those chosen earlier in the round. The search ends when
    there is no candidate.
    """
    pool = _Pool(task)
    affinities = Affinities(task.train, task.y, task.given, task.seed)
    evaluated = list((yield [pool.propose(node, 0) for node in dict.fromkeys([*task.first, *task.base])]))
    step = 0
    while candidates := pool.candidates(evaluated):
        step += 1
        with one_thread():
            chosen = _choose(candidates, evaluated, affinities, task.batch)
        evaluated += yield [pool.propose(node, step) for node in chosen]


def _choose(
    candidates: Sequence[Node], evaluated: Sequence[ScoredExpression], affinities: Affinities, count: int
) -> list[Node]:
    """Return up to ``count`` candidates of the largest expected improvement."""
    known = [evaluation.node for evaluation in evaluated]
    targets = targets_of([evaluation.score for evaluation in evaluated])
    surrogate = Surrogate.fit(affinities.between(known, known), targets)
    cross = affinities.between(candidates, known)
    chosen: list[int] = []
    while len(chosen) < min(count, len(candidates)):
        gain = surrogate.expected_improvement(cross)
        gain[chosen] = -math.inf
        best = int(np.argmax(gain))
        chosen.append(best)
        surrogate = surrogate.given(cross[best], float(surrogate.predict(cross[[best]])[0][0]))
        cross = np.hstack([cross, affinities.between(candidates, [candidates[best]])])
    return [candidates[place] for place in chosen]


class _Pool:
    """Expressions that can be proposed next."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.rng = np.random.default_rng(task.seed)
        self.proposed: set[Node] = set()
        self.draws: list[Node] = []
        self.neighbours: dict[Node, list[Node]] = {}
        self.parents: dict[Node, str] = {}

    def candidates(self, evaluated: Sequence[ScoredExpression]) -> list[Node]:
        """Return new neighbours of the best expressions, and draws of the prior."""
        self.parents = {}
        expanded = 0
        for parent in sorted(evaluated, key=lambda evaluation: -evaluation.score):
            if expanded == self.task.beam or parent.score == -math.inf:
                break
            neighbours = self._new_neighbours(parent.node)
            expanded += bool(neighbours)
            for node in neighbours:
                self.parents.setdefault(node, parent.expression)
        self._draw()
        return list(dict.fromkeys([*self.parents, *self.draws]))

    def propose(self, node: Node, step: int) -> Candidate:
        self.proposed.add(node)
        return Candidate(node, self.parents.get(node), step)

    def _new_neighbours(self, node: Node) -> list[Node]:
        if node not in self.neighbours:
            neighbours = expansions(node, self.task.base, self.task.max_leaves)
            self.neighbours[node] = [neighbours[place] for place in self.rng.permutation(len(neighbours))]
        self.neighbours[node] = [near for near in self.neighbours[node] if near not in self.proposed]
        return self.neighbours[node][:MOST_NEIGHBOURS]

    def _draw(self) -> None:
        """Replace the draws that were proposed. Keep the others, since their affinities are known."""
        self.draws = [node for node in self.draws if node not in self.proposed]
        repeats = 0
        while len(self.draws) < N_DRAWS and repeats < MOST_REPEATS:
            node = sample_expression(self.rng, self.task.base, self.task.max_leaves)
            if node in self.proposed or node in self.draws:
                repeats += 1
            else:
                self.draws.append(node)
