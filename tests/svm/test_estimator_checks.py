from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from slayr_py import svm

CHECKS = parametrize_with_checks(
    [
        svm.KernelFactorization(),
        svm.KernelFactorization(svm.Linear()),
        svm.KernelFactorization(svm.Matern(p=1), rank=0.9),
        # A weight of two and a repeated point have the same optimum; with the default tolerance the solver stops apart.
        svm.KernelSVC(tol=1e-12),
        svm.KernelSVR("laplacian", tol=1e-12),
        svm.KernelNuSVR("matern", tol=1e-12),
    ]
)


@pytest.mark.parametrize(
    CHECKS.args[0],
    # Scikit-learn itself makes polars frames of the output; its checks of them need polars.
    [row for row in CHECKS.args[1] if "polars" not in str(row[1])],
    **CHECKS.kwargs,
)
def test_scikit_learn_estimator_checks(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # scikit-learn skips its array-API check without it
    check(estimator)
