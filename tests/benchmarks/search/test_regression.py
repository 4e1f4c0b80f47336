from __future__ import annotations

import numpy as np
import pytest

from benchmarks.search import cks, regression


def test_splits():
    train, test = regression.split("diabetes", 100, 3)
    assert (len(train), len(test)) == (80, 10) and not set(train) & set(test)
    train, test = regression.split("mauna-future", 100, 3)
    assert train.max() < test.min() and len(test) == 20


def test_folds_of_cks():
    rows = [cks.fold_rows(167, fold) for fold in range(10)]
    assert [len(test) for _, test in rows] == [16] * 9 + [23]
    assert np.array_equal(np.concatenate([test for _, test in rows]), np.arange(167))
    assert sorted(cks.matlab_order(167)) == list(range(167))
    assert np.random.RandomState(5489).random_sample() == pytest.approx(0.8147, abs=1e-4)  # rand of a new MATLAB
