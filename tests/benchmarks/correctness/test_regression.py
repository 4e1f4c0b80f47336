from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.correctness import regression

pytestmark = pytest.mark.stan


def test_regression(data, tmp_path, capsys):
    arguments = ["--data", str(data), "--datasets", "servo", "--splits", "2", "--output", str(tmp_path)]
    regression.main([*arguments, "--kernels", "matern", "--method", "map"])
    rows = pd.read_csv(tmp_path / "regression.csv")
    assert rows["n_train"].tolist() == [24, 24]
    np.testing.assert_allclose(rows["nll"], rows["nll_one_normal"], rtol=1e-9)  # a mixture of one component
    regression.main([*arguments, "--kernels", "matern", "--max-train", "20", "--chains", "1", "--warmup", "50"])
    rows = pd.read_csv(tmp_path / "regression.csv")
    assert rows["n_train"].tolist() == [24, 24, 20, 20]
    assert (rows["nll"] != rows["nll_one_normal"])[2:].all()
    printed = capsys.readouterr().out
    assert "| servo, n = 20 | matern, nuts 1x(50+100) | 2 |" in printed and "| servo | paper: ModLap |" in printed
