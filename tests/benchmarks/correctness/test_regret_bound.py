"""The regret of the confidence bound and its theoretical bound, by hand and on a few functions."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.correctness import regret_bound
from benchmarks.correctness.regret_bound import SIDE, minimise, runs


def test_one_evaluation_by_hand(monkeypatch):
    monkeypatch.setattr(regret_bound, "EVALUATIONS", 1)
    f = np.array([2.0, -1.0, 0.5])
    run = minimise(f, np.diag([4.0, 1.0, 1.0]), 3, 0.1, np.random.default_rng(0))
    beta = 2 * np.log(3 * np.pi**2 / 0.6)
    information = 0.5 * np.log(401)  # the first candidate has the largest variance
    assert run.share == pytest.approx(3.0 / np.sqrt(8 / np.log(101) * beta * information))
    assert run.is_inside
    assert not minimise(f + 20, np.eye(3), 3, 0.1, np.random.default_rng(0)).is_inside


def test_the_bound_needs_the_number_of_candidates():
    theorem = runs(6, SIDE**2, 0.1)
    notes = runs(6, 2, 0.5)
    assert all(run.share < 1 and run.is_inside for run in theorem)
    assert not any(run.is_inside for run in notes)
    assert all(few.share > many.share for few, many in zip(notes, theorem, strict=True))
