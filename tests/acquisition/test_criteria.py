from __future__ import annotations

import numpy as np
import pytest

from slayr_py import DataError
from slayr_py.acquisition import Acquisition, LowerConfidenceBound, from_name, names
from slayr_py.acquisition.criteria import State
from slayr_py.inference.prediction.predictor import Moments

STATE = State(best=-0.4, t=3, dimension=2)


def moments(x):
    """Artificial moments of four draws at points (m, 2), and their gradients."""
    phase = np.arange(4)[:, None]
    mean = np.sin(x[:, 0] + phase) + 0.5 * x[:, 1]
    mean_gradient = np.stack([np.cos(x[:, 0] + phase), np.full((4, len(x)), 0.5)], axis=-1)
    variance = 0.1 + x[:, 0] ** 2 + np.cos(x[:, 1] + phase) ** 2
    slope = np.stack([np.tile(2 * x[:, 0], (4, 1)), -np.sin(2 * (x[:, 1] + phase))], axis=-1)
    return Moments(mean, variance, mean_gradient, slope)


@pytest.mark.parametrize("name", names())
def test_transformed_with_gradient_agrees_with_finite_differences(name):
    criterion = from_name(name)
    x = np.random.default_rng(0).normal(size=(6, 2))
    transformed, gradient = criterion.transformed_with_gradient(moments(x), STATE)
    np.testing.assert_allclose(transformed, criterion.transformed(*moments(x)[:2], STATE), rtol=1e-12)
    h = 1e-6
    for j in range(2):
        step = h * np.eye(2)[j]
        above, below = (criterion.transformed(*moments(x + s)[:2], STATE) for s in (step, -step))
        np.testing.assert_allclose(gradient[:, j], (above - below) / (2 * h), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("variance", [1e-16, 0.0])
def test_gradient_near_an_observed_point_is_finite_and_points_away(name, variance):
    """Without noise the standard deviation there is 0, and the logarithm of the improvement would be infinite."""
    mean = np.full((2, 1), 3.0)
    one = np.ones((2, 1, 1))
    transformed, gradient = from_name(name).transformed_with_gradient(
        Moments(mean, np.full((2, 1), variance), 0 * one, one), STATE
    )
    assert np.all(np.isfinite(transformed)) and np.all(np.isfinite(gradient)) and gradient[0, 0] > 0


@pytest.mark.parametrize("name", names())
def test_transformed_and_criterion_have_the_same_order(name):
    criterion = from_name(name)
    mean, variance, _, _ = moments(np.random.default_rng(1).normal(size=(40, 2)))
    value = criterion.value(mean, np.sqrt(variance), STATE)
    transformed = criterion.transformed(mean, variance, STATE)
    assert np.array_equal(np.argsort(value), np.argsort(transformed))


def test_names_and_options():
    assert repr(from_name("lcb", delta=0.2)) == "LowerConfidenceBound(delta=0.2, dimension=None)"
    criterion = LowerConfidenceBound(delta=0.5, dimension=100)
    assert from_name(criterion) is criterion and isinstance(criterion, Acquisition)
    for wrong, words in (("expected", "unknown acquisition 'expected'"), ("lbc", "did you mean 'lcb'"), (3, "3")):
        with pytest.raises(DataError, match=words):
            from_name(wrong)
    with pytest.raises(DataError, match="delta"):
        from_name("lcb", delta=1.0)
    with pytest.raises(DataError, match="does not take"):
        from_name("ei", delta=0.1)
    with pytest.raises(DataError, match="pass them to it"):
        from_name(criterion, delta=0.1)
