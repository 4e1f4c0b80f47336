"""The posterior of the optimum's location, against joint draws on dense grids and known optima."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from scipy.stats import ks_2samp

import slayr_py as sl
from slayr_py.acquisition import sample_optima
from slayr_py.acquisition.drawn_minima import JointDraws
from slayr_py.acquisition.feasibility import infeasible
from slayr_py.space import Encoder

LINE = ConfigurationSpace({"x": (0.0, 10.0)})
GRID = Encoder(LINE).encode(np.linspace(0, 10, 201)[:, None])


@pytest.mark.parametrize("maximize", [False, True])
def test_locations_have_the_distribution_of_joint_draws_on_a_grid(maximize):
    x = np.array([0.3, 1.0, 1.8, 2.5, 3.6, 4.4, 9.7])
    gp = sl.GaussianProcess(LINE, "MAT52", inducing=len(x))
    posterior = gp.fit(x[:, None], np.sin(2 * x) + x / 10, method="laplace", seed=1, maximize=maximize)
    found = sample_optima(posterior, posterior.train, np.random.default_rng(1))
    functions = posterior.sample(GRID, 1000, seed=2)
    best = functions.argmax(axis=1) if maximize else functions.argmin(axis=1)
    # Draws with the same hyperparameters are not independent: 100 instead of 256.
    limit = 1.63 * np.sqrt(1 / 100 + 1 / 1000)
    assert ks_2samp(found.encoded.unit_values[:, 0], best / 200).statistic < limit
    assert ks_2samp(found.values, functions.max(axis=1) if maximize else functions.min(axis=1)).statistic < limit
    assert found.regrets.min() >= 0 and np.all(found.regrets.min(axis=1) < 1e-9)


def test_all_functions_of_a_point_estimate_share_few_perturbations(monkeypatch):
    tried = []
    evaluate = JointDraws.__call__

    def noted(draws, new, below=None):
        if below is None:
            return evaluate(draws, new)
        tried.append((len(new), len(below)))
        return evaluate(draws, new, below)

    monkeypatch.setattr(JointDraws, "__call__", noted)
    x = np.array([[1.0], [4.0], [8.0]])
    posterior = sl.GaussianProcess(LINE, "MAT52", inducing=3).fit(x, x[:, 0], method="map", seed=1)
    sample_optima(posterior, posterior.train, np.random.default_rng(1))
    assert {count for _, count in tried[-10:]} == {256}
    assert max(m for m, _ in tried) <= 4 * 256


def test_evaluated_configurations_are_feasible_in_all_functions():
    x = np.array([[1.0], [4.0], [4.0], [8.0]])
    options = {"method": "laplace", "seed": 1}
    posterior = sl.GaussianProcess(LINE, "MAT52", inducing=4).fit(x, x[:, 0], **options)
    violated = sl.GaussianProcess(LINE, "MAT52", inducing=4).fit(x, 5 + 0.01 * x[:, 0], **options)
    found = sample_optima(posterior, posterior.train, np.random.default_rng(1), [violated])
    assert found.at_evaluated.shape == (256, 4) and np.isfinite(found.at_evaluated).all()
    np.testing.assert_array_equal(found.values, found.at_evaluated.min(axis=1))
    assert set(np.round(found.encoded.unit_values[:, 0], 9)) <= {0.1, 0.4, 0.8}
    assert np.isfinite(found.regrets[:, :3]).all() and np.isinf(found.regrets[:, 3:]).all()


def test_lower_values_are_those_below_a_limit_where_all_models_are_feasible():
    x = np.array([[1.0], [4.0], [8.0]])
    options = {"method": "laplace", "seed": 1}
    gp = sl.GaussianProcess(LINE, "MAT52", inducing=3)
    posterior, border, other = (gp.fit(x, y, **options) for y in (x[:, 0], x[:, 0] - 5, 2 - x[:, 0]))
    draws = JointDraws.draw(posterior, posterior.train, np.random.default_rng(1), [border, other], 8, 16)
    excluded = np.any([infeasible(model, functions(GRID)) for model, functions in draws.models], axis=0)
    values = np.where(excluded, np.inf, draws.at(GRID))
    np.testing.assert_allclose(draws(GRID), values)
    lowest = np.where(np.isfinite(values), values, 99.0).mean(axis=1)
    expected = np.where(values < lowest[:, None], values, np.inf)
    assert 0.01 < np.isfinite(expected).mean() < 0.99
    np.testing.assert_allclose(draws(GRID, lowest[:, None]), expected)
    np.testing.assert_allclose(draws.some(slice(5, 9))(GRID, lowest[5:9, None]), expected[5:9])


def test_branin_has_three_modes():
    space = ConfigurationSpace({"x": (-5.0, 10.0), "y": (0.0, 15.0)})
    encoder = Encoder(space)
    x, y = np.array([[config["x"], config["y"]] for config in encoder.sobol(40, 1)]).T
    values = (y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6) ** 2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10
    gp = sl.GaussianProcess(encoder, "MAT52", inducing=40, priors={"sigma_n": sl.LogNormal(-4.0, 0.5)})
    posterior = gp.fit(np.column_stack([x, y]), values, method="laplace", seed=1)
    found = sample_optima(posterior, posterior.train, np.random.default_rng(1))
    points = np.array([[config["x"], config["y"]] for config in encoder.decode(found.encoded)])
    optima = np.array([[-np.pi, 12.275], [np.pi, 2.275], [9.42478, 2.475]])
    distances = np.linalg.norm(points[:, None] - optima, axis=2)
    assert np.bincount(distances.argmin(axis=1), minlength=3).min() > 0.05 * len(points)
    assert np.quantile(distances.min(axis=1), 0.9) < 3


@pytest.mark.parametrize("maximize", [False, True])
def test_exact_values_are_those_of_all_functions(maximize):
    """A model with much noise smooths the best value, at x = 8, and prefers x = 3; x = 5 was evaluated twice."""
    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 5.0, 7.0, 8.0, 9.0])[:, None]
    sign = -1.0 if maximize else 1.0
    y = sign * np.array([0.5, 0.2, 0.0, 0.2, 0.8, 0.8, 1.1, -0.1, 1.3])
    gp = sl.GaussianProcess(LINE, "SE", {"sigma_n": sl.LogNormal(-0.7, 0.01)}, inducing=len(x))
    posterior = gp.fit(x, y, method="laplace", seed=1, maximize=maximize)
    smoothed = sample_optima(posterior, posterior.train, np.random.default_rng(1))
    assert np.mean(sign * smoothed.values > -0.1) > 0.2  # worse than what was observed
    found = sample_optima(posterior, posterior.train, np.random.default_rng(1), exact=y)
    np.testing.assert_array_equal(found.at_evaluated, np.tile(sign * y, (256, 1)))
    assert np.all(sign * found.values <= -0.1)
    # The evaluated configurations come first in the pool, each once; the others have no regret above theirs.
    regrets = np.delete(sign * y, 5) - sign * found.values[:, None]
    np.testing.assert_allclose(found.regrets[:, :8], regrets, atol=1e-12)


def test_no_level_is_better_than_its_exact_value():
    """All perturbations are evaluated levels, at which the drawn functions are better than what was observed."""
    space = ConfigurationSpace({"k": ["a", "b", "c", "d"]})
    levels = [{"k": level} for level in "abcd"]
    y = np.array([0.0, 1.0, 2.0, 3.0])
    gp = sl.GaussianProcess(space, "SE", {"sigma_n": sl.LogNormal(0.0, 0.01)}, inducing=4)
    posterior = gp.fit(levels, y, method="laplace", seed=1)
    assert sample_optima(posterior, posterior.train, np.random.default_rng(1)).values.min() < -0.5
    found = sample_optima(posterior, posterior.train, np.random.default_rng(1), exact=y)
    np.testing.assert_array_equal(found.values, 0.0)
    assert set(found.encoded.unit_values[:, 0]) == set(posterior.train.unit_values[0])


@pytest.mark.parametrize("maximize", [False, True])
def test_no_minimum_is_at_a_configuration_known_to_be_infeasible(maximize, one_violated):
    """An evaluation at level "c" was feasible too."""
    sign = -1.0 if maximize else 1.0
    posterior, violated = one_violated(sign * np.array([0.0, 1.0, 2.0, 3.0]), maximize)
    evaluated, exact = posterior.train[[1, 2, 3]], sign * np.array([1.0, 2.0, 3.0])
    others = sample_optima(posterior, evaluated, np.random.default_rng(1), [violated], exact=exact)
    assert np.mean(others.encoded.unit_values == 0) > 0.1
    infeasible = posterior.train[[0, 2]]
    rng = np.random.default_rng(1)
    found = sample_optima(posterior, evaluated, rng, [violated], exact=exact, infeasible=infeasible)
    np.testing.assert_array_equal(found.values, sign * 1.0)
    np.testing.assert_array_equal(found.at_evaluated, np.tile(sign * exact, (256, 1)))
    at_best = found.pool.unit_values[:, 0] == posterior.train.unit_values[0, 0]
    assert at_best.any() and np.isinf(found.regrets[:, at_best]).all()
