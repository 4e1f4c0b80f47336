"""A synthetic score of expressions, and a run of a strategy without fits."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
from ConfigSpace import ConfigurationSpace
from testing_kernels import Learned

from slayr_py.kernels.expressions import Leaf, Node, Product, Sum, canonical, leaves, parse, spell
from slayr_py.search.expressions import base_leaves
from slayr_py.search.task import Candidate, ScoredExpression, Task
from slayr_py.space import Encoder


def task(names=("SE", "RQ", "PER", "LIN"), dimensions=1, n=40, **options) -> Task:
    """A search on points of the unit cube; scores of expressions do not depend on the targets."""
    encoder = Encoder(ConfigurationSpace({f"x{i + 1}": (0.0, 1.0) for i in range(dimensions)}))
    rng = np.random.default_rng(0)
    train = encoder.encode(rng.uniform(size=(n, dimensions)))
    defaults = {"base": base_leaves(encoder, names), "max_leaves": 6, "y": rng.standard_normal(n)}
    return Task(train=train, **defaults | options)


def given_kernel() -> Learned:
    """A kernel for ``given`` of a task."""
    return Learned()


def products(node: Node) -> list[Counter[Leaf]]:
    """Factors of each term of the expression when it is multiplied out."""
    if isinstance(node, Sum):
        return [factors for term in node.terms for factors in products(term)]
    if isinstance(node, Product):
        return [sum(parts, start=Counter()) for parts in product(*map(products, node.factors))]
    return [Counter([node])]


def likeness(target: str):
    """A score that is 0 for expressions equal to the target when multiplied out, and negative for others."""
    wanted = products(canonical(parse(target)))

    def score(node: Node) -> float:
        found = products(node)
        shared = sum(max((one & other).total() / (one | other).total() for other in found) for one in wanted)
        return shared - len(wanted) - 0.3 * abs(len(found) - len(wanted))

    return score


def run(strategy, task: Task, score, budget: int) -> list[tuple[Candidate, float]]:
    """Candidates and scores in the order of their evaluation."""
    table: list[tuple[Candidate, float]] = []
    rounds = strategy(task)
    try:
        batch = next(rounds)
        while len(table) < budget:
            evaluations = [ScoredExpression(c.node, c.expression, score(c.node)) for c in batch]
            table += [(c, e.score) for c, e in zip(batch, evaluations, strict=True)]
            batch = rounds.send(evaluations)
    except StopIteration:
        pass
    rounds.close()
    return table[:budget]


def check_table(table, task: Task) -> None:
    """Laws of every strategy."""
    nodes = [c.node for c, _ in table]
    assert len(set(nodes)) == len(nodes)
    seen: set[str] = set()
    step = 0
    for candidate, _ in table:
        assert candidate.node == canonical(candidate.node)
        assert parse(candidate.expression, task.given) == candidate.node
        assert len(leaves(candidate.node)) <= task.max_leaves
        assert candidate.parent is None or candidate.parent in seen
        assert candidate.step in (step, step + 1)
        step = candidate.step
        seen.add(spell(candidate.node))
