from __future__ import annotations

import mpmath
import numpy as np
import pytest

from slayr_py.inference.prediction.comparison import FrontMoments, Recommended, log_improvement


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
    compared = Recommended(None, means, means[:, :1], None, None, None, np.ones((1, 1)))
    # One evaluation moves all differences from the recommended mean by a standard deviation of 1.
    covariances = np.zeros((1, 2, 2))
    covariances[..., 1] = np.sqrt(2)
    change = compared.change(new, np.full((1, 2), np.sqrt(2)), covariances, np.full((1, 1), 2 - np.sqrt(2)))
    assert exact(-39.6, 1) > exact(-39.8, 1) > exact(-40.0, 1)
    np.testing.assert_allclose(change.sd, 1.0)
    np.testing.assert_array_equal(change.is_new, [[True, False]])
    np.testing.assert_array_equal(change.mean, [[39.6, 39.8]])


def compared_with(runner_up, covariance_with_it=0.2):
    """Return the change by an evaluation of x*, whose mean is 0, and of another configuration; noise 0.5."""
    means = np.array([[0.0, runner_up]])
    covariances = np.array([[[1.0, covariance_with_it], [0.3, 0.5]]])
    return Recommended(None, means, means[:, :1], None, None, None, np.ones((1, 1))).change(
        np.array([[0.0, 0.4]]), np.ones((1, 2)), covariances, np.full((1, 1), 0.5)
    )


def test_the_recommended_configuration_is_never_its_own_improvement():
    """Its sd is a rounding error, which would count if the runner-up promises even less."""
    change = compared_with(1000.0)
    np.testing.assert_array_equal(change.is_new, [[False, True]])
    assert change.mean[0, 0] == 1000.0 and change.sd[0, 0] == pytest.approx((0.2 - 1.0) / np.sqrt(1.5))


def test_an_evaluation_may_teach_more_of_the_recommended_configuration_than_of_its_own():
    """Its value is then no smaller with a runner-up that promises less than without one."""
    means = np.array([[0.0, 2.0]])
    covariances = np.array([[[0.9, 0.1]]])
    compared = Recommended(None, means, means[:, :1], None, None, None, np.ones((1, 1)))
    change = compared.change(np.array([[0.1]]), np.full((1, 1), 0.5), covariances, np.full((1, 1), 0.1))
    assert change.is_new[0, 0] and abs(change.sd[0, 0]) == pytest.approx(0.4 / np.sqrt(0.6))


def test_a_runner_up_that_is_better_already_counts_by_what_an_evaluation_may_change():
    """Under a draw that disagrees, its whole difference would be an improvement by any evaluation."""
    better = compared_with(-0.7)
    assert better.mean[0, 0] == compared_with(0.7).mean[0, 0] == 0.7
    sd = abs(better.sd[0, 0])
    changed = np.random.default_rng(0).normal(0.7, sd, 400_000)
    gain = np.maximum(changed, 0) - 0.7
    error = gain.std() / np.sqrt(len(gain))
    assert abs(np.exp(log_improvement(np.array([-0.7]), np.array([sd])))[0] - gain.mean()) < 4.5 * error


def test_a_value_to_improve_on_beyond_the_recommended_one_decides_too():
    """The runner-up changes by 0.8 and the new one by 0.4, so that only the runner-up can reach a far value."""
    means = np.array([[0.0, 0.3]])
    covariances = np.array([[[0.6, -0.2]]])
    for goal, is_new in [(0.0, True), (-3.0, False)]:
        compared = Recommended(None, means, np.full((1, 1), goal), None, None, None, np.ones((1, 1)))
        change = compared.change(np.array([[-0.1]]), np.ones((1, 1)), covariances, np.zeros((1, 1)))
        assert change.is_new[0, 0] == is_new


def test_moments_beside_a_front_are_relative_to_each_configuration():
    mean = np.array([[0.0, 1.4], [0.2, 1.1]])
    covariances = np.array([[[0.5, 0.1], [0.1, 0.7]]] * 2)
    shift = np.array([[0.1, -0.05], [-0.1, 0.05]])
    found = FrontMoments.of(mean, np.full((2, 2), 0.5), covariances, shift, np.full((2, 1), 0.5))
    np.testing.assert_allclose(found.mean[0], [[0.1, -0.05, 0.0], [1.5, 1.35, 1.4]])
    np.testing.assert_allclose(found.mean[1], [[0.1, 0.25, 0.2], [1.0, 1.15, 1.1]])
    np.testing.assert_allclose(found.sd, [[[0.0, 0.4, 0.5], [0.4, 0.2, 0.5]]] * 2)
