from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import Categorical, ConfigurationSpace
from testing_spaces import branin, plain_space

import slayr_py as sl
from slayr_py.inference import FitOptions
from slayr_py.inference.diagnostics import checks as diagnostics
from slayr_py.inference.observed import standardisation
from slayr_py.inference.sampling.seeds import stan_seed
from slayr_py.space import Encoder

QUICK = {"chains": 2, "warmup": 100, "draws": 50}


def quick_fit(y, space=None, method="nuts", seed=1, configs=None):
    space = space or plain_space()
    configs = configs if configs is not None else Encoder(space).sobol(len(y), 1)
    return sl.GaussianProcess(space).fit(configs, y, method=method, seed=seed, **QUICK)


@pytest.mark.stan
def test_same_seed_same_draws_and_other_seed_other_draws():
    y = [1.0, 3.0, 2.0, 5.0]
    first, second, other = quick_fit(y), quick_fit(y), quick_fit(y, seed=2)
    for name in first.draws:
        assert np.array_equal(first.draws[name], second.draws[name])
        assert not np.array_equal(first.draws[name], other.draws[name])
    assert first.record["draws_sha256"] == second.record["draws_sha256"]


@pytest.mark.stan
def test_options_are_the_same_as_single_keywords():
    y = [1.0, 3.0, 2.0, 5.0]
    gp = sl.GaussianProcess(plain_space())
    together = gp.fit(Encoder(plain_space()).sobol(4, 1), y, options=FitOptions(**QUICK))
    assert together.record["draws_sha256"] == quick_fit(y).record["draws_sha256"]


@pytest.mark.stan
def test_numpy_integers_are_accepted():
    posterior = quick_fit([1.0, 3.0, 2.0], seed=np.int64(4))
    assert json.loads(json.dumps(posterior.record))["arguments"]["seed"] == 4
    assert np.array_equal(posterior.draws["mu"], quick_fit([1.0, 3.0, 2.0], seed=4).draws["mu"])


@pytest.mark.stan
def test_seeds_zero_and_one_differ():
    y = [1.0, 3.0, 2.0]
    assert not np.array_equal(quick_fit(y, seed=0).draws["mu"], quick_fit(y, seed=1).draws["mu"])


def test_distinct_seeds_stay_distinct_and_in_range():
    seeds = [0, 1, 2, 2_147_483_397, 2_147_483_398, 2**40, 2**63]
    made = [stan_seed(s) for s in seeds]
    assert len(set(made)) == len(seeds) and min(made) >= 1 and max(made) <= 2_147_483_398


@pytest.mark.stan
@pytest.mark.parametrize(
    ("scale", "method", "rtol"), [(2.0**27, "nuts", 1e-12), (1e8, "map", 1e-3), (1e-8, "map", 1e-3)]
)
def test_the_scale_of_y_does_not_matter(scale, method, rtol):
    # Powers of two leave all bits of the standardised y. Other factors change the last, and where L-BFGS stops.
    y = np.array([1.0, 3.0, 2.0, 5.0, 4.0])
    plain, scaled = quick_fit(y, method=method), quick_fit(y * scale, method=method)
    configs = Encoder(plain_space()).sobol(7, 9)
    np.testing.assert_allclose(scaled.predict(configs).mean, scale * plain.predict(configs).mean, rtol=rtol)
    np.testing.assert_allclose(scaled.predict(configs).sd, scale * plain.predict(configs).sd, rtol=rtol)


@pytest.mark.stan
@pytest.mark.parametrize("scale", [1e8, 1e-8])
def test_targets_of_any_size_are_sampled(scale):
    y = scale * np.array([1.0, 3.0, 2.0, 5.0, 4.0])
    prediction = quick_fit(y).predict(Encoder(plain_space()).sobol(7, 9))
    assert np.all(np.abs(prediction.mean / scale - 3) < 3) and np.all(prediction.sd < 5 * scale)


