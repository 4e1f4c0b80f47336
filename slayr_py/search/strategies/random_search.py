"""Random search over expressions."""

from __future__ import annotations

import numpy as np

from slayr_py.kernels.expressions import Node
from slayr_py.search.expressions import sample_expression
from slayr_py.search.task import Candidate, Rounds, Task

MOST_REPEATS = 1000
"""Successive draws of known expressions after which the search stops."""


def random_search(task: Task) -> Rounds:
    """Propose expressions drawn from the grammar's prior, see :func:`~slayr_py.search.expressions.sample_expression`.

    The expressions of an earlier search come first. No expression is proposed twice. The search stops when
    `MOST_REPEATS` successive draws are known expressions.
    """
    rng = np.random.default_rng(task.seed)
    known: set[Node] = set(task.first)
    if task.first:
        yield [Candidate(node) for node in task.first]
    step = 0
    while batch := _new_expressions(rng, task, known):
        known.update(batch)
        yield [Candidate(node, step=step) for node in batch]
        step += 1


def _new_expressions(rng: np.random.Generator, task: Task, known: set[Node]) -> list[Node]:
    """Return up to a batch of new expressions; fewer if too many draws are known."""
    batch: list[Node] = []
    repeats = 0
    while len(batch) < task.batch and repeats < MOST_REPEATS:
        node = sample_expression(rng, task.base, task.max_leaves)
        if node in known or node in batch:
            repeats += 1
        else:
            batch.append(node)
            repeats = 0
    return batch
