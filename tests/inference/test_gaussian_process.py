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


def test_options_and_single_keywords_exclude_each_other():
    with pytest.raises(sl.DataError, match="remove chains, warmup, draws, or options="):
        quick_fit([1.0, 2.0], options=FitOptions())
