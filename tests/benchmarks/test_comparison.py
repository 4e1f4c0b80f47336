"""The comparison page names versions, has a cell for every tool and feature, and the numbers of the benchmarks."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

import slayr_py as sl
from benchmarks import comparison
from benchmarks.common.problems import PROBLEMS
from benchmarks.optimisation.report import best_values
from benchmarks.optimisation.runs import read_trials

TOP = Path(__file__).resolve().parents[2]
PAGE = (TOP / "docs" / "comparison.md").read_text(encoding="utf-8")
PEERS = ["Ax", "SMAC3", "HEBO", "SMT", "Trieste", "BayBE", "Emukit", "ProcessOptimizer"]
TOOLS = ["slayr_py", "Optuna GPSampler", "Optuna TPESampler", *PEERS]


def rows(text: str) -> list[list[str]]:
    """Return the cells of the only table of a text, the head first and without the line below it."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [cells[0], *cells[2:]]


VERSIONS = {tool: (version, day) for tool, version, day in rows(PAGE.partition("\n## ")[0])[1:]}


def test_every_tool_has_a_version_and_a_date():
    assert list(VERSIONS) == TOOLS
    compared = date.fromisoformat(re.search(r"as they were on (\S+)\.", PAGE)[1])
    for version, day in VERSIONS.values():
        assert re.search(r"[\w-]+ \d+\.\d+(\.\d+)?", version)
        assert date(2020, 1, 1) < date.fromisoformat(day) <= compared
    assert VERSIONS["slayr_py"][0] == f"slayr-py {sl.__version__}"


def test_measured_tables_are_those_of_the_benchmarks():
    assert comparison.updated(PAGE) == PAGE, "run python -m benchmarks.comparison"


def test_means_are_those_of_the_stored_trials():
    samplers = ["slayr", "optuna-gp", "optuna-tpe", "smac", "random"]
    trials = read_trials(TOP / "benchmarks" / "optimisation" / "results", samplers)
    best = best_values(trials[trials["problem"] == "hartmann6"], [25, 50]) - PROBLEMS["hartmann6"].minimum
    suite = comparison.suite()
    for sampler in samplers:
        row = suite[(suite["problem"] == "hartmann6") & (suite["sampler"] == sampler)].iloc[0]
        for budget in (25, 50):
            mean = best.xs(sampler, level="sampler")[budget].mean()
            assert comparison.number(row[f"at {budget}"]) == pytest.approx(mean, rel=5e-3)
