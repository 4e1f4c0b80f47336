"""Random search over expressions."""

from __future__ import annotations

from testing_search import check_table, likeness, run, task

from slayr_py.search.strategies.random_search import random_search

SCORE = likeness("LIN * PER + SE")


def test_draws_obey_the_laws_of_strategies():
    search = task(max_leaves=5)
    table = run(random_search, search, SCORE, 120)
    assert len(table) == 120
    check_table(table, search)
    assert all(candidate.parent is None for candidate, _ in table)


def test_draws_depend_on_the_seed_only():
    first, again, other = (run(random_search, task(seed=seed), SCORE, 40) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_search_ends_when_all_expressions_are_known():
    table = run(random_search, task(["RQ", "PER"], max_leaves=2, batch=3), SCORE, 100)
    # RQ, PER, and three sums and products each
    assert len(table) == 8
