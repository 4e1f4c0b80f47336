"""Every benchmark from its command line to its table, with a small budget and point estimates."""

from __future__ import annotations

import calibration
import conditional
import mixed
import numpy as np
import optimisation
import pandas as pd
import pytest
import recording
import regression

pytestmark = pytest.mark.stan

QUICK = ["--seeds", "2", "--budget", "12", "--method", "map"]


def test_mixed(data, tmp_path, capsys):
    arguments = [*QUICK, "--data", str(data), "--output", str(tmp_path), "--baselines", "random", "--kernels", "fm"]
    mixed.main([*arguments, "--problems", "func2c", "nusvr", "--figure", str(tmp_path / "figure.png")])
    printed = capsys.readouterr().out
    assert "8 to do" not in printed and "| func2c | fm, map |" in printed and "| nusvr | paper: ModLap |" in printed
    assert len(pd.read_csv(tmp_path / "mixed.csv")) == 2 * 2 * 2 * 12
    assert (tmp_path / "figure.png").stat().st_size > 0
    mixed.main([*arguments, "--problems", "func2c", "--report"])
    assert "runs to do" not in capsys.readouterr().out
    with pytest.raises(SystemExit, match="no problem"):
        mixed.main([*arguments, "--problems", "func9c"])


def test_conditional(data, tmp_path, capsys):
    arguments = [*QUICK, "--data", str(data), "--output", str(tmp_path), "--baselines", "random"]
    conditional.main([*arguments, "--datasets", "made-up", "--problems", "jenatton", "svm made-up"])
    printed = capsys.readouterr().out
    for sampler in ("matern, map", "hierarchical, map", "fm-hierarchical, map", "random"):
        assert printed.count(f"| jenatton | {sampler} |") == (1 if sampler == "matern, map" else 2)
    assert "| svm made-up | random |" in printed


def test_calibration(tmp_path, capsys):
    arguments = ["--cases", "matern p = 0", "--output", str(tmp_path)]
    assert calibration.main([*arguments, "--replications", "2", "--figure", str(tmp_path / "figure.png")]) == 0
    first = pd.read_csv(tmp_path / "calibration.csv")
    assert len(first) == 2 and first["lengthscale[x]"].between(0, 99).all() and (first["ess"] > 50).all()
    assert (tmp_path / "figure.png").stat().st_size > 0
    calibration.main([*arguments, "--replications", "3"])
    assert "matern p = 0: 1 replications to do" in capsys.readouterr().out
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "calibration.csv")[:2], first)
    calibration.main([*arguments, "--report"])
    printed = capsys.readouterr().out
    assert "to do" not in printed and "| matern p = 0 | 3 |" in printed


def test_optimisation(tmp_path, capsys):
    optimisation.main(["--seeds", "1", "--budget", "3", "--samplers", "random", "--output", str(tmp_path)])
    assert "| hartmann6 | random |" in capsys.readouterr().out


def test_regression(data, tmp_path, capsys):
    arguments = ["--data", str(data), "--datasets", "servo", "--splits", "2", "--output", str(tmp_path)]
    regression.main([*arguments, "--kernels", "matern", "--method", "map"])
    rows = pd.read_csv(tmp_path / "regression.csv")
    assert rows["n_train"].tolist() == [24, 24]
    np.testing.assert_allclose(rows["nll"], rows["nll_one_normal"], rtol=1e-9)  # a mixture of one
    regression.main([*arguments, "--kernels", "matern", "--max-train", "20", "--chains", "1", "--warmup", "50"])
    rows = pd.read_csv(tmp_path / "regression.csv")
    assert rows["n_train"].tolist() == [24, 24, 20, 20]
    assert (rows["nll"] != rows["nll_one_normal"])[2:].all()
    printed = capsys.readouterr().out
    assert "| servo, n = 20 | matern, nuts 1x(50+100) | 2 |" in printed and "| servo | paper: ModLap |" in printed


def test_recording(capsys, monkeypatch):
    monkeypatch.setattr(recording, "one_core", lambda: None)  # for the whole process
    assert recording.main(["--sizes", "6", "--repeats", "1", "--methods", "map"]) == 0
    assert "ratio" in capsys.readouterr().out
    assert recording.main(["--replays", "1"]) == 0
    assert "identical: 1 of 1" in capsys.readouterr().out
