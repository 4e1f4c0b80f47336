"""Hypervolumes that drawn fronts gain, against fronts in closed form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace
from scipy.stats import qmc

import slayr_py as sl
from slayr_py.acquisition import draw_fronts, hypervolume
from slayr_py.acquisition.front_draws import FrontTask
from slayr_py.space import Encoder

LIMIT = np.array([1.1, 1.1])
X = np.linspace(0, 1, 2001)
FRONT = np.column_stack([X**2, (1 - X) ** 2])  # of `in_a_valley`


def in_a_valley(x, y):
    """Two objectives whose best compromises are the bottom of a bent, narrow valley."""
    walls = 60 * (y - 0.2 - 0.6 * x**2) ** 2
    return np.column_stack([x**2 + walls, (1 - x) ** 2 + walls])


def task(space, configs, values, n_evaluated, **options):
    """Fronts from fits that know the functions, and need no Stan; the first configurations count as evaluated."""
    fits = [
        sl.GaussianProcess(space, "SE", {"sigma_n": sl.LogNormal(-6, 0.5)}, inducing=len(configs)).fit(
            configs, y, method="laplace", seed=1
        )
        for y in values.T
    ]
    return FrontTask(fits, np.arange(n_evaluated), LIMIT, [1.0] * len(fits), **options)


def valley_task(on_front):
    """A fit to 64 points, all evaluated, some of them on the front; and the missing hypervolume."""
    space = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)})
    x, y = qmc.Sobol(2, seed=1).random(64).T
    x[:on_front] = np.linspace(0, 1, on_front)
    y[:on_front] = 0.2 + 0.6 * x[:on_front] ** 2
    values = in_a_valley(x, y)
    missing = hypervolume(FRONT, LIMIT) - hypervolume(values, LIMIT)
    return task(space, [{"x": a, "y": b} for a, b in zip(x, y, strict=True)], values, 64), missing


@pytest.mark.parametrize(("on_front", "least"), [(0, 0.93), (10, 0.85), (30, 0.7)])
def test_most_of_the_front_of_a_valley_is_found(on_front, least):
    # About a thousand configurations lack a part of a front, which weighs more where little is missing.
    valley, missing = valley_task(on_front)
    assert least < np.median(draw_fronts(valley, np.random.default_rng(1)).gained) / missing < 1.05


def test_most_candidates_are_near_the_front():
    pool = valley_task(10)[0].candidates(np.random.default_rng(1)).encoded.unit_values
    assert len(pool) == 300
    assert np.mean(np.abs(pool[:, 1] - 0.2 - 0.6 * pool[:, 0] ** 2) < 0.05) > 0.5


def test_levels_and_integers_have_the_front_of_the_good_level():
    space = ConfigurationSpace({"x": (0.0, 1.0), "n": (1, 5)})
    space.add(Categorical("c", ["bad", "good", "worse"]))
    levels = ("bad", "good", "worse")
    configs = [{"x": a, "n": n, "c": c} for a in (0.0, 0.3, 0.6, 1.0) for n in (1, 3, 5) for c in levels]
    x, n, good = np.array([(c["x"], (c["n"] - 1) / 4, c["c"] == "good") for c in configs]).T
    values = in_a_valley(x, n) + 0.5 * (1 - good)[:, None]
    mixed = task(space, configs, values, len(configs))
    pool = Encoder(space).decode(mixed.candidates(np.random.default_rng(1)).encoded)
    assert np.mean([c["c"] == "good" for c in pool[:100]]) > 0.7
    assert np.all(np.isfinite(draw_fronts(mixed, np.random.default_rng(1)).gained))


def test_a_constraint_moves_the_front():
    valley, _ = valley_task(10)
    x, y = valley.posteriors[0].train.unit_values.T
    space = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)})
    configs = [{"x": a, "y": b} for a, b in zip(x, y, strict=True)]
    model = sl.GaussianProcess(space, "SE", inducing=64).fit(configs, y - 0.5, method="laplace", seed=1)
    allowed = y < 0.5
    constrained = replace(valley, evaluated=np.flatnonzero(allowed), feasibility=[model])
    grid = np.stack(np.meshgrid(np.linspace(0, 1, 401), np.linspace(0, 0.5, 401)), axis=-1).reshape(-1, 2)
    missing = hypervolume(in_a_valley(*grid.T), LIMIT) - hypervolume(in_a_valley(x[allowed], y[allowed]), LIMIT)
    gained = draw_fronts(constrained, np.random.default_rng(1)).gained
    assert 0.85 < np.median(gained) / missing < 1.1


def test_a_configuration_known_to_be_infeasible_is_on_no_front():
    """The model of failures does not exclude the best level; an evaluated one counts although it failed once."""
    space = ConfigurationSpace({"c": ["a", "b", "c", "d"]})
    values = np.array([[0.5, 0.5], [0.2, 0.8], [0.8, 0.2], [0.0, 0.0]])
    levels = task(space, [{"c": c} for c in "abcd"], values, 3)
    known = replace(levels, infeasible=levels.posteriors[0].train[[3, 0]])
    rng = np.random.default_rng(1)
    assert np.quantile(draw_fronts(levels, rng).gained, 0.05) > 0.3
    drawn = draw_fronts(known, rng)
    assert drawn.gained.max() < 0.1
    np.testing.assert_allclose(np.mean([len(front) for front in drawn.fronts]), 3.0, atol=0.1)


def test_spaces_of_levels_or_of_one_configuration_have_fronts():
    for levels in (["a", "b"], ["a", "b", "c", "d"]):
        space = ConfigurationSpace({"c": levels})
        values = np.column_stack([np.linspace(0, 1, len(levels)), np.linspace(1, 0, len(levels))])
        everything = task(space, [{"c": c} for c in levels], values, len(levels))
        assert np.quantile(draw_fronts(everything, np.random.default_rng(1)).gained, 0.95) < 0.1
    fixed = Encoder(space).fix({"c": "b"})
    only = task(space, [{"c": c} for c in levels], values, len(levels), fixed=fixed)
    assert draw_fronts(only, np.random.default_rng(1)).gained.max() < 0.1
