from __future__ import annotations

import pandas as pd
import pytest

from benchmarks.optimisation import mixed

pytestmark = pytest.mark.stan


def test_mixed(data, quick, tmp_path, capsys):
    arguments = [*quick, "--data", str(data), "--output", str(tmp_path), "--baselines", "random", "--kernels", "fm"]
    mixed.main([*arguments, "--problems", "func2c", "nusvr", "--figure", str(tmp_path / "figure.png")])
    printed = capsys.readouterr().out
    assert "8 to do" not in printed and "| func2c | fm, map |" in printed and "| nusvr | paper: ModLap |" in printed
    assert len(pd.read_csv(tmp_path / "mixed.csv")) == 2 * 2 * 2 * 12
    assert (tmp_path / "figure.png").stat().st_size > 0
    mixed.main([*arguments, "--problems", "func2c", "--report"])
    assert "runs to do" not in capsys.readouterr().out
    with pytest.raises(SystemExit, match="no problem"):
        mixed.main([*arguments, "--problems", "func9c"])
