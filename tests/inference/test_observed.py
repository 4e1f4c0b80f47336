"""Containers of configurations, and standardised targets."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from testing_fits import quick_fit
from testing_spaces import plain_space

import slayr_py as sl
from slayr_py.inference.observed import standardisation
from slayr_py.space import Encoder


def test_standardisation():
    y = np.array([1.0, 2.0, 4.0])
    assert standardisation(y) == (pytest.approx(7 / 3), pytest.approx(np.std(y, ddof=1)))


@pytest.mark.stan
@pytest.mark.parametrize(
    ("scale", "method", "rtol"), [(2.0**27, "nuts", 1e-12), (1e8, "map", 1e-3), (1e-8, "map", 1e-3)]
)
def test_the_scale_of_y_does_not_matter(scale, method, rtol):
    # Powers of two leave all bits of the standardised y. Other factors change the last, and where L-BFGS stops.
    y = np.array([1.0, 3.0, 2.0, 5.0, 4.0])
    plain = quick_fit(y, method=method)
    scaled = quick_fit(y * scale, method=method)
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
        ({"y": [1.0]}, sl.DataError, r"shape \(1,\) for 2 configurations"),
        ({"y": [1.0, np.nan]}, sl.DataError, r"y\[1\] is nan"),
        ({"y": [1.0, np.inf]}, sl.DataError, r"y\[1\] is inf"),
        ({"y": ["a", "b"]}, sl.DataError, "numbers"),
        ({"y": [], "configs": []}, sl.DataError, "y is empty"),
        ({"configs": [{"x": np.nan, "z": 0.0}] * 2}, sl.SpaceError, "nan"),
        ({"configs": [{"x": 0.5}] * 2}, sl.SpaceError, "z"),
    ],
)
def test_invalid_observations(change, error, words):
    arguments = {"configs": [{"x": 0.5, "z": 0.0}, {"x": 0.1, "z": 1.0}], "y": [1.0, 2.0]} | change
    with pytest.raises(error, match=words):
        quick_fit(**arguments)
