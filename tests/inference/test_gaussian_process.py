"""Fits of Gaussian processes: options, unusual data, and predictions of a known function."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace
from testing_fits import QUICK, quick_fit
from testing_spaces import branin, plain_space

import slayr_py as sl
from slayr_py.inference import FitOptions
from slayr_py.space import Encoder


@pytest.mark.stan
def test_options_are_the_same_as_single_keywords():
    y = [1.0, 3.0, 2.0, 5.0]
    gp = sl.GaussianProcess(plain_space())
    together = gp.fit(Encoder(plain_space()).sobol(4, 1), y, options=FitOptions(**QUICK))
    assert together.record["draws_sha256"] == quick_fit(y).record["draws_sha256"]


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
@pytest.mark.parametrize("warp", ["none", "log"])
def test_maximised_values_are_fitted_like_the_negated_ones_and_predicted_in_their_own_direction(warp, tmp_path):
    y = np.array([1.0, 3.0, 2.0, 5.0, 4.0, 3.0])
    new = Encoder(plain_space()).sobol(7, 9)
    gp = sl.GaussianProcess(plain_space(), warp=warp)
    configs = Encoder(plain_space()).sobol(6, 1)
    negated = gp.fit(configs, -y, **QUICK)
    posterior = gp.fit(configs, y, maximize=True, **QUICK)
    assert posterior.record["draws_sha256"] == negated.record["draws_sha256"]
    # The second value is the mean, standardised to 0: its bits are those of the negated values too.
    assert posterior.record["data_sha256"] == negated.record["data_sha256"]
    assert posterior.maximize and posterior.record["maximize"] and not negated.maximize
    assert posterior.y_mean == -negated.y_mean == 3.0 and posterior.y_sd == -negated.y_sd < 0
    assert float(posterior.idata["constant_data"]["y_sd"]) == posterior.y_sd
    there = negated.predict(new)
    here = posterior.predict(new)
    np.testing.assert_array_equal(here.mean, -there.mean)
    np.testing.assert_array_equal(here.sd, there.sd)
    np.testing.assert_allclose(here.interval(0.8), [-bound for bound in there.interval(0.8)[::-1]], rtol=1e-9)
    assert np.all(here.interval(0.8)[0] < here.interval(0.8)[1])
    np.testing.assert_array_equal(posterior.loo(), negated.loo())
    again = sl.Posterior.load(posterior.save(tmp_path))
    assert again.maximize and np.array_equal(again.predict(new).mean, here.mean)


@pytest.mark.stan
def test_maximize_is_passed_through_by_cross_validation():
    configs = Encoder(plain_space()).sobol(8, 1)
    y = np.array([1.0, 3.0, 2.0, 5.0, 4.0, 3.5, 1.5, 2.5])
    options = {"cv": 2, "progress": False, "method": "map"}
    gp = sl.GaussianProcess(plain_space(), warp="log")
    here = gp.cross_validate(configs, y, maximize=True, **options).drop(columns="fit_time")
    there = gp.cross_validate(configs, -y, **options).drop(columns="fit_time")
    assert np.allclose(here["rmse"], there["rmse"]) and here["coverage"].tolist() == there["coverage"].tolist()
    assert np.allclose(here["log_predictive_density"], there["log_predictive_density"])


def test_maximize_is_true_or_false():
    with pytest.raises(sl.DataError, match="maximize must be True or False, got 'yes'"):
        quick_fit([1.0, 2.0], maximize="yes")


def test_options_and_single_keywords_exclude_each_other():
    with pytest.raises(sl.DataError, match="remove chains, warmup, draws, or options="):
        quick_fit([1.0, 2.0], options=FitOptions())
