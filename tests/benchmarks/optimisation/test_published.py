"""The results of Oh et al. (2021) are compared from their own designs, on the page of the sources too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.common.data_problems import xgboost_digits
from benchmarks.common.problems import PROBLEMS
from benchmarks.common.published_results import published_design
from benchmarks.optimisation import published
from benchmarks.optimisation.runs import read_trials

TOP = Path(__file__).resolve().parents[3]


def test_designs_have_a_generator_for_each_parameter(data):
    space = xgboost_digits(data).space
    design = published_design("xgboost", space, 3)
    seeds = np.random.RandomState(3).randint(0, 2**31 - 2, 8)  # noqa: NPY002 (the paper's designs)
    first, depth, last = (np.random.RandomState(seeds[i]) for i in (0, 4, 7))  # noqa: NPY002
    assert [config["eta"] for config in design] == pytest.approx(10 ** first.uniform(-6, 0, 10), rel=1e-5)
    assert [config["max_depth"] for config in design] == list(1 + depth.randint(0, 10, 10))
    objectives = [("multi:softmax", "multi:softprob")[i] for i in last.randint(0, 2, 10)]
    assert [config["objective"] for config in design] == objectives
    assert all(space[name].legal_value(config[name]) for config in design for name in space)


def test_runs_start_from_the_designs_and_are_beside_the_printed_results(tmp_path, capsys):
    command = ["--problems", "func2c", "--samplers", "random", "--seeds", "2", "--budget", "25"]
    published.main([*command, "--output", str(tmp_path)])
    trials = read_trials(tmp_path, ["random"], "published")
    problem = PROBLEMS["func2c"]
    for seed, run in trials.groupby("seed"):
        design = published_design("func2c", problem.space, seed)
        assert list(run["value"][:10]) == [problem.objective(config) for config in design]
    best = trials.groupby("seed")["value"].min()
    near = (best - problem.minimum <= 0.001).sum()
    lines = capsys.readouterr().out.splitlines()
    assert "| ModLap, printed | 200 | -0.2063 ± 0.0000 |" in lines
    row = next(line for line in lines if line.startswith("| random, paper's design | 25 | "))
    assert float(row.split(" | ")[2].split()[0]) == pytest.approx(best.mean(), rel=1e-3)
    assert row.endswith(f", {near}/2 |")


def test_problems_without_their_data_and_samplers_without_designs_are_refused():
    with pytest.raises(SystemExit, match="nusvr need files"):
        published.main(["--problems", "nusvr"])
    with pytest.raises(SystemExit, match="smac cannot be given the designs"):
        published.main(["--samplers", "smac"])


def test_the_page_of_the_sources_has_the_stored_results():
    folder = TOP / "benchmarks" / "optimisation" / "results"
    page = (TOP / "docs" / "sources.md").read_text(encoding="utf-8")
    assert published.report(folder, published.SAMPLERS) in page, "copy the table of published --report"
