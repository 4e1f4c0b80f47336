"""Cross-validation of support vector machines and other estimators."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold, cross_validate as scikit_learns

import slayr_py as sl
from slayr_py import DataError, svm


def test_estimators_go_to_scikit_learn():
    X, y = load_iris(return_X_y=True)
    ours = svm.cross_validate(svm.KernelSVC(), X, y, cv=4, scoring=["accuracy", "f1_macro"], seed=8)
    folds = StratifiedKFold(4, shuffle=True, random_state=8)
    theirs = scikit_learns(svm.KernelSVC(), X, y, cv=folds, scoring=["accuracy", "f1_macro"])
    for name in ("test_accuracy", "test_f1_macro"):
        np.testing.assert_array_equal(ours[name], theirs[name])
    assert len(svm.cross_validate(svm.KernelSVR(), X[:, 1:], X[:, 0])) == 5


def test_an_illegal_seed_is_refused():
    with pytest.raises(DataError, match="seed must be an integer >= 0, got -1"):
        svm.cross_validate(svm.KernelSVR(), np.ones((6, 1)), np.arange(6.0), seed=-1)


def test_a_gaussian_process_is_referred_to_its_own_functions():
    gp = sl.GaussianProcess(ConfigurationSpace({"x": (0.0, 1.0)}))
    with pytest.raises(
        DataError, match=r"GaussianProcess is not .* use GaussianProcess.cross_validate, or .*Regressor"
    ):
        svm.cross_validate(gp, gp.encoder.sobol(5, 0), np.ones(5))
