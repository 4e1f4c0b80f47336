"""Greedy search with a beam: compositional kernel search."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from itertools import islice

from slayr_py.kernels.expressions import Node
from slayr_py.search.expressions import expansions
from slayr_py.search.task import Candidate, Evaluation, Rounds, Task

ROUNDS_WITHOUT_GAIN = 3
"""Successive rounds without a better expression after which the search stops."""

BATCHES_AT_ONCE = 2
"""Batches that are proposed between two looks at the scores."""


def greedy(task: Task) -> Rounds:
    """Expand the best expressions, round by round [1]_.

    The first round is all base kernels; their scores order the moves that use them. Each later round expands the best
    ``task.beam`` expressions that have new neighbours, see :func:`~slayr_py.search.expressions.expansions`. They take
    turns, the best one first, and so do the kinds of their moves, so that a budget that ends within a round leaves none
    of them out.

    A round ends when nothing new is left of it, or as soon as an expression is better than all before. The next round
    then expands that one too, and the remaining neighbours of the others keep their places. Rounds have up to hundreds
    of candidates: otherwise a budget of 100 fits would not reach large expressions. The search stops after
    `ROUNDS_WITHOUT_GAIN` rounds without a better expression, and when no evaluated expression has new neighbours.

    References
    ----------
    .. [1] D. Duvenaud et al. (2013), Structure discovery in nonparametric regression through compositional kernel
       search.
    """
    frontier = _Frontier(task)
    frontier.learn((yield frontier.start()))
    frontier.order_base()
    step = idle = 0
    while idle < ROUNDS_WITHOUT_GAIN and (beam := frontier.beam()):
        step += 1
        gained = False
        while not gained and (candidates := frontier.candidates(beam, step)):
            gained = frontier.learn((yield candidates))
        idle = 0 if gained else idle + 1


class _Frontier:
    """Evaluated expressions and those of their neighbours that were not proposed yet."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.base = list(task.base)
        self.proposed: set[Node] = set()
        self.evaluated: list[Evaluation] = []  # the best first; of equal ones, the first
        self.neighbours: dict[Node, deque[Node]] = {}

    def start(self) -> list[Candidate]:
        """Return the base kernels, after those of an earlier search."""
        return [self.propose(node, None, 0) for node in dict.fromkeys([*self.task.first, *self.task.base])]

    def learn(self, evaluations: Sequence[Evaluation]) -> bool:
        """Add evaluations, and return whether one is better than all before."""
        before = self.evaluated[0].score if self.evaluated else -math.inf
        self.evaluated = sorted([*self.evaluated, *evaluations], key=lambda one: -one.score)
        return bool(self.evaluated) and self.evaluated[0].score > before

    def order_base(self) -> None:
        """Sort the base kernels, the best first.

        With many parameters a budget reaches the moves of a few base kernels only, which should not be those of the
        first parameters.
        """
        score = {one.node: one.score for one in self.evaluated}
        self.base.sort(key=lambda leaf: -score[leaf])

    def beam(self) -> list[Evaluation]:
        """Return the best expressions that have new neighbours; none of those that failed."""
        promising = (one for one in self.evaluated if one.score > -math.inf and self.new_neighbours(one))
        return list(islice(promising, self.task.beam))

    def candidates(self, beam: Sequence[Evaluation], step: int) -> list[Candidate]:
        """Return up to `BATCHES_AT_ONCE` batches of neighbours, taken from each of the beam in turn."""
        found: list[Candidate] = []
        limit = BATCHES_AT_ONCE * self.task.batch
        while len(found) < limit and any(self.new_neighbours(one) for one in beam):
            for one in beam:
                if len(found) < limit and (queue := self.new_neighbours(one)):
                    found.append(self.propose(queue.popleft(), one.expression, step))
        return found

    def new_neighbours(self, one: Evaluation) -> deque[Node]:
        """Return the neighbours of an expression in the order of the moves, the first of which was not proposed yet."""
        if one.node not in self.neighbours:
            self.neighbours[one.node] = deque(expansions(one.node, self.base, self.task.max_leaves))
        queue = self.neighbours[one.node]
        while queue and queue[0] in self.proposed:
            queue.popleft()
        return queue

    def propose(self, node: Node, parent: str | None, step: int) -> Candidate:
        self.proposed.add(node)
        return Candidate(node, parent, step)
