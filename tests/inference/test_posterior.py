from __future__ import annotations

import json
import logging
import tempfile

import networkx as nx
import numpy as np
import pytest
import xarray as xr
from scipy.stats import multivariate_normal, norm
from testing_spaces import mixed_space

import slayr_py as sl
from slayr_py.inference.diagnostics.arviz_bridge import arviz
from slayr_py.inference.diagnostics.importance import smoothed_resample
from slayr_py.inference.prediction import Predictor, mixture_moments
from slayr_py.space import Encoder

GROUPS = {
    "posterior",
    "unconstrained_posterior",
    "sample_stats",
    "log_likelihood",
    "posterior_predictive",
    "observed_data",
    "constant_data",
}


def test_the_tree_has_its_groups_and_labels(mixed_posterior):
    idata = mixed_posterior.idata
    assert isinstance(idata, xr.DataTree) and set(idata.children) == GROUPS
    posterior = idata["posterior"].to_dataset()
    assert set(posterior.data_vars) == {"mu", "sigma_f", "sigma_n", "lengthscale", "alpha", "beta"}
    assert posterior["lengthscale"].dims == ("chain", "draw", "real")
    assert posterior["alpha"].dims == posterior["beta"].dims == ("chain", "draw", "graph")
    assert tuple(posterior["real"].values) == Encoder(mixed_space()).real_names
    assert tuple(posterior["graph"].values) == Encoder(mixed_space()).graph_names
    assert posterior["mu"].shape == (2, 100)
    assert idata["log_likelihood"]["y"].shape == (2, 100, 12)
    assert float(idata["observed_data"]["y"].mean()) == pytest.approx(0, abs=1e-12)
    assert set(idata["sample_stats"].to_dataset().data_vars) >= {"lp", "energy", "diverging", "tree_depth"}
    assert mixed_posterior.y_sd > 0


def test_named_values_follow_from_their_coordinates(mixed_posterior):
    coordinates = mixed_posterior.idata["unconstrained_posterior"].to_dataset()
    draws = mixed_posterior.idata["posterior"].to_dataset()
    prior = mixed_posterior.model.priors["alpha"]
    np.testing.assert_allclose(draws["alpha"], np.exp(prior.mu + prior.sigma * coordinates["z_alpha"]))


@pytest.mark.stan
@pytest.mark.parametrize("fixture", ["branin_posterior", "mixed_posterior"])
def test_stan_and_numpy_predict_the_same(fixture, request):
    posterior = request.getfixturevalue(fixture)
    new = posterior.encoder.sobol(9, 123)
    here, there = posterior.predict(new), posterior.predict(new, engine="stan")
    for a, b in zip(here, there, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8 * posterior.y_sd)


def test_prediction_is_the_mixture_of_its_draws(mixed_posterior):
    prediction = mixed_posterior.predict(mixed_posterior.encoder.sobol(5, 8))
    assert prediction.draw_mean.shape == prediction.draw_sd.shape == (200, 5)
    np.testing.assert_allclose(prediction.mean, prediction.draw_mean.mean(axis=0))
    second_moment = np.mean(prediction.draw_sd**2 + prediction.draw_mean**2, axis=0)
    np.testing.assert_allclose(prediction.sd**2, second_moment - prediction.mean**2, rtol=1e-9)


def test_prediction_against_the_formulas_with_an_inverse(mixed_posterior):
    posterior = mixed_posterior
    new = posterior.encoder.encode(posterior.encoder.sobol(4, 5))
    prediction = posterior.predict(new)
    y = posterior.idata["observed_data"]["y"].values
    for i in (0, 57, 199):
        theta = {name: value[i] for name, value in posterior.draws.items()}
        inverse = np.linalg.inv(
            posterior.kernel.gram(posterior.train, posterior.train, theta) + theta["sigma_n"] ** 2 * np.eye(len(y))
        )
        cross = posterior.kernel.gram(posterior.train, new, theta)
        mean = theta["mu"] + cross.T @ inverse @ (y - theta["mu"])
        own = np.diag(posterior.kernel.gram(new, new, theta))
        variance = own - np.einsum("ij,ik,kj->j", cross, inverse, cross)
        np.testing.assert_allclose(prediction.draw_mean[i], posterior.y_mean + posterior.y_sd * mean, rtol=1e-7)
        np.testing.assert_allclose(prediction.draw_sd[i], posterior.y_sd * np.sqrt(variance), rtol=1e-5)


@pytest.mark.stan
def test_user_graphs_survive_saving(tmp_path):
    space = mixed_space()
    graphs = {"layers": "path", "act": nx.Graph([("relu", "tanh", {"weight": 2.0}), ("tanh", "gelu")])}
    encoder = sl.space.Encoder(space, graphs=graphs)
    configs = encoder.sobol(8, 1)
    post = sl.GaussianProcess(encoder).fit(configs, np.arange(8.0), method="map", seed=1)
    again = sl.Posterior.load(post.save(tmp_path / "fit"))
    assert again.encoder.graph_names == ("act", "layers", "size")
    np.testing.assert_array_equal(again.predict(configs).draw_mean, post.predict(configs).draw_mean)


