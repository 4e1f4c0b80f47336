from __future__ import annotations

import pandas as pd
import pytest

from benchmarks.correctness import calibration

pytestmark = pytest.mark.stan


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
