from __future__ import annotations

import pytest

from benchmarks.common.data_problems import svm_table, xgboost_digits
from slayr_py.space import Encoder


def test_an_svm_table_has_every_configuration_of_its_space(data):
    space, objective, minimum, *_ = svm_table(data, "made-up")
    values = [objective(config) for config in Encoder(space).sobol(256, 0)]
    assert min(values) == minimum == pytest.approx(0.1)
    assert objective({"kernel": "linear", "log2_C": -1}) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="no data set 'absent'"):
        svm_table(data, "absent")


def test_xgboost_learns_the_training_part(data):
    pytest.importorskip("xgboost", reason="XGBoost is not installed")
    space, objective, *_ = xgboost_digits(data)
    config = {"max_depth": 3, "booster": "gbtree", "grow_policy": "depthwise", "objective": "multi:softmax"}
    config |= {"eta": 0.5, "gamma": 1e-4, "subsample": 1.0, "lambda": 1.0}
    assert set(space) == set(config)
    assert objective(config) == 0.0
