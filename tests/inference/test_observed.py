"""Containers of configurations, and standardised targets."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from testing_fits import quick_fit
from testing_spaces import plain_space

from slayr_py.inference.observed import standardisation
from slayr_py.space import Encoder


def test_standardisation():
    y = np.array([1.0, 2.0, 4.0])
    assert standardisation(y) == (pytest.approx(7 / 3), pytest.approx(np.std(y, ddof=1)))


@pytest.mark.stan
@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e300])
def test_an_observation_with_a_huge_known_error_tells_nothing(scale):
    y = scale * np.array([1.0, 3.0, 2.0, 5.0, 4.0])
    configs = Encoder(plain_space()).sobol(7, 9)
    huge, large = (
        quick_fit(y, method="map", y_sd=np.array([0.0, 0.0, error, 0.0, 0.0])).predict(configs).mean / scale
        for error in (1e308, min(1e8 * scale, 1e308))
    )
    np.testing.assert_allclose(huge, large, rtol=1e-2)


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
def test_configurations_may_be_frames_arrays_or_mappings():
    configs = Encoder(plain_space()).sobol(4, 1)
    y = [1.0, 3.0, 2.0, 5.0]
    frame = pd.DataFrame([dict(c) for c in configs])
    wanted = quick_fit(y, configs=configs).draws["mu"]
    assert np.array_equal(quick_fit(y, configs=frame).draws["mu"], wanted)
    assert np.array_equal(quick_fit(y, configs=frame[["x", "z"]].to_numpy()).draws["mu"], wanted)