@pytest.mark.stan
@pytest.mark.parametrize("y", [[4.2], [4.2, 4.2, 4.2], [1e8] * 4, [0.1 + 0.2, 0.3, 0.3]])
def test_single_and_constant_targets(y):
    posterior = quick_fit(y)
    assert posterior.y_sd == 1.0
    prediction = posterior.predict(Encoder(plain_space()).sobol(3, 2))
    assert np.all(np.isfinite(prediction.mean)) and np.all(prediction.sd > 0)


@pytest.mark.stan
def test_duplicate_rows():
    config = {"x": 0.5, "z": 0.0}
    posterior = quick_fit([1.0, 1.5, 0.5, 4.0], configs=[config, config, config, {"x": 0.1, "z": 5.0}])
    assert posterior.predict([config]).mean[0] == pytest.approx(1.0, abs=0.8)


@pytest.mark.stan
@pytest.mark.parametrize(
    "space", [ConfigurationSpace([Categorical("c", ["a", "b", "d"])]), ConfigurationSpace({"x": (0.0, 1.0)})]
)
def test_spaces_of_one_kind(space):
    posterior = quick_fit([1.0, 2.0, 3.0], space)
    assert np.all(np.isfinite(posterior.predict(Encoder(space).sobol(2, 5)).mean))


def test_standardisation():
    y = np.array([1.0, 2.0, 4.0])
    assert standardisation(y) == (pytest.approx(7 / 3), pytest.approx(np.std(y, ddof=1)))


def test_an_observed_point_is_predicted_where_there_is_no_noise(branin_posterior, branin_data):
    _, configs, y = branin_data
    prediction = branin_posterior.predict(configs)
    assert np.all(np.abs(prediction.mean - y) < 4 * np.maximum(prediction.sd, 1e-3 * np.ptp(y)))


def test_predictions_cover_the_truth(branin_posterior, branin_data):
    space, _, _ = branin_data
    new = Encoder(space).sobol(200, 77)
    truth = np.array([branin(c) for c in new])
    prediction = branin_posterior.predict(new)
    covered = np.mean(np.abs(truth - prediction.mean) < 1.96 * prediction.sd)
    assert 0.85 <= covered <= 1.0


@pytest.mark.stan
@pytest.mark.parametrize("method", ["pathfinder", "laplace"])
def test_approximations_are_close_to_the_posterior(branin_posterior, branin_data, method, monkeypatch):
    monkeypatch.setattr(diagnostics, "PARETO_K_LIMIT", np.inf)
    space, configs, y = branin_data
    approximate = sl.GaussianProcess(space).fit(configs, y, method=method, chains=4, draws=250, seed=3)
    assert np.isfinite(approximate.check().pareto_k) and np.isnan(approximate.check().rhat_max)
    assert (
        approximate.record["arguments"]["method"] == method
        and approximate.record["abandoned"] == []
        and approximate.n_draws == 1000
    )
    exact = branin_posterior.draws
    for name in ("lengthscale", "sigma_f"):
        gap = np.log(approximate.draws[name]).mean(axis=0) - np.log(exact[name]).mean(axis=0)
        assert np.all(np.abs(gap) < np.log(exact[name]).std(axis=0)), name


@pytest.mark.stan
@pytest.mark.parametrize("method", ["pathfinder", "laplace"])
def test_an_approximation_with_large_pareto_k_falls_back_to_nuts(branin_data, method, monkeypatch):
    monkeypatch.setattr(diagnostics, "PARETO_K_LIMIT", -np.inf)
    space, configs, y = branin_data
    posterior = sl.GaussianProcess(space).fit(configs, y, method=method, seed=3, **QUICK)
    assert posterior.record["arguments"]["method"] == "nuts" and posterior.n_draws == 100
    (abandoned,) = posterior.record["abandoned"]
    assert abandoned["method"] == method and "Pareto k" in abandoned["why"][0]
    assert json.loads(json.dumps(posterior.record))["abandoned"] == [abandoned]


