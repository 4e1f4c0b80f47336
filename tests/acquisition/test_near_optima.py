"""Nearly optimal configurations beyond those that the search for optima has met, against dense grids."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer

import slayr_py as sl
from slayr_py.acquisition import extend_pool, sample_optima
from slayr_py.space import Encoder

PLANE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
AXIS = np.linspace(0, 1, 61)


def ridge(config):
    return 2 * (config["x"] - config["y"]) ** 2 + 0.2 * (config["x"] + config["y"] - 0.8) ** 2


def fitted(encoder, objective, n=20, **options):
    """A fit that needs no Stan."""
    configs = encoder.sobol(n, 1)
    gp = sl.GaussianProcess(encoder, "SE", {"sigma_n": sl.LogNormal(-5.0, 0.5)}, inducing=n)
    return gp.fit(configs, np.array([objective(config) for config in configs]), method="laplace", seed=1, **options)


def optima_of(encoder, objective, n=20, **options):
    posterior = fitted(encoder, objective, n)
    return sample_optima(posterior, posterior.train, np.random.default_rng(1), **options)


def near(optima, epsilon):
    """Return the nearly optimal configurations of the pool."""
    return optima.pool[np.mean(optima.regrets < epsilon, axis=0) >= 0.9]


def ranges(encoded):
    return np.column_stack([encoded.unit_values.min(axis=0), encoded.unit_values.max(axis=0)])


def on_grid(optima, grid, epsilon):
    """Return the configurations of a grid whose regret is small with probability 0.9, under the same functions."""
    regrets = optima.draws(grid) - optima.draws.sign * optima.values[:, None]
    return grid[np.mean(regrets < epsilon, axis=0) >= 0.9]


def extended(optima, epsilon, seed=2):
    return extend_pool(optima, epsilon, 0.9, np.random.default_rng(seed))


@pytest.mark.parametrize("objective", [ridge, lambda config: (config["x"] - 0.4) ** 2 + (config["y"] - 0.7) ** 2])
def test_ranges_are_as_wide_as_those_on_a_dense_grid(objective):
    encoder = Encoder(PLANE)
    optima = optima_of(encoder, objective)
    for epsilon in (0.02, 0.08):
        found = extended(optima, epsilon)
        low, high = ranges(near(found, epsilon)).T
        u, v = (a + (b - a) * (1.2 * AXIS - 0.1) for a, b in zip(low, high, strict=True))
        points = np.clip(np.stack(np.meshgrid(u, v), axis=-1).reshape(-1, 2), 0, 1)
        expected = ranges(on_grid(optima, encoder.encode(points), epsilon))
        width = expected[:, 1] - expected[:, 0]
        assert np.all(low <= expected[:, 0] + 0.01 * width) and np.all(high >= expected[:, 1] - 0.01 * width)
        assert np.any(np.ptp(ranges(near(optima, epsilon)), axis=1) < 0.97 * width)  # those that were met
        np.testing.assert_array_equal(found.values, optima.values)
        np.testing.assert_array_equal(found.pool.unit_values[: len(optima.pool)], optima.pool.unit_values)
        np.testing.assert_array_equal(found.regrets[:, : len(optima.pool)], optima.regrets)
        again = extended(optima, epsilon)
        np.testing.assert_array_equal(again.pool.unit_values, found.pool.unit_values)


def test_where_no_configuration_is_near_enough_the_most_probable_are_improved():
    optima = optima_of(Encoder(PLANE), ridge)
    epsilon = 0.08
    few = np.flatnonzero(np.quantile(optima.regrets, 0.9, axis=0) > 5 * epsilon)
    far = optima._replace(pool=optima.pool[few], regrets=optima.regrets[:, few])
    assert len(near(far, epsilon)) == 0
    found = near(extended(far, epsilon), epsilon)
    np.testing.assert_allclose(ranges(found), ranges(near(extended(optima, epsilon), epsilon)), atol=0.02)


def mixed():
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    kind, n, y = Categorical("kind", ["a", "b", "c"]), Integer("n", (1, 20)), Float("y", (0.0, 1.0))
    space.add(kind, n, y)
    space.add(EqualsCondition(y, kind, "b"))
    return space


def of_mixed(config):
    offset = {"a": 0.0, "b": 0.01, "c": 2.0}[config["kind"]] + (config.get("y", 0.5) - 0.5) ** 2
    return (config["x"] - 0.4) ** 2 + (config["n"] - 8) ** 2 / 100 + offset


def test_integers_levels_and_parameters_of_a_branch_are_reached_from_few_configurations():
    encoder = Encoder(mixed())
    optima = optima_of(encoder, of_mixed, 60)
    columns = {d.name: j for j, d in enumerate(encoder.dimensions)}
    n, kind, y = (columns[name] for name in ("n", "kind", "y"))
    values = optima.pool.unit_values
    bad = np.quantile(optima.regrets, 0.9, axis=0) > 0.3
    few = (values[:, kind] != 0) & bad
    few[np.flatnonzero((values[:, kind] == 0) & ~bad)[:1]] = True
    start = optima._replace(pool=optima.pool[few], regrets=optima.regrets[:, few])
    found = near(extended(start, 0.15), 0.15)
    configs = encoder.uniform(20000, np.random.default_rng(3))
    expected = on_grid(optima, encoder.resolve(configs)[0], 0.15)
    assert set(found.unit_values[:, kind]) == set(expected.unit_values[:, kind]) == {0.0, 1.0}
    for j in columns.values():
        got, wanted = (np.sort(each.unit_values[each.active[:, j], j]) for each in (found, expected))
        slack = 0.02 * (wanted[-1] - wanted[0])
        assert got[0] <= wanted[0] + slack and got[-1] >= wanted[-1] - slack
    assert len(np.unique(found.unit_values[:, n])) > 4 and found.active[:, y].any() and not found.active[:, y].all()


def test_fixed_values_and_constraints_on_inputs_hold():
    encoder = Encoder(mixed(), within=["x + y <= 0.7"])
    fixed = encoder.fix({"n": 7})
    optima = optima_of(encoder, of_mixed, 60, fixed=fixed)
    found = extended(optima, 0.05)
    added = found.pool[np.arange(len(optima.pool), len(found.pool))]
    assert len(added) > 100 and fixed.hold(added).all()
    sums = [config["x"] + config["y"] for config in encoder.decode(added) if "y" in config]
    assert len(sums) > 10 and max(sums) <= 0.7 + 1e-9


def test_configurations_known_to_be_infeasible_are_not_among_them():
    encoder = Encoder({"n": (1, 9), "x": (0.0, 1.0), "m": (1, 2)})
    excluded = encoder.encode([{"n": n, "x": 0.0, "m": m} for n in range(1, 10) for m in (1, 2)])

    def objective(config):
        return config["x"] + (config["n"] - 4) ** 2 / 50

    posterior = fitted(encoder, objective)
    exact = posterior.targets.y * posterior.y_sd + posterior.y_mean
    options = {"exact": exact, "infeasible": excluded}
    optima = sample_optima(posterior, posterior.train, np.random.default_rng(1), **options)
    found = near(extended(optima, 0.2), 0.2)
    x = found.unit_values[:, [d.name for d in encoder.dimensions].index("x")]
    assert 0 < x.min() < 0.01


def test_an_enumerated_space_has_no_others():
    optima = optima_of(Encoder({"n": (1, 5), "k": ["a", "b"]}), lambda config: config["n"], 8)
    assert len(extended(optima, 1.5).pool) == len(optima.pool) == 10
