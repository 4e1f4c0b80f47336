"""``slayr search``."""

from __future__ import annotations

import shlex

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from slayr_py.cli.app import app
from slayr_py.search import load

run = CliRunner().invoke


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = np.linspace(0, 4, 30)
    pd.DataFrame({"year": x, "ppm": 3 * x + np.sin(4 * np.pi * x), "extra": x**2}).to_csv("co2.csv", index=False)
    return tmp_path


def test_the_best_expressions_are_printed_and_saved(table):
    command = [
        "search",
        "co2.csv",
        "--target",
        "ppm",
        "--base",
        "SE,PER",
        "--budget",
        "5",
        "--restarts",
        "2",
        "-q",
        "--ignore",
        "extra",
    ]
    result = run(app, command)
    assert result.exit_code == 0, result.output
    assert "30 observations of ppm, 1 parameters" in result.output
    assert "best expressions of 5 fits" in result.output
    found = load(table / "co2_search" / "search.json")
    again = shlex.split(result.output.partition("posterior of the best one: ")[2])
    kernel = ["--kernel", found.best.expression]
    assert again == ["slayr", "fit", "co2.csv", "--target", "ppm", "--ignore", "extra", *kernel]
    assert len(pd.read_csv(table / "co2_search" / "fits.csv")) == 5
    assert (table / "co2_search" / "scores.png").stat().st_size > 1000
    assert (table / "co2_search" / "components.png").stat().st_size > 1000


def test_constant_targets_have_a_message(table):
    pd.DataFrame({"x": np.linspace(0, 1, 12), "y": 1.5}).to_csv("flat.csv", index=False)
    result = run(app, ["search", "flat.csv", "--target", "y", "--quiet"])
    assert result.exit_code == 0, result.output
    assert "every kernel explains them equally well" in " ".join(result.output.split())
    assert "best  SE" in result.output


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--target", "pmp"], "no column 'pmp'; did you mean 'ppm'?"),
        (["--target", "ppm", "--strategy", "gready"], "did you mean 'greedy'?"),
        (["--target", "ppm", "--base", "SE,PRE"], "unknown base kernel 'PRE'"),
        (["--target", "ppm", "--budget", "2"], "none on single parameters (option single)"),
    ],
)
def test_illegal_options_are_named(table, options, text):
    result = run(app, ["search", "co2.csv", *options])
    assert result.exit_code == 2
    assert text in " ".join(result.output.split())
