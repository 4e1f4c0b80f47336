"""Scores and folds of cross-validated Gaussian processes."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import ConfigurationSpace
from scipy.stats import norm
from sklearn.model_selection import KFold

import slayr_py as sl
from slayr_py.inference.prediction.distribution import Latent, Prediction
from slayr_py.inference.validation.cross_validation import predictive_scores
from slayr_py.space import Encoder

SPACE = ConfigurationSpace({"x": (0.0, 1.0)})
SHORT = {"method": "laplace", "draws": 50}


@pytest.fixture(scope="module")
def smooth():
    """25 noisy observations of a smooth function, in units of hundreds."""
    configs = Encoder(SPACE).sobol(25, 4)
    x = np.array([config["x"] for config in configs])
    return configs, 100 * np.sin(7 * x) + 5 * np.random.default_rng(0).normal(size=25)


def test_scores_are_those_of_the_mixture_of_observations():
    rng = np.random.default_rng(1)
    mean = rng.normal(size=(50, 8))
    sd = rng.random((50, 8))
    noise = rng.random(50)
    y = rng.normal(size=8)
    nothing = np.zeros(len(mean))
    prediction = Prediction.from_latent(Latent(mean / 3, sd / 3, None, 0.0, 3.0, noise, nothing))
    posterior = SimpleNamespace(predict=lambda _: prediction)
    scores = predictive_scores(posterior, None, y, level=0.5)
    spread = np.sqrt(sd**2 + (3 * noise[:, None]) ** 2)
    assert scores["log_predictive_density"] == pytest.approx(np.log(norm.pdf(y, mean, spread).mean(axis=0)).sum())
    assert scores["rmse"] == pytest.approx(np.sqrt(np.mean((mean.mean(axis=0) - y) ** 2)))
    drawn = rng.normal(mean, spread, size=(4000, 50, 8)).reshape(-1, 8)
    low, high = np.quantile(drawn, [0.25, 0.75], axis=0)
    assert scores["coverage"] == np.mean((low <= y) & (y <= high))


@pytest.mark.stan
def test_the_density_of_noise_free_observations_has_the_noise_floor_of_leave_one_out():
    x = np.linspace(0, 1, 20)
    gp = sl.GaussianProcess(SPACE, "SE", priors={"sigma_n": 1e-6})
    configs = [{"x": v} for v in x]
    folds = gp.cross_validate(configs, np.sin(6 * x), cv=20, progress=False, **SHORT)["log_predictive_density"].sum()
    assert folds == pytest.approx(gp.fit(configs, np.sin(6 * x), **SHORT).loo().sum(), abs=2)


@pytest.mark.stan
def test_one_row_a_fold_in_the_users_units(smooth):
    configs, y = smooth
    gp = sl.GaussianProcess(SPACE)
    frame = gp.cross_validate(configs, y, cv=3, progress=False, method="map")
    assert 0.6 <= frame["coverage"].mean() <= 1.0 and frame["rmse"].max() < 40
    assert list(frame.columns) == ["n_test", "log_predictive_density", "rmse", "coverage", "fit_time", "seed", "ok"]
    assert frame["n_test"].tolist() == [9, 8, 8] and frame["fit_time"].min() > 0 and frame["seed"].is_unique


@pytest.mark.stan
def test_ordering_of_models_is_that_of_leave_one_out(smooth):
    configs, y = smooth
    kernels = {
        "smooth": (sl.kernels.Matern(p=2), {}),
        "rough": (sl.kernels.Matern(p=0), {}),
        "noise alone": (sl.kernels.Matern(p=2), {"sigma_n": sl.LogNormal(0.0, 0.05)}),
    }
    folds = {}
    loo = {}
    for name, (kernel, priors) in kernels.items():
        gp = sl.GaussianProcess(SPACE, kernel=kernel, priors=priors)
        frame = gp.cross_validate(configs, y, cv=3, progress=False, **SHORT)
        folds[name] = frame["log_predictive_density"].sum()
        loo[name] = gp.fit(configs, y, **SHORT).loo().attrs["elpd"]
    assert sorted(folds, key=folds.get) == sorted(loo, key=loo.get) == ["noise alone", "rough", "smooth"]
    assert loo["smooth"] == pytest.approx(folds["smooth"], abs=15)


@pytest.mark.stan
def test_a_fold_can_be_fitted_again_from_its_seed(smooth, capsys):
    configs, y = smooth
    gp = sl.GaussianProcess(SPACE)
    cv = KFold(2, shuffle=True, random_state=5)
    scores = ["rmse", "log_predictive_density"]
    frame = gp.cross_validate(configs, y, cv=cv, scoring=scores, seed=3, method="map")
    assert list(frame.columns) == ["n_test", *scores, "fit_time", "seed", "ok"]
    assert "2/2" in capsys.readouterr().err
    for fold, (train, test) in enumerate(cv.split(y)):
        points = gp.encoder.encode(configs)
        posterior = gp.fit(points[train], y[train], method="map", seed=int(frame.loc[fold, "seed"]))
        again = predictive_scores(posterior, points[test], y[test])
        assert {name: again[name] for name in scores} == frame.loc[fold, scores].to_dict()


@pytest.mark.stan
def test_containers_of_configurations_and_folds_by_number(smooth):
    configs, y = smooth
    gp = sl.GaussianProcess(SPACE)
    quick = {"cv": 2, "scoring": "rmse", "progress": False, "method": "map"}
    frame = pd.DataFrame([dict(config) for config in configs])
    first = gp.cross_validate(configs, y, **quick)["rmse"]
    for points in ([dict(config) for config in configs], frame, frame.to_numpy(), gp.encoder.encode(configs)):
        np.testing.assert_array_equal(gp.cross_validate(points, y, **quick)["rmse"], first)
    other = gp.cross_validate(configs, y, seed=2, **quick)["rmse"]
    assert not np.array_equal(other, first)


@pytest.mark.stan
def test_errors_known_in_one_fold_leave_the_warp_out_of_all(smooth):
    configs, y = smooth
    folds = [(np.arange(5, 25), np.arange(5)), (np.arange(20), np.arange(20, 25))]
    errors = np.r_[np.full(5, 20.0), np.zeros(20)]  # none of the first fit
    options = {"cv": folds, "progress": False, "method": "map", "y_sd": errors}
    scores = [
        sl.GaussianProcess(SPACE, warp=warp).cross_validate(configs, y, **options).drop(columns="fit_time")
        for warp in ("auto", "none")
    ]
    pd.testing.assert_frame_equal(*scores)
    with pytest.raises(sl.DataError, match="warp='log' cannot be combined with known errors"):
        sl.GaussianProcess(SPACE, warp="log").cross_validate(configs, y, **options)


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"scoring": "rsme"}, sl.DataError, "'rsme'; did you mean 'rmse'"),
        ({"seed": -1}, sl.DataError, "seed must be an integer >= 0, got -1"),
        ({"level": 1.0}, sl.DataError, r"level .* 1\.0"),
        ({"y": np.ones(24)}, sl.DataError, r"\(24,\) for 25 configurations"),
        ({"y": np.r_[np.ones(24), np.nan]}, sl.DataError, r"y\[24\] is nan"),
        ({"y": ["high"] * 25}, sl.DataError, "'high'"),
        ({"configs": [{"z": 1.0}] * 25}, sl.SpaceError, "'z'"),
        ({"cv": 26}, sl.DataError, "cv is 26; give a number of folds from 2 to the number of observations, 25"),
        ({"progress": print}, sl.DataError, "progress must be True or False"),
    ],
)
def test_illegal_arguments(smooth, change, error, match):
    configs, y = smooth
    with pytest.raises(error, match=match):
        sl.GaussianProcess(SPACE).cross_validate(**{"configs": configs, "y": y, "progress": False} | change)


def test_binary_observations_have_no_scores(smooth):
    configs, y = smooth
    with pytest.raises(sl.DataError, match="cross_validate is not supported with likelihood='probit'; compare"):
        sl.GaussianProcess(SPACE, likelihood="probit").cross_validate(configs, y > 0, progress=False)