@pytest.mark.stan
def test_the_mode_is_a_mode(branin_data):
    space, configs, y = branin_data
    posterior = sl.GaussianProcess(space).fit(configs, y, method="map", seed=4)
    assert posterior.n_draws == 1 and posterior.check().ok
    # The gradient of the log density vanishes there.
    from slayr_py.inference.sampling.programs import compiled

    scores = posterior.idata["unconstrained_posterior"].to_dataset()
    point = {name: scores[name].values[0, 0] for name in map(str, scores.data_vars)}
    row = compiled("matern_gp").model().log_prob(point, data=posterior.data, sig_figs=18).iloc[0].to_numpy()
    assert np.all(np.abs(row[1:]) < 1e-2)


@pytest.mark.stan
def test_priors_change_the_posterior_without_compiling():
    y = [1.0, 3.0, 2.0, 5.0]
    configs = Encoder(plain_space()).sobol(4, 1)
    tight = {"lengthscale": sl.LogNormal([-2.0, 3.0], 0.01), "sigma_n": sl.LogNormal(-6, 0.01)}
    posterior = sl.GaussianProcess(plain_space(), priors=tight).fit(configs, y, **QUICK)
    np.testing.assert_allclose(np.log(posterior.draws["lengthscale"]).mean(axis=0), [-2, 3], atol=0.02)


@pytest.mark.stan
def test_configurations_may_be_frames_arrays_or_mappings():
    configs = Encoder(plain_space()).sobol(4, 1)
    y = [1.0, 3.0, 2.0, 5.0]
    frame = pd.DataFrame([dict(c) for c in configs])
    wanted = quick_fit(y, configs=configs).draws["mu"]
    assert np.array_equal(quick_fit(y, configs=frame).draws["mu"], wanted)
    assert np.array_equal(quick_fit(y, configs=frame[["x", "z"]].to_numpy()).draws["mu"], wanted)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"options": FitOptions()}, sl.DataError, "remove chains, warmup, draws, or options="),
        ({"y": [1.0]}, sl.DataError, r"shape \(1,\) for 2 configurations"),
        ({"y": [1.0, np.nan]}, sl.DataError, r"y\[1\] is nan"),
        ({"y": [1.0, np.inf]}, sl.DataError, r"y\[1\] is inf"),
        ({"y": ["a", "b"]}, sl.DataError, "numbers"),
        ({"y": [], "configs": []}, sl.DataError, "y is empty"),
        ({"configs": [{"x": np.nan, "z": 0.0}] * 2}, sl.SpaceError, "nan"),
        ({"configs": [{"x": 0.5}] * 2}, sl.SpaceError, "z"),
        ({"method": "vi"}, sl.DataError, "unknown method 'vi'"),
        ({"chains": 0}, sl.DataError, "chains"),
        ({"draws": 2.5}, sl.DataError, "draws"),
        ({"warmup": 0}, sl.DataError, "warmup"),
        ({"seed": -1}, sl.DataError, "seed"),
        ({"seed": 1.5}, sl.DataError, "seed"),
        ({"target_acceptance": 1.0}, sl.DataError, "target_acceptance"),
        ({"max_treedepth": 0}, sl.DataError, "max_treedepth"),
        ({"ess": 0}, sl.DataError, "ess must be an integer >= 1, got 0"),
    ],
)
def test_wrong_arguments(change, error, words):
    arguments = {"configs": [{"x": 0.5, "z": 0.0}, {"x": 0.1, "z": 1.0}], "y": [1.0, 2.0]} | QUICK | change
    with pytest.raises(error, match=words):
        sl.GaussianProcess(plain_space()).fit(**arguments)


def test_an_unknown_kernel():
    with pytest.raises(sl.DataError, match="unknown kernel 'rbf'"):
        sl.GaussianProcess(plain_space(), kernel="rbf")
