from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace
from testing_spaces import conditional_space, mixed_space

import slayr_py as sl
from slayr_py.acquisition import expected_improvement, suggest
from slayr_py.space import Encoder

QUICK = {"chains": 2, "warmup": 100, "draws": 50}


def test_nothing_on_a_fine_grid_is_much_better(branin_posterior, branin_data):
    _, _, y = branin_data
    found = suggest(branin_posterior, "ei", best=y.min(), t=1, rng=np.random.default_rng(0))
    axis = np.linspace(0, 1, 60)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    encoder = branin_posterior.encoder
    encoded, _ = encoder.resolve(grid)
    mean, variance = branin_posterior.predictor(128).moments(encoded)
    best = (y.min() - branin_posterior.y_mean) / branin_posterior.y_sd
    assert found.value >= expected_improvement(mean, np.sqrt(variance), best).max() * (1 - 1e-6)


@pytest.mark.parametrize("acquisition", ["ei", "log_ei", "pi", "lcb"])
def test_every_criterion_gives_a_legal_configuration(mixed_posterior, acquisition):
    y = mixed_posterior.y_mean + mixed_posterior.y_sd * np.asarray(mixed_posterior.data["y"])
    found = suggest(mixed_posterior, acquisition, best=y.min(), t=4, rng=np.random.default_rng(3))
    found.config.check_valid_configuration()
    assert np.isfinite([found.mean, found.sd]).all() and found.sd >= 0
    prediction = mixed_posterior.predict([found.config])
    assert found.mean == pytest.approx(prediction.mean[0], rel=0.3, abs=0.3)


def test_a_suggestion_is_repeatable(mixed_posterior):
    args = {"best": 0.0, "t": 1}
    one = suggest(mixed_posterior, rng=np.random.default_rng(7), **args)
    two = suggest(mixed_posterior, rng=np.random.default_rng(7), **args)
    assert one == two


def test_pending_points_are_avoided(branin_posterior, branin_data):
    _, _, y = branin_data
    first = suggest(branin_posterior, best=y.min(), t=1, rng=np.random.default_rng(0))
    second = suggest(branin_posterior, best=y.min(), t=1, rng=np.random.default_rng(0), pending=[first.config])
    a, b = branin_posterior.encoder.encode([first.config, second.config]).values
    assert np.linalg.norm(a - b) > 0.02


def test_conditional_and_forbidden_spaces():
    space = conditional_space()
    configs = Encoder(space).sobol(10, 2)
    y = [c.get("gamma", 1.0) + np.log(c["C"]) for c in configs]
    posterior = sl.GaussianProcess(space).fit(configs, y, **QUICK)
    for seed in range(3):
        found = suggest(posterior, best=min(y), t=1, rng=np.random.default_rng(seed))
        found.config.check_valid_configuration()


def test_evaluated_configurations_are_not_repeated_until_none_is_left():
    space = ConfigurationSpace([Categorical("a", [1, 2, 3]), Categorical("b", ["x", "y"])])
    encoder = Encoder(space)
    everything = [{"a": a, "b": b} for a in (1, 2, 3) for b in ("x", "y")]
    posterior = sl.GaussianProcess(encoder).fit(everything[:3], [1.0, 2.0, 3.0], **QUICK)
    for n in range(6):
        found = suggest(posterior, best=1.0, t=1, rng=np.random.default_rng(n), exclude=everything[:n])
        assert dict(found.config) in everything[n:]
    again = suggest(posterior, best=1.0, t=1, rng=np.random.default_rng(0), exclude=everything)
    assert dict(again.config) in everything


def test_a_best_value_that_is_not_finite(mixed_posterior):
    with pytest.raises(sl.DataError, match="best must be finite"):
        suggest(mixed_posterior, best=np.nan, t=1, rng=np.random.default_rng(0))
    with pytest.raises(sl.DataError, match="unknown acquisition"):
        suggest(mixed_posterior, "eii", best=0.0, t=1, rng=np.random.default_rng(0))


def test_integer_coordinates_come_back_as_integers(mixed_posterior):
    found = suggest(mixed_posterior, best=0.0, t=1, rng=np.random.default_rng(1))
    assert isinstance(found.config["layers"], int) and set(found.config) == set(mixed_space())
