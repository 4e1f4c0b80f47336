from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.spatial.distance import cdist

from benchmarks.common import mixture
from slayr_py.svm.leave_one_out import ridge


def data(n: int = 25) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.random((n, 2))
    return x, np.sin(6 * x[:, 0]) + x[:, 1] + rng.normal(0, 0.05, n)


def test_gradient_is_that_of_finite_differences():
    x, y = data(12)
    args = cdist(x, x), y - y.mean()
    at = np.array([0.3, -0.2, 0.1, -1.0, -0.5, -0.7, -2.0])
    error = check_grad(
        lambda z: mixture._loo_mse(z, *args)[0], lambda z: mixture._loo_mse(z, *args)[1], at, epsilon=1e-6
    )
    assert error < 1e-5 * np.linalg.norm(mixture._loo_mse(at, *args)[1])


def test_tuned_error_is_that_of_the_machine_and_better_than_the_first_guess():
    x, y = data()
    tuned = mixture.tuned_mixture(x, y, starts=3)
    standard = (y - y.mean()) / y.std(ddof=1)
    assert tuned.loo_mse == pytest.approx(
        ridge(tuned.gram(x, x), standard, 1 / tuned.penalty, np.arange(len(x))).loo_mse, rel=1e-6
    )
    assert tuned.weights.sum() == pytest.approx(1) and (tuned.weights >= 0).all()
    assert tuned.loo_mse < 0.1
    np.testing.assert_allclose(np.diag(tuned.gram(x, x)), 1.0)
