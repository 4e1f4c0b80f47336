from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal, norm

from benchmarks.search.fitted_kernels import FittedKernel, Predictive, predictions
from benchmarks.search.kernel_searches import fit_expression, fits_until_best, kernel_search, unit_inputs

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


def test_mixture_scores():
    mixture = Predictive(np.array([0.25, 0.75]), np.array([[0.0], [2.0]]), np.array([[1.0], [2.0]]))
    expected = np.log(0.25 * norm.pdf(1, 0, 1) + 0.75 * norm.pdf(1, 2, 2))
    assert mixture.log_density(np.ones(1))[0] == pytest.approx(expected)
    assert mixture.scores(np.ones(1)) == pytest.approx({"rmse": 0.5, "log_density": expected})


def test_uses_of_a_search(found):
    uses = predictions(found, INPUTS, top=3)
    assert list(uses) == ["best", "draws", "stacked", "averaged"]
    assert all(one.weights.sum() == pytest.approx(1) for one in uses.values())
    assert np.all(np.diff(uses["averaged"].weights) <= 0)
    assert fits_until_best(found) <= len(found.unique) == 5


def test_sparse_prediction_nears_the_exact_one():
    options = {"base": ["SE"], "budget": 1, "restarts": 1, "jobs": 1}
    exact = FittedKernel(kernel_search(SPACE, "greedy", 1, **options).run(INPUTS, Y, progress=False), "SE")
    sparse = kernel_search(SPACE, "greedy", 1, **options, inducing=15).run(INPUTS, Y, progress=False)
    uses = predictions(sparse, INPUTS)
    assert list(uses) == ["best"]
    np.testing.assert_allclose(uses["best"].mean, exact.predict(INPUTS).mean, atol=1e-2)


def test_one_expression():
    found = fit_expression(SPACE, "LIN + SE", INPUTS, Y, restarts=1, seed=1)
    assert set(found.unique["expression"]) == {"LIN + SE", "SE"}


def test_single_kernels_have_the_starts_of_a_search():
    search = kernel_search(SPACE, "SE-starts", 1, base=["LIN"], budget=40, restarts=3, jobs=1)
    assert (search.base, search.budget, search.restarts) == (("SE",), 1, 40)


def test_inputs_fill_the_space():
    space, inputs = unit_inputs(pd.DataFrame({"a": [0.1, 0.7, 0.3], "b": ["v", "u", "v"]}))
    assert inputs["a"].tolist() == [0.0, 1.0, pytest.approx(1 / 3)] and space["b"].choices == ("u", "v")
