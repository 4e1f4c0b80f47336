"""Improvement per unit of cost."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace

import slayr_py as sl
from slayr_py.acquisition import suggest
from slayr_py.acquisition.cost import Cost

pytestmark = pytest.mark.stan

SPACE = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)})
POINTS = np.random.default_rng(0).random((10, 2))
LOG_COST = 3.0 + 2.0 * POINTS[:, 0] + np.sin(4 * POINTS[:, 1])


@pytest.fixture(scope="module")
def model():
    return sl.GaussianProcess(SPACE).fit(POINTS, LOG_COST, method="laplace", draws=20, chains=1, seed=1)


def test_the_expected_cost_is_a_mean_of_log_normal_distributions(model):
    new = np.random.default_rng(1).random((5, 2))
    prediction = model.predict(new)
    wanted = np.exp(prediction.draw_mean + 0.5 * prediction.draw_sd**2).mean(axis=0)
    cost = Cost.of(model, model.n_draws)
    np.testing.assert_allclose(cost.expected(model.encoder.encode(new)), wanted, rtol=1e-9)
    assert np.ptp(prediction.draw_mean, axis=0).max() > 1e-3  # the draws differ


def test_the_gradient_is_that_of_finite_differences(model):
    cost = Cost.of(model, 16).subset(8)
    x = np.random.default_rng(2).random((5, 2))
    value, gradient = cost.values_and_gradients(model.encoder.encode(x))
    np.testing.assert_allclose(value, cost.values(model.encoder.encode(x)), rtol=1e-10)
    h = 1e-5
    for j in range(2):
        step = h * np.eye(2)[j]
        up, down = (cost.values(model.encoder.encode(x + sign * step)) for sign in (1, -1))
        np.testing.assert_allclose(gradient[:, j], (up - down) / (2 * h), rtol=1e-4, atol=1e-6)


def test_the_suggestion_maximises_improvement_per_cost(model):
    """The objective improves to the right, where an evaluation costs more."""
    objective = sl.GaussianProcess(SPACE).fit(POINTS, -POINTS[:, 0] + POINTS[:, 1] ** 2, method="map", seed=1)
    options = {"best": -0.5, "t": 1}
    found = suggest(objective, cost=model, rng=np.random.default_rng(3), **options)
    plain = suggest(objective, rng=np.random.default_rng(3), **options)
    assert plain.cost is None

    def per_cost(configs):
        prediction = objective.predict(configs)
        improvement = sl.acquisition.expected_improvement(prediction.draw_mean, prediction.draw_sd, -0.5)
        return improvement / Cost.of(model, 256).expected(model.encoder.encode(configs))

    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 41)] * 2), axis=-1).reshape(-1, 2)
    there = per_cost([found.config])[0]
    assert there >= 0.999 * per_cost(grid).max()
    assert there > 1.01 * per_cost([plain.config])[0]
    assert found.cost == pytest.approx(Cost.of(model, 256).expected(model.encoder.encode([found.config]))[0])


def test_a_cost_does_not_divide_the_probability_of_feasibility(model):
    """Points with a large x are feasible, and the cost grows with x."""
    objective = sl.GaussianProcess(SPACE).fit(POINTS, POINTS[:, 0], method="map", seed=1)
    feasibility = [sl.GaussianProcess(SPACE).fit(POINTS, 0.3 - POINTS[:, 0], method="map", seed=1)]
    options = {"best": None, "t": 1, "feasibility": feasibility}
    plain = suggest(objective, rng=np.random.default_rng(3), **options)
    found = suggest(objective, rng=np.random.default_rng(3), cost=model, **options)
    assert found.config == plain.config and found.cost > 0


def test_a_confidence_bound_has_no_cost(model):
    with pytest.raises(sl.DataError, match="acquisition 'lcb' cannot be divided by a cost; choose 'ei' or 'pi'"):
        suggest(model, "lcb", best=0.0, t=1, cost=model, rng=np.random.default_rng(3))
