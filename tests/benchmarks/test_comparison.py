"""The comparison page has the numbers of the benchmarks."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import comparison
from benchmarks.common.problems import PROBLEMS
from benchmarks.optimisation.report import best_values
from benchmarks.optimisation.runs import read_trials

TOP = Path(__file__).resolve().parents[2]
PAGE = (TOP / "docs" / "comparison.md").read_text(encoding="utf-8")


def test_measured_tables_are_those_of_the_benchmarks():
    assert comparison.updated(PAGE) == PAGE, "run python -m benchmarks.comparison"


def test_means_are_those_of_the_stored_trials():
    samplers = ["slayr", "botorch", "optuna-gp", "optuna-tpe", "random"]
    trials = read_trials(TOP / "benchmarks" / "optimisation" / "results", samplers)
    best = best_values(trials[trials["problem"] == "hartmann6"], [25, 50]) - PROBLEMS["hartmann6"].minimum
    suite = comparison.suite()
    for sampler in samplers:
        row = suite[(suite["problem"] == "hartmann6") & (suite["sampler"] == sampler)].iloc[0]
        for budget in (25, 50):
            mean = best.xs(sampler, level="sampler")[budget].mean()
            assert comparison.number(row[f"at {budget}"]) == pytest.approx(mean, rel=5e-3)
