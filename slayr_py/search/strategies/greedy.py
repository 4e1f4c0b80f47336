"""Greedy search with a beam: compositional kernel search."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from itertools import islice

from slayr_py.kernels.expressions import Node
from slayr_py.search.expressions import expansions
from slayr_py.search.task import Candidate, Rounds, ScoredExpression, Task

ROUNDS_WITHOUT_GAIN = 3
"""Successive rounds without a better expression after which the search stops."""

BATCHES_AT_ONCE = 2
"""Batches that are proposed before the scores are compared."""


def greedy(task: Task) -> Rounds:
    """Expand the best expressions, round by round [1]_.

    The first round is all base kernels; their scores order the moves that use them. Each later round expands the best
    ``task.beam`` expressions that have new neighbours, see :func:`~slayr_py.search.expressions.expansions`. The
    expressions take turns, the best first, and so do the kinds of moves. A budget that ends within a round therefore
    covers all of them.

    A round ends when it has no new candidates left, or as soon as an expression is better than all before. The next
    round expands that expression too, and the remaining neighbours of the others keep their places. A round can have
    hundreds of candidates: if rounds were always completed, 100 fits would not reach large expressions. The search
    stops after `ROUNDS_WITHOUT_GAIN` rounds without a better expression, and when no evaluated expression has new
    neighbours.

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
    """Evaluated expressions, and their neighbours that were not proposed yet."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.base = list(task.base)
        self.proposed: set[Node] = set()
        self.evaluated: list[ScoredExpression] = []  # the best first; of equal ones, the first
        self.neighbours: dict[Node, deque[Node]] = {}

    def start(self) -> list[Candidate]:
        """Return the expressions of an earlier search, then the base kernels."""
        return [self.propose(node, None, 0) for node in dict.fromkeys([*self.task.first, *self.task.base])]

    def learn(self, evaluations: Sequence[ScoredExpression]) -> bool:
        """Add evaluations, and return whether one is better than all before."""
        before = self.evaluated[0].score if self.evaluated else -math.inf
        self.evaluated = sorted([*self.evaluated, *evaluations], key=lambda evaluation: -evaluation.score)
        return bool(self.evaluated) and self.evaluated[0].score > before

    def order_base(self) -> None:
        """Sort the base kernels, the best first.

        With many parameters, the budget covers the moves of a few base kernels only, which should be the best ones.
        """
        score = {evaluation.node: evaluation.score for evaluation in self.evaluated}
        self.base.sort(key=lambda leaf: -score[leaf])

    def beam(self) -> list[ScoredExpression]:
        """Return the best expressions that have new neighbours; omit failed ones."""
        fitted = (evaluation for evaluation in self.evaluated if evaluation.score > -math.inf)
        promising = (evaluation for evaluation in fitted if self.new_neighbours(evaluation))
        return list(islice(promising, self.task.beam))

    def candidates(self, beam: Sequence[ScoredExpression], step: int) -> list[Candidate]:
        """Return up to `BATCHES_AT_ONCE` batches of neighbours, taken from each expression of the beam in turn."""
        candidates: list[Candidate] = []
        limit = BATCHES_AT_ONCE * self.task.batch
        while len(candidates) < limit and any(map(self.new_neighbours, beam)):
            for parent in beam:
                if len(candidates) < limit and (queue := self.new_neighbours(parent)):
                    candidates.append(self.propose(queue.popleft(), parent.expression, step))
        return candidates

    def new_neighbours(self, parent: ScoredExpression) -> deque[Node]:
        """Return the neighbours of an expression in the order of the moves; omit old ones at the front."""
        if parent.node not in self.neighbours:
            self.neighbours[parent.node] = deque(expansions(parent.node, self.base, self.task.max_leaves))
        queue = self.neighbours[parent.node]
        while queue and queue[0] in self.proposed:
            queue.popleft()
        return queue

    def propose(self, node: Node, parent: str | None, step: int) -> Candidate:
        self.proposed.add(node)
        return Candidate(node, parent, step)
