from __future__ import annotations

import pandas as pd
import pytest

from benchmarks.optimisation import suite

RUNS = ["--samplers", "random", "optuna-tpe", "--seeds", "2", "--budget", "12"]


def test_the_command_writes_one_file_per_sampler_and_prints_tables(data, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(suite, "DATASETS", ["made-up"])
    arguments = [*RUNS, "--data", str(data), "--output", str(tmp_path)]
    problems = ["--problems", "func2c", "jenatton", "nusvr", "svm made-up"]
    suite.main([*arguments, *problems, "--figure", str(tmp_path / "figure.png")])
    printed = capsys.readouterr().out
    assert "| svm made-up | optuna-tpe |" in printed and "| average rank | at 12 (4 problems) |" in printed
    assert len(pd.read_csv(tmp_path / "suite-random.csv")) == 4 * 2 * 12
    assert (tmp_path / "figure.png").stat().st_size > 0
    suite.main([*arguments, *problems, "--report"])
    printed = capsys.readouterr().out
    assert "runs of" not in printed and "| func2c | random |" in printed
    with pytest.raises(SystemExit, match="no problem"):
        suite.main([*arguments, "--problems", "func9c"])
