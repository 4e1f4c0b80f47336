"""Import path of the benchmarks, and small synthetic data files for them."""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


@pytest.fixture
def data(tmp_path):
    """Return a data folder whose files have the columns of the real ones."""
    folder = tmp_path / "data"
    (folder / "hpo").mkdir(parents=True)

    digits = [[label] * 64 + [label] for label in range(3) for _ in range(10)]
    pd.DataFrame(digits).to_csv(folder / "optdigits.csv", index=False)

    costs = (0.5, 1.0, 2.0)
    gammas = (0.01, 1.0)
    degrees = range(2, 11)
    rows = [("linear", c, None, None) for c in costs]
    rows += [("rbf", c, gamma, None) for c, gamma in product(costs, gammas)]
    rows += [("polynomial", c, None, degree) for c, degree in product(costs, degrees)]
    table = pd.DataFrame(rows, columns=["kernel", "C", "gamma", "degree"])
    table.insert(0, "dataset", "made-up")
    table["accuracy"] = np.linspace(0.5, 0.9, len(table))
    table.to_csv(folder / "hpo" / "svm_conditional_wistuba.csv", index=False)
    return folder
