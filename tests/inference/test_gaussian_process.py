"""Fits of Gaussian processes: options, unusual data, and predictions of a known function."""

from __future__ import annotations

import numpy as np
import pytest
from testing_fits import QUICK, quick_fit
from testing_spaces import plain_space

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
@pytest.mark.parametrize("method", ["nuts", "pathfinder", "laplace", "carried"])
def test_a_fit_with_fixed_hyperparameters_has_the_prediction_of_the_mode(method):
    gp = sl.GaussianProcess(plain_space(), priors={"lengthscale": 0.3, "sigma_f": 1.0, "sigma_n": 0.1, "mu": 0.0})
    configs = Encoder(plain_space()).sobol(6, 1)
    y = [1.0, 3.0, 2.0, 5.0, 4.0, 3.0]
    posterior = gp.fit(configs, y, method=method)
    assert posterior.check().ok
    wanted = gp.fit(configs, y, method="map").predict(configs)
    for name in ("mean", "sd", "observation_sd"):
        np.testing.assert_allclose(getattr(posterior.predict(configs), name), getattr(wanted, name), rtol=1e-9)


@pytest.mark.stan
@pytest.mark.parametrize("warp", ["none", "log"])
def test_maximised_values_are_fitted_like_the_negated_ones_to_the_last_bit(warp, tmp_path):
    y = np.array([1.0, 3.0, 2.0, 5.0, 4.0, 3.0])
    gp = sl.GaussianProcess(plain_space(), warp=warp)
    configs = Encoder(plain_space()).sobol(6, 1)
    negated = gp.fit(configs, -y, **QUICK)
    posterior = gp.fit(configs, y, maximize=True, **QUICK)
    # The second value is the mean, standardised to 0: its bits are those of the negated values too.
    for key in ("draws_sha256", "data_sha256"):
        assert posterior.record[key] == negated.record[key]
    assert posterior.maximize and posterior.record["maximize"] and not negated.maximize
    assert posterior.y_mean == -negated.y_mean == 3.0 and posterior.y_sd == -negated.y_sd < 0
    assert float(posterior.idata["constant_data"]["y_sd"]) == posterior.y_sd
    np.testing.assert_array_equal(posterior.loo(), negated.loo())
    again = sl.Posterior.load(posterior.save(tmp_path))
    assert again.maximize and np.array_equal(again.predict(configs).mean, -negated.predict(configs).mean)


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


@pytest.mark.parametrize("method", ["nuts", "laplace", "map"])
def test_a_start_is_a_warm_start(method):
    with pytest.raises(sl.DataError, match=r"start is 'nonsense'; give the warm_start\(\) of a posterior"):
        sl.GaussianProcess({"x": (0.0, 1.0)}).fit([{"x": 0.1}, {"x": 0.5}], [1.0, 2.0], start="nonsense", method=method)


def test_maximize_is_true_or_false():
    with pytest.raises(sl.DataError, match="maximize must be True or False, got 'yes'"):
        quick_fit([1.0, 2.0], maximize="yes")
