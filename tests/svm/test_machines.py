from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, NuSVR

from slayr_py import DataError, svm

KERNELS = [svm.Linear(), svm.Polynomial(2, coef0=1.0), svm.RBF(0.05), svm.Laplacian(0.05), svm.Matern(1, 5.0)]
TIGHT = 1e-8


def split(load):
    X, y = load(return_X_y=True)
    train, test, y_train, y_test = train_test_split(X, y, random_state=0)
    scaler = StandardScaler().fit(train)
    return scaler.transform(train), scaler.transform(test), y_train, y_test


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_decisions_agree_with_svc(load, kernel):
    train, test, y, _ = split(load)
    theirs = SVC(kernel="precomputed", tol=TIGHT).fit(kernel(train), y)
    ours = svm.KernelSVC(kernel, tol=TIGHT).fit(train, y)
    gram = kernel(test, train)
    assert np.array_equal(ours.predict(test), theirs.predict(gram))
    np.testing.assert_allclose(ours.decision_function(test), theirs.decision_function(gram), rtol=1e-3, atol=1e-6)
    assert ours.machine_.n_support_.tolist() == theirs.n_support_.tolist()


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize(
    ("own", "theirs"),
    [
        (svm.KernelSVR(C=10.0, epsilon=5.0), SVR(C=10.0, epsilon=5.0)),
        (svm.KernelNuSVR(C=10.0, nu=0.4), NuSVR(C=10.0, nu=0.4)),
    ],
    ids=["SVR", "NuSVR"],
)
def test_values_agree_with_svr(own, theirs, kernel):
    train, test, y, _ = split(load_diabetes)
    wanted = theirs.set_params(kernel="precomputed", tol=TIGHT).fit(kernel(train), y).predict(kernel(test, train))
    np.testing.assert_allclose(own.set_params(kernel=kernel, tol=TIGHT).fit(train, y).predict(test), wanted, rtol=1e-3)


@pytest.mark.parametrize(
    ("machine", "error", "match"),
    [
        (svm.KernelSVC("sigmoid"), DataError, "'sigmoid'"),
        (svm.KernelSVC("poly"), DataError, "'poly'"),
        (svm.KernelSVC(rank=0), DataError, "got 0"),
        (svm.KernelSVC(C=-1.0), ValueError, r"-1\.0"),
        (svm.KernelSVR(epsilon=-1.0), ValueError, r"-1\.0"),
        (svm.KernelNuSVR(nu=1.5), ValueError, r"1\.5"),
    ],
)
def test_invalid_parameters_raise(machine, error, match):
    with pytest.raises(error, match=match):
        machine.fit([[0.0], [1.0], [2.0]], [0, 1, 1])
