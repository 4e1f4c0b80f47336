from __future__ import annotations

import mpmath
import numpy as np
import pytest

from slayr_py.inference.prediction.comparison import Compared, log_improvement


def exact(gap, sd):
    with mpmath.workdps(60):
        z = mpmath.mpf(gap) / sd
        return float(mpmath.log(sd * (mpmath.npdf(z) + z * mpmath.ncdf(z))))


@pytest.mark.parametrize("gap", [0.5, 0.0, -1.0, -30.0])
def test_log_improvement(gap):
    assert log_improvement(np.array([gap]), np.array([1.5]))[0] == pytest.approx(exact(gap, 1.5), rel=1e-11)


def test_log_improvement_of_a_mean_that_does_not_change():
    with np.errstate(divide="raise", invalid="raise"):
        value = log_improvement(np.array([0.0, -1.0]), np.zeros(2))
    assert value[1] < value[0] < -200


def test_the_larger_of_two_tiny_improvements_is_promised():
    """They are about 1e-350, which is 0 in double precision."""
    means = np.array([[0.0, 39.8]])  # recommended, runner-up
    new = np.array([[39.6, 40.0]])
    compared = Compared(None, means, None, None)
    # One evaluation moves all differences from the recommended mean by a standard deviation of 1.
    covariances = np.zeros((1, 2, 2))
    covariances[..., 1] = np.sqrt(2)
    change = compared.change(new, np.full((1, 2), np.sqrt(2)), covariances, np.full((1, 1), 2 - np.sqrt(2)))
    assert exact(-39.6, 1) > exact(-39.8, 1) > exact(-40.0, 1)
    np.testing.assert_allclose(change.sd, 1.0)
    np.testing.assert_array_equal(change.is_new, [[True, False]])
    np.testing.assert_array_equal(change.mean, [[39.6, 39.8]])
