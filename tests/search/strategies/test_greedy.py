"""Greedy search with a beam."""

from __future__ import annotations

import math

import pytest
from testing_search import check_table, likeness, run, task

from slayr_py.kernels.expressions import Leaf, parse, spell
from slayr_py.search.expressions import expansions
from slayr_py.search.strategies.greedy import BATCHES_AT_ONCE, greedy
from slayr_py.search.task import ScoredExpression


@pytest.mark.parametrize(
    ("target", "dimensions", "budget"),
    [("LIN * PER + SE", 1, 60), ("(LIN + RQ) * PER + SE", 1, 120), ("SE[x1] + SE[x2] * PER[x1]", 2, 400)],
)
def test_a_planted_optimum_is_found(target, dimensions, budget):
    search = task(dimensions=dimensions)
    table = run(greedy, search, likeness(target), budget)
    check_table(table, search)
    assert max(score for _, score in table) == 0


def test_the_first_round_is_all_base_kernels():
    search = task(dimensions=3)
    first = next(greedy(search))
    assert [c.node for c in first] == list(search.base)
    assert {(c.parent, c.step) for c in first} == {(None, 0)}


def evaluations(batch, score):
    return [ScoredExpression(c.node, c.expression, score(c.node)) for c in batch]


def test_the_beam_takes_turns_and_the_best_begins():
    scores = {"SE": 3.0, "PER": 2.0, "LIN": 1.0}
    rounds = greedy(task(beam=2, batch=3))
    first = next(rounds)
    second = rounds.send(evaluations(first, lambda node: scores.get(spell(node), 0.0)))
    assert len(second) == BATCHES_AT_ONCE * 3
    assert [c.parent for c in second] == ["SE", "PER"] * 3
    assert {c.step for c in second} == {1}


def test_moves_use_the_best_base_kernels_first():
    rounds = greedy(task(["SE", "RQ"], dimensions=9, beam=1, batch=30))
    second = rounds.send(evaluations(next(rounds), lambda node: {"SE": 3.0, "RQ[x9]": 2.0}.get(spell(node), 0.0)))
    assert "RQ[x9] + SE" in {c.expression for c in second[:15]}


def test_a_better_expression_is_expanded_at_once():
    rounds = greedy(task(batch=2))
    second = rounds.send(evaluations(next(rounds), lambda node: 0.0))
    best = second[1].node
    third = rounds.send(evaluations(second, lambda node: float(node == best)))
    assert third[0].parent == spell(best)
    assert third[0].step == 2
    assert third[0].node in expansions(best, task().base)


def test_a_search_without_gain_ends_after_three_rounds():
    search = task(beam=1)
    table = run(greedy, search, lambda node: -float(node != Leaf("SE")), 10_000)
    assert table[-1][0].step == 3
    parents = {c.parent for c, _ in table if c.step == 1}
    assert parents == {"SE"}
    neighbours = {c.node for c, _ in table if c.step == 1} | set(search.base)
    assert set(expansions(Leaf("SE"), search.base)) <= neighbours


def test_failed_expressions_are_not_expanded():
    search = task()
    table = run(greedy, search, lambda node: 0.0 if node == Leaf("PER") else -math.inf, 1000)
    assert {c.parent for c, _ in table} == {None, "PER"}
    assert len(run(greedy, search, lambda node: -math.inf, 1000)) == len(search.base)


def test_a_small_language_is_exhausted():
    search = task(["RQ", "PER"], max_leaves=2)
    found = {c.expression for c, _ in run(greedy, search, lambda node: -float(len(spell(node))), 1000)}
    assert found == {"RQ", "PER", *(f"{pair[0]} {sign} {pair[1]}" for sign in "+*" for pair in PAIRS)}


PAIRS = [("PER", "PER"), ("PER", "RQ"), ("RQ", "RQ")]


def test_the_search_depends_on_scores_only():
    score = likeness("LIN * PER + SE")
    assert run(greedy, task(seed=1), score, 60) == run(greedy, task(seed=2), score, 60)
    assert parse("SE") in task().base