def test_gradients_of_the_moments(branin_posterior):
    predictor = branin_posterior.predictor(7)
    encoder = branin_posterior.encoder
    values = np.random.default_rng(0).random((5, 2))
    from slayr_py.space import Encoded

    def at(v):
        return Encoded(v, np.ones(v.shape, dtype=bool), encoder)

    mean, variance, mean_gradient, variance_gradient = predictor.moments_with_gradient(at(values))
    np.testing.assert_allclose(predictor.moments(at(values))[0], mean)
    np.testing.assert_allclose(predictor.moments(at(values))[1], variance)
    h = 1e-6
    for j in range(2):
        step = h * np.eye(2)[j]
        above, below = predictor.moments(at(values + step)), predictor.moments(at(values - step))
        np.testing.assert_allclose(mean_gradient[..., j], (above[0] - below[0]) / (2 * h), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(variance_gradient[..., j], (above[1] - below[1]) / (2 * h), rtol=1e-5, atol=1e-5)


@pytest.mark.stan
@pytest.mark.parametrize("fixture", ["branin_posterior", "mixed_posterior"])
def test_pending_points_extend_the_factor_exactly(fixture, request):
    posterior = request.getfixturevalue(fixture)
    encoder, predictor = posterior.encoder, posterior.predictor(20)
    pending, elsewhere = encoder.encode(encoder.sobol(3, 50)), encoder.encode(encoder.sobol(6, 51))
    quick = predictor.with_pending(pending)
    believed = np.hstack([np.tile(posterior.data["y"], (len(predictor.factor), 1)), predictor.moments(pending)[0]])
    whole = Predictor(posterior.kernel, posterior.train.concatenate(pending), believed, predictor.draws)
    np.testing.assert_allclose(quick.factor, whole.factor, atol=1e-9)
    for a, b in zip(quick.moments_with_gradient(elsewhere), whole.moments_with_gradient(elsewhere), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)


def test_pending_points_shrink_the_variance_and_keep_the_mean(branin_posterior):
    predictor = branin_posterior.predictor(5)
    encoder = branin_posterior.encoder
    pending, elsewhere = encoder.encode(encoder.sobol(2, 50)), encoder.encode(encoder.sobol(6, 51))
    conditioned = predictor.with_pending(pending)
    before, after = predictor.moments(elsewhere), conditioned.moments(elsewhere)
    np.testing.assert_allclose(after[0], before[0], rtol=1e-6, atol=1e-6)
    assert np.all(after[1] <= before[1] + 1e-9)
    assert np.all(conditioned.moments(pending)[1] < predictor.draws["sigma_n"][:, None] ** 2 + 1e-9)


def test_nearly_singular_covariances_are_still_factored(branin_posterior):
    encoder = branin_posterior.encoder
    point = encoder.encode(encoder.sobol(1, 0))
    rows = point[[0] * 30]
    draws = {"mu": np.zeros(1), "sigma_f": np.ones(1), "sigma_n": np.array([1e-9]), "lengthscale": np.ones((1, 2))}
    mean, variance = Predictor(branin_posterior.kernel, rows, np.ones(30), draws).moments(point)
    assert mean[0, 0] == pytest.approx(1, abs=1e-3) and variance[0, 0] < 1e-3


def test_leave_one_out_is_in_the_users_units(branin_posterior):
    loo = branin_posterior.loo()
    assert loo.shape == (20,) and loo.dtype == np.float64
    assert loo.attrs["elpd"] == pytest.approx(float(loo.sum()))
    pointwise = branin_posterior.idata["log_likelihood"]["y"].values.reshape(-1, 20)
    # Without smoothing, importance sampling gives the harmonic mean; where k is small the two agree.
    harmonic = -np.log(np.mean(np.exp(-pointwise), axis=0)) - np.log(branin_posterior.y_sd)
    easy = loo["pareto_k"].values < 0.3
    assert easy.sum() >= 5
    np.testing.assert_allclose(loo.values[easy], harmonic[easy], atol=0.1)


def test_log_lik_is_the_density_of_each_point_given_the_others(branin_posterior):
    y = branin_posterior.idata["observed_data"]["y"].values
    theta = {name: value[11] for name, value in branin_posterior.draws.items()}
    train = branin_posterior.train
    k = branin_posterior.kernel.gram(train, train, theta) + theta["sigma_n"] ** 2 * np.eye(20)
    joint = multivariate_normal(np.full(20, theta["mu"]), k).logpdf(y)
    for i in (0, 7, 19):
        rest = np.arange(20) != i
        others = multivariate_normal(np.full(19, theta["mu"]), k[np.ix_(rest, rest)]).logpdf(y[rest])
        log_lik = branin_posterior.idata["log_likelihood"]["y"].values[0, 11, i]
        assert log_lik == pytest.approx(joint - others, abs=1e-7)


def test_diagnostics_of_a_good_fit(branin_posterior):
    check = branin_posterior.check()
    assert check.ok, check.messages
    assert check.rhat_max < 1.03 and check.ess_bulk_min > 100 and check.ebfmi_min > 0.3
    summary = arviz().summary(branin_posterior.to_arviz(), round_to="none")
    assert check.rhat_max == pytest.approx(summary["r_hat"].max(), abs=1e-9)
    assert check.ess_bulk_min == pytest.approx(summary["ess_bulk"].min())
    assert str(check).startswith("rhat 1.0")


@pytest.mark.stan
def test_diagnostics_of_a_bad_fit(branin_data):
    space, configs, y = branin_data
    check = sl.GaussianProcess(space).fit(configs, y, chains=2, warmup=1, draws=20, seed=1).check()
    assert not check.ok and check.messages
    assert json.loads(json.dumps(check.asdict()))["ok"] is False


def test_save_and_load(mixed_posterior, tmp_path):
    folder = mixed_posterior.save(tmp_path / "fit")
    assert sorted(p.name for p in folder.iterdir()) == ["data.json", "posterior.nc", "record.json"]
    again = sl.Posterior.load(folder)
    assert again.idata.equals(mixed_posterior.idata)
    assert again.record == json.loads(json.dumps(mixed_posterior.record))
    assert again.check() == mixed_posterior.check() or str(again.check()) == str(mixed_posterior.check())
    new = Encoder(mixed_space()).sobol(3, 4)
    assert np.array_equal(again.predict(new).mean, mixed_posterior.predict(new).mean)
    np.testing.assert_allclose(again.predict(new, engine="stan").mean, again.predict(new).mean, rtol=1e-8)


def test_what_cannot_be_loaded_or_saved(tmp_path, mixed_posterior):
    with pytest.raises(sl.StorageError, match="nowhere"):
        sl.Posterior.load(tmp_path / "nowhere")
    (tmp_path / "record.json").write_text("{}")
    with pytest.raises(sl.StorageError, match="not a readable saved posterior"):
        sl.Posterior.load(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(sl.StorageError, match="cannot save"):
        mixed_posterior.save(tmp_path / "file")


def test_the_record_says_how_it_came_about(branin_posterior):
    record = branin_posterior.record
    assert record["program"]["name"] == "matern_gp" and len(record["program"]["source_sha256"]) == 64
    assert record["arguments"]["seed"] == 5 and record["arguments"]["stan_seed"] == 6
    assert record["kernel"] == {"name": "matern", "options": {"p": 2}}
    assert len(record["adaptation"]) == 2 and record["adaptation"][0]["step_size"] > 0
    json.dumps(record)


def test_unknown_engine(mixed_posterior):
    with pytest.raises(sl.DataError, match="unknown engine 'torch'"):
        mixed_posterior.predict(mixed_posterior.train, engine="torch")


@pytest.mark.stan
def test_nothing_is_left_behind_or_logged(branin_data, caplog, capfd, tmp_path, monkeypatch):
    space, configs, y = branin_data
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with caplog.at_level(logging.INFO):
        sl.GaussianProcess(space).fit(configs[:3], y[:3], chains=1, warmup=20, draws=10)
    assert not list(tmp_path.iterdir())
    assert not caplog.records and capfd.readouterr() == ("", "")


def test_resampling_follows_the_weights():
    rng = np.random.default_rng(0)
    draws = rng.normal(0.5, 1.2, 20_000)
    log_ratio = norm(0, 1).logpdf(draws) - norm(0.5, 1.2).logpdf(draws)
    rows, pareto_k, _ = smoothed_resample(log_ratio, 20_000, rng)
    assert pareto_k < 0.7
    assert draws[rows].mean() == pytest.approx(0, abs=0.04)
    assert draws[rows].std() == pytest.approx(1, abs=0.04)
    bad = np.where(np.arange(20_000) < 10, np.inf, log_ratio)
    assert smoothed_resample(bad, 100, rng)[0].min() >= 10
    with pytest.raises(ValueError, match="only 2"):
        smoothed_resample(np.array([0.0, 0.0, np.nan, -np.inf]), 4, rng)


def test_mixture_moments():
    mean, sd = np.array([[0.0], [2.0]]), np.array([[1.0], [3.0]])
    assert [float(v[0]) for v in mixture_moments(mean, sd)] == [1.0, pytest.approx(np.sqrt(6))]
