from __future__ import annotations

import pandas as pd
import pytest

from benchmarks.common.problems import PROBLEMS
from benchmarks.optimisation import batch
from benchmarks.optimisation.runs import read_trials, run_all

SAME = ["problem", "seed", "number", "value", "params"]
SLAYR = "slayr:method=map"


@pytest.mark.stan
def test_an_interrupted_batch_is_made_again(tmp_path):
    problems = {"branin": PROBLEMS["branin"]}
    for folder, budgets in {"whole": [12], "parts": [9, 12]}.items():
        for budget in budgets:
            run_all(problems, SLAYR, 1, budget, tmp_path / folder, name="batch5", batch=5)
    whole, parts = (read_trials(tmp_path / folder, [SLAYR], "batch5") for folder in ("whole", "parts"))
    assert len(whole) == 12
    pd.testing.assert_frame_equal(parts[SAME], whole[SAME])


def test_the_command_compares_sizes(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(batch, "one_core", lambda: None)
    arguments = ["--samplers", "random", "--problems", "branin", "--seeds", "2", "--budget", "12"]
    batch.main([*arguments, "--output", str(tmp_path)])
    assert {path.name for path in tmp_path.glob("*.csv")} == {"batch1-random.csv", "batch5-random.csv"}
    printed = capsys.readouterr().out
    assert "| branin | random | 1 |" in printed and "| branin | random | 5 |" in printed
    batch.main(["--samplers", "random", "--times", "12", "--seeds", "1"])
    assert "| 12 | random |" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="hebo cannot be asked for a batch"):
        batch.main(["--samplers", "hebo"])
