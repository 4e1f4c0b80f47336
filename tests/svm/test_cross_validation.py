"""Cross-validation of support vector machines, and of estimators with a method of their own."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold
from sklearn.model_selection import cross_validate as scikit_learns

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


def test_fit_options_are_rejected_for_estimators():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(DataError, match=r"\['chains'\] are options of a Gaussian process"):
        svm.cross_validate(svm.KernelSVR(), X, y, chains=2)


def test_an_estimator_with_its_own_cross_validation_gets_all_arguments():
    process = SimpleNamespace(cross_validate=lambda *arguments, **options: (arguments, options))
    given = {"cv": 3, "scoring": "rmse", "seed": 2, "progress": False, "level": 0.5, "chains": 2}
    assert svm.cross_validate(process, "configurations", "values", **given) == (("configurations", "values"), given)


def test_a_gaussian_process_checks_its_scores():
    gp = sl.GaussianProcess(ConfigurationSpace({"x": (0.0, 1.0)}))
    with pytest.raises(DataError, match="'rsme'; did you mean 'rmse'"):
        svm.cross_validate(gp, gp.encoder.sobol(5, 0), np.ones(5), scoring="rsme")
