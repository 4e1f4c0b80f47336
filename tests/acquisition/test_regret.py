"""The posterior of the regret, against joint draws on dense grids."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from scipy.stats import ks_2samp
from testing_spaces import conditional_space

import slayr_py as sl
from slayr_py.acquisition.regret import sample_regret
from slayr_py.inference.sensitivity.inputs import uniform
from slayr_py.space import Encoder

LINE = ConfigurationSpace({"x": (0.0, 10.0)})
AXIS = np.linspace(0, 10, 201)
GRID = Encoder(LINE).encode(AXIS[:, None])


def line_fit(priors=None, **options):
    """A fit that needs no Stan, with much left to learn between 5 and 10."""
    x = np.array([0.3, 1.0, 1.8, 2.5, 3.6, 4.4, 9.7])
    gp = sl.GaussianProcess(LINE, "MAT52", priors=priors, inducing=len(x))
    return gp.fit(x[:, None], np.sin(2 * x) + x / 10, method="laplace", seed=1, **options)


@pytest.mark.parametrize("maximize", [False, True])
def test_regret_has_the_distribution_of_joint_draws_on_a_grid(maximize):
    posterior = line_fit(maximize=maximize)
    row = int(np.argmin(posterior.targets.y))
    found = sample_regret(posterior, posterior.train[[row]], np.random.default_rng(1))
    functions = posterior.sample(GRID.concatenate(posterior.train[[row]]), 1000, seed=2)
    best = functions.max(axis=1) if maximize else functions.min(axis=1)
    expected = np.abs(functions[:, -1] - best)
    assert found.shape == (256,) and found.min() >= 0
    # Draws with the same hyperparameters are not independent: 100 instead of 256.
    assert ks_2samp(found, expected).statistic < 1.63 * np.sqrt(1 / 100 + 1 / 1000)


def test_the_scale_multiplies_the_deviations_of_the_functions():
    # Otherwise a few of the draws, of which 32 are used, have most of the large values.
    posterior = line_fit({"lengthscale": sl.LogNormal(-2.0, 0.1), "sigma_f": sl.LogNormal(0.0, 0.1)})
    row = int(np.argmin(posterior.targets.y))
    plain, wide = (
        np.concatenate(
            [
                sample_regret(posterior, posterior.train[[row]], np.random.default_rng(seed), scale=scale)
                for seed in range(4)
            ]
        )
        for scale in (1.0, 2.0)
    )
    functions = posterior.sample(GRID.concatenate(posterior.train[[row]]), 1000, seed=2)
    mean = posterior.predict(GRID.concatenate(posterior.train[[row]])).mean
    expected = mean[-1] - (mean + 2 * (functions - mean))[:, :-1].min(axis=1)
    assert np.quantile(wide, 0.95) == pytest.approx(np.quantile(expected, 0.95), rel=0.15)
    assert np.quantile(wide, 0.95) > 1.5 * np.quantile(plain, 0.95)


def test_configurations_that_violate_a_constraint_do_not_count():
    posterior = line_fit()
    row = int(np.argmin(posterior.targets.y))
    x = np.linspace(0, 10, 21)
    constraint = sl.GaussianProcess(LINE, "SE", inducing=21).fit(x[:, None], x - 4.5, method="laplace", seed=1)
    found = sample_regret(posterior, posterior.train[[row]], np.random.default_rng(1), [constraint])
    functions = posterior.sample(GRID.concatenate(posterior.train[[row]]), 1000, seed=2)
    allowed = functions[:, :-1][:, AXIS < 4.5]
    expected = functions[:, -1] - np.minimum(allowed.min(axis=1), functions[:, -1])
    assert ks_2samp(found, expected).statistic < 1.63 * np.sqrt(1 / 100 + 1 / 1000)


@pytest.mark.parametrize("maximize", [False, True])
def test_a_configuration_known_to_be_infeasible_leaves_no_regret(maximize, one_violated):
    """The incumbent failed once too."""
    sign = -1.0 if maximize else 1.0
    posterior, violated = one_violated(sign * np.array([0.0, 5.0, 9.0, 9.0]), maximize)
    arguments = posterior, posterior.train[[1]], np.random.default_rng(1), [violated]
    others = sample_regret(*arguments)
    found = sample_regret(*arguments, excluded=posterior.train[[0, 1]])
    functions = sign * posterior.sample(posterior.train, 1000, seed=2)
    expected = functions[:, 1] - functions[:, 1:].min(axis=1)
    assert np.mean(others > 0) > np.mean(expected > 0) + 0.2
    assert np.mean(found > 0) == pytest.approx(np.mean(expected > 0), abs=0.1)


def test_a_minimum_at_the_border_of_a_constraint_leaves_little_but_not_nothing():
    """The objective decreases up to the border, from which the incumbent is less than a step of the pool away."""
    x = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 4.4995, 6.0, 8.0, 10.0])
    exact = {"sigma_n": sl.LogNormal(-9.0, 0.5)}
    gp = sl.GaussianProcess(LINE, "SE", exact, inducing=len(x))
    posterior = gp.fit(x[:, None], -x, method="laplace", seed=1)
    constraint = gp.fit(x[:, None], x - 4.5, method="laplace", seed=1)
    found = sample_regret(posterior, posterior.train[[5]], np.random.default_rng(1), [constraint])
    near = GRID.encoder.encode(np.linspace(4.495, 4.505, 401)[:, None])
    functions = posterior.sample(near.concatenate(posterior.train[[5]]), 1000, seed=2)
    borders = constraint.sample(near, 1000, seed=3)
    lowest = np.where(borders <= 0, functions[:, :-1], np.inf).min(axis=1)
    expected = np.maximum(functions[:, -1] - lowest, 0.0)
    assert 1e-4 < expected.mean() < 2e-3
    assert found.mean() == pytest.approx(expected.mean(), rel=0.2)


def test_a_constraint_may_exclude_most_of_the_promising_configurations():
    x = np.linspace(0.2, 9.7, 9)
    gp = sl.GaussianProcess(LINE, "MAT52", inducing=len(x))
    posterior = gp.fit(x[:, None], np.sin(2 * x) - 2 * x, method="laplace", seed=1)
    x = np.linspace(0, 10, 21)
    constraint = sl.GaussianProcess(LINE, "SE", inducing=21).fit(x[:, None], x - 1.1, method="laplace", seed=1)
    found = sample_regret(posterior, posterior.train[[0]], np.random.default_rng(1), [constraint])
    functions = posterior.sample(GRID.concatenate(posterior.train[[0]]), 1000, seed=2)
    expected = np.maximum(functions[:, -1] - functions[:, :-1][:, AXIS <= 1.1].min(axis=1), 0)
    assert np.median(expected) > 0.5
    assert ks_2samp(found, expected).statistic < 1.63 * np.sqrt(1 / 100 + 1 / 1000)


def test_fixed_values_restrict_the_minimum():
    space = ConfigurationSpace({"x": (0.0, 1.0), "n": (1, 3)})
    encoder = Encoder(space)
    configs = [{"x": x, "n": n} for n in (1, 2, 3) for x in (0.0, 0.25, 0.5, 0.75, 1.0)]
    y = [config["n"] * (1 + config["x"]) for config in configs]
    posterior = sl.GaussianProcess(space, "SE", inducing=15).fit(configs, y, method="map", seed=1)
    incumbent = encoder.encode([{"x": 0.5, "n": 3}])
    free = sample_regret(posterior, incumbent, np.random.default_rng(1))
    fixed = sample_regret(posterior, incumbent, np.random.default_rng(1), fixed=encoder.fix({"n": 3}))
    assert free.mean() == pytest.approx(3.5, abs=0.2) and fixed.mean() == pytest.approx(1.5, abs=0.2)


def test_conditional_spaces_and_small_discrete_ones_have_a_regret():
    encoder = Encoder(conditional_space())
    train = uniform(encoder, 20, np.random.default_rng(1))
    y = train.unit_values.sum(axis=1)
    posterior = sl.GaussianProcess(encoder, "SE", inducing=20).fit(train, y, method="map", seed=1)
    assert np.all(np.isfinite(sample_regret(posterior, train[[int(np.argmin(y))]], np.random.default_rng(1))))
    levels = ConfigurationSpace({"act": ["a", "b"]})
    exact = {"sigma_n": sl.LogNormal(-4, 0.5)}
    posterior = sl.GaussianProcess(levels, "SE", exact, inducing=2).fit(
        [{"act": "a"}, {"act": "b"}], [0.0, 1.0], method="map", seed=1
    )
    assert sample_regret(posterior, posterior.train[[0]], np.random.default_rng(1)).max() < 0.5


@pytest.mark.parametrize("maximize", [False, True])
def test_configurations_that_are_not_better_by_their_exact_values_leave_no_regret(maximize):
    """A model with much noise believes the other levels to be better than the best one."""
    space = ConfigurationSpace({"k": ["a", "b", "c", "d"]})
    y = (-1.0 if maximize else 1.0) * np.array([0.0, 1.0, 1.0, 1.0])
    gp = sl.GaussianProcess(space, "SE", {"sigma_n": sl.LogNormal(0.0, 0.01)}, inducing=4)
    posterior = gp.fit([{"k": level} for level in "abcd"], y, method="laplace", seed=1, maximize=maximize)
    plain, some, none = (
        sample_regret(posterior, posterior.train[[0]], np.random.default_rng(1), excluded=excluded)
        for excluded in (None, posterior.train[[0, 1, 2]], posterior.train)
    )
    np.testing.assert_array_equal(none, 0.0)
    assert 0.0 < some.mean() < plain.mean() and plain.mean() > 0.05
