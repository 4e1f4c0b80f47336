from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

from benchmarks.search.fitted_kernels import FittedKernel, predictions
from benchmarks.search.kernel_searches import fits_until_best, kernel_search, unit_inputs

POINTS = pd.DataFrame({"x": np.linspace(0, 1, 15)})
SPACE, INPUTS = unit_inputs(POINTS)
Y = 5 + 3 * np.sin(7 * POINTS["x"].to_numpy()) + 0.3 * np.random.default_rng(0).standard_normal(15)


@pytest.fixture(scope="module")
def found():
    options = {"base": ["SE", "LIN"], "budget": 5, "restarts": 1, "jobs": 1}
    return kernel_search(SPACE, "greedy", 1, **options).run(INPUTS, Y, progress=False)


def dense(fitted, n):
    """Return mean and covariance of the observations from the definition."""
    mean = fitted._mean + fitted._sd * float(fitted._theta["mu"][0])
    return np.full(n, mean), fitted.covariance() + fitted.noise * np.eye(n)


def test_prediction_is_the_conditional_distribution(found):
    fitted = FittedKernel(found, found.top(1)[0])
    mean, covariance = dense(fitted, 15)
    gain = (covariance - fitted.noise * np.eye(15)) @ np.linalg.inv(covariance)
    expected = mean + gain @ (Y - mean)
    variance = np.diagonal(covariance - gain @ (covariance - fitted.noise * np.eye(15)))
    predictive = fitted.predict(INPUTS)
    np.testing.assert_allclose(predictive.mean[0], expected, atol=1e-6)
    np.testing.assert_allclose(predictive.sd[0], np.sqrt(variance), rtol=1e-5)


def test_leave_one_out_is_the_ratio_of_joint_densities(found):
    fitted = FittedKernel(found, found.top(1)[0])
    mean, covariance = dense(fitted, 15)
    joint = multivariate_normal(mean, covariance).logpdf(Y)
    rest = [
        multivariate_normal(np.delete(mean, i), np.delete(np.delete(covariance, i, 0), i, 1)).logpdf(np.delete(Y, i))
        for i in range(15)
    ]
    np.testing.assert_allclose(fitted.leave_one_out(), joint - rest, atol=1e-5)
    loo = found.unique.set_index("expression")["loo"][fitted.expression]
    assert fitted.leave_one_out().sum() == pytest.approx(loo - 15 * np.log(fitted._sd), abs=1e-5)


def test_uses_of_a_search(found):
    uses = predictions(found, INPUTS, top=3)
    assert list(uses) == ["best", "draws", "stacked", "averaged"]
    assert all(one.weights.sum() == pytest.approx(1) for one in uses.values())
    assert np.all(np.diff(uses["averaged"].weights) <= 0)
    assert fits_until_best(found) <= len(found.unique) == 5
