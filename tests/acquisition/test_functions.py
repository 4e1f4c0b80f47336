from __future__ import annotations

import numpy as np
import pytest

from slayr_py import DataError
from slayr_py.acquisition import (
    beta_schedule,
    expected_improvement,
    from_name,
    log_expected_improvement,
    lower_confidence_bound,
    probability_of_improvement,
)

RNG = np.random.default_rng(0)
MEAN = RNG.normal(size=7)
SD = RNG.uniform(0.5, 2, size=7)


def test_improvements_agree_with_simulation():
    n = 400_000
    normal = np.random.default_rng(1).standard_normal((n, 1))
    gain = np.maximum(0.3 - (MEAN + SD * normal), 0)
    error = gain.std(axis=0) / np.sqrt(n)
    assert np.all(np.abs(expected_improvement(MEAN, SD, 0.3) - gain.mean(axis=0)) < 4.5 * error)
    share = (gain > 0).mean(axis=0)
    error = np.sqrt(share * (1 - share) / n)
    assert np.all(np.abs(probability_of_improvement(MEAN, SD, 0.3) - share) < 4.5 * error)


def test_log_expected_improvement():
    wanted = np.log(expected_improvement(MEAN, SD, 0.3))
    np.testing.assert_allclose(log_expected_improvement(MEAN, SD, 0.3), wanted, rtol=1e-12)
    far = log_expected_improvement([100.0, 1e4], [1.0, 1.0], 0.0)
    assert np.all(np.isfinite(far)) and far[1] < far[0] < -4999


def test_draws_are_averaged():
    mean = RNG.normal(size=(50, 7))
    sd = RNG.uniform(0.1, 2, size=(50, 7))
    single = np.array([expected_improvement(m, s, 0.1) for m, s in zip(mean, sd, strict=True)])
    np.testing.assert_allclose(expected_improvement(mean, sd, 0.1), single.mean(axis=0))
    np.testing.assert_allclose(np.exp(log_expected_improvement(mean, sd, 0.1)), single.mean(axis=0))
    probability = np.array([probability_of_improvement(m, s, 0.1) for m, s in zip(mean, sd, strict=True)])
    np.testing.assert_allclose(probability_of_improvement(mean, sd, 0.1), probability.mean(axis=0))


def test_the_bound_uses_moments_of_the_mixture():
    mean = RNG.normal(size=(50, 7))
    sd = RNG.uniform(0.1, 2, size=(50, 7))
    total = np.sqrt((sd**2).mean(axis=0) + mean.var(axis=0))
    np.testing.assert_allclose(lower_confidence_bound(mean, sd, 4.0), -(mean.mean(axis=0) - 2 * total))
    np.testing.assert_allclose(lower_confidence_bound(MEAN, SD, 0.0), -MEAN)


def test_points_with_zero_standard_deviation():
    assert expected_improvement([1.0, 3.0], [0.0, 0.0], 2.0).tolist() == [1.0, 0.0]
    assert probability_of_improvement([1.0, 3.0], [0.0, 0.0], 2.0).tolist() == [1.0, 0.0]
    assert log_expected_improvement([1.0, 3.0], [0.0, 0.0], 2.0).tolist() == [0.0, -np.inf]
    assert expected_improvement(1.0, 0.0, 2.0) == 1.0


@pytest.mark.parametrize(("mean", "sd"), [(-1.0, 1e-310), (-1e10, 1e-300), (-2.0, 1e-160), (3.0, 1e-310)])
def test_a_vanishing_standard_deviation_is_that_of_a_known_value(mean, sd):
    gain = max(-mean, 0.0)
    log_gain = np.log(gain) if gain else -np.inf
    assert expected_improvement([mean], [sd], 0.0).tolist() == [gain]
    assert log_expected_improvement([mean], [sd], 0.0) == pytest.approx([log_gain])
    assert probability_of_improvement([mean], [sd], 0.0).tolist() == [float(gain > 0)]
    draws = [[mean], [3.0]], [[sd], [0.0]]
    assert expected_improvement(*draws, 0.0).tolist() == [gain / 2]
    assert log_expected_improvement(*draws, 0.0) == pytest.approx([log_gain - np.log(2)])


def test_beta_schedule():
    assert beta_schedule(3, 2, 0.1) == pytest.approx(2 * np.log(2 * 9 * np.pi**2 / 0.6))
    # As the notes claim, positive for every delta in (0, 1), D >= 1, t >= 1.
    for delta in (1e-300, 1e-3, 0.5, 1 - 1e-16):
        for t in (1, 2, 10**6):
            for dimension in (1, 5, 10**9):
                assert beta_schedule(t, dimension, delta) > 0


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5, float("nan"), "0.1", None])
def test_delta_outside_the_unit_interval_raises(delta):
    with pytest.raises(DataError, match="delta must be a single number in"):
        beta_schedule(1, 1, delta)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: beta_schedule(0, 1, 0.1), "t counts"),
        (lambda: beta_schedule(1, 0, 0.1), "dimension"),
        (lambda: expected_improvement([0.0], [-1.0], 0), "negative"),
        (lambda: expected_improvement([np.nan], [1.0], 0), "NaN"),
        (lambda: expected_improvement([0.0], [1.0], np.nan), "best is NaN"),
        (lambda: expected_improvement([0.0, 1.0], [1.0, 1.0, 1.0], 0), "agree"),
        (lambda: lower_confidence_bound([0.0], [1.0], -1), "beta"),
    ],
)
def test_invalid_arguments_raise(call, words):
    with pytest.raises(DataError, match=words):
        call()


def test_arguments_of_other_shapes_and_types_are_named():
    with pytest.raises(DataError, match=r"best has shape \(3,\) and mean \(2, 4\); they must agree"):
        expected_improvement(np.zeros((2, 4)), np.ones((2, 4)), np.zeros(3))
    with pytest.raises(DataError, match="dimension must be at least 1, got '3'"):
        from_name("lcb", dimension="3")
