"""Peaks of the periodogram: known periods under noise and trends, and data without any."""

from __future__ import annotations

import numpy as np
import pytest

from slayr_py.errors import DataError
from slayr_py.kernels.expressions.periodogram import peaks


def sine(x, period, phase=0.3):
    return np.sin(2 * np.pi * x / period + phase)


@pytest.mark.parametrize("seed", range(5))
def test_two_sines_in_noise_at_uneven_places(seed):
    rng = np.random.default_rng(seed)
    x = rng.random(150)
    y = sine(x, 0.11) + 0.6 * sine(x, 0.037, 1.0) + 0.3 * rng.normal(size=150)
    found = peaks(x, y, 2)
    np.testing.assert_allclose(found, [0.11, 0.037], rtol=0.01)
    order = rng.permutation(150)
    np.testing.assert_allclose(peaks(x[order], 3e200 * y[order] - 5e200, 2), found, rtol=1e-8)
    np.testing.assert_allclose(peaks(7 * x - 3, y, 2), 7 * found, rtol=1e-8)


def mauna_loa_like(curvature):
    """Monthly values of 44 years with gaps, in the amplitudes of Mauna Loa; the span is 43.75 years."""
    rng = np.random.default_rng(1)
    years = np.delete(np.arange(526) / 12, [2, 7, 71, 72, 73])
    season = 2.8 * sine(years, 1.0) + 0.8 * sine(years, 0.5)
    slow = 0.05 * np.cumsum(rng.normal(size=len(years)))
    return years / 43.75, 315 + 0.75 * years + curvature * years**2 + season + slow + 0.2 * rng.normal(size=len(years))


@pytest.mark.parametrize("curvature", [0.0, 0.0125, 1.0])
def test_a_trend_does_not_hide_the_season(curvature):
    x, y = mauna_loa_like(curvature)
    found = 43.75 * peaks(x, y, 3)
    np.testing.assert_allclose(found[0], 1.0, rtol=0.002)
    assert np.min(np.abs(found - 0.5)) < 0.005


def test_side_lobes_are_no_peaks():
    # Side lobes of the first sine have 4.7%, 1.6%, .. of its power, the second sine has 2.3%.
    x = np.linspace(0, 1, 400)
    found = peaks(x, sine(x, 0.05) + 0.15 * sine(x, 0.01), 2)
    np.testing.assert_allclose(found, [0.05, 0.01], rtol=0.002)
    every = 1 / peaks(x, sine(x, 0.05), 1000)
    assert 5 < len(every) < 200 and np.min(np.diff(np.sort(every))) > 2


def test_repeated_coordinates_count_once():
    rng = np.random.default_rng(2)
    x = np.repeat(np.arange(40) / 39, 20)
    y = sine(x, 0.2) + 0.5 * rng.normal(size=800)
    found = peaks(x, y, 1000)
    np.testing.assert_allclose(found[0], 0.2, rtol=0.01)
    assert np.min(found) > 2 / 39 and np.max(found) < 1


def test_many_values_have_a_shortest_period():
    x = np.random.default_rng(3).random(2400)
    found = peaks(x, sine(x, 0.0311), 1000)
    np.testing.assert_allclose(found[0], 0.0311, rtol=1e-3)
    assert np.min(found) > 1 / 1001


@pytest.mark.parametrize("n", range(5, 12))
def test_few_values_have_few_peaks(n):
    rng = np.random.default_rng(n)
    x = rng.random(n)
    found = peaks(x, rng.normal(size=n), 1000)
    assert found.ndim == 1 and len(found) < n
    assert np.all((found > 0) & (found < np.ptp(x)))


@pytest.mark.parametrize(
    ("x", "y"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([0.5], [1.0], id="one value"),
        pytest.param([0.5] * 10, np.arange(10.0), id="one place"),
        pytest.param([0, 0.3, 0.5, 1] * 3, np.arange(12.0) ** 3, id="four places"),
        pytest.param(np.linspace(0, 1, 20), np.zeros(20), id="zeros"),
        pytest.param(np.linspace(0, 1, 20), np.full(20, 0.1), id="a constant that rounds"),
        pytest.param(np.linspace(0, 1, 20), 0.1 + 0.2 * np.linspace(0, 1, 20), id="a line"),
        pytest.param(np.linspace(0, 1, 20), 1e5 * np.linspace(-1, 2, 20) ** 2, id="a parabola"),
    ],
)
def test_no_peaks(x, y):
    found = peaks(np.array(x, dtype=float), np.array(y, dtype=float), 3)
    assert found.shape == (0,) and found.dtype == np.float64


def test_clustered_coordinates_are_no_numerical_problem():
    x = np.array([0, 1e-15, 2e-15, 3e-15, 4e-15, 1])
    assert np.all(np.isfinite(peaks(x, np.array([1.0, -1, 2, 0, 1, 3]), 3)))


@pytest.mark.parametrize("count", [0, -1, 1.5, True])
def test_counts_are_positive_integers(count):
    with pytest.raises(DataError, match="count must be an integer >= 1"):
        peaks(np.linspace(0, 1, 20), np.linspace(0, 1, 20), count)
