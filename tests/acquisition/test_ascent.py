from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from slayr_py.acquisition.ascent import Ascent, Box


def climb(function, points, upper=None, steps=1000):
    ascent = Ascent(function, points, Box(np.ones(points.shape[1]) if upper is None else upper))
    everyone = np.arange(len(points))
    for _ in range(steps):
        values = ascent.values.copy()
        arrived = ascent.advance(everyone)
        assert np.all(ascent.values >= values)
        assert np.all((ascent.points >= 0) & (ascent.points <= ascent.domain.upper))
        if arrived.all():
            break
    return ascent


def best_of_scipy(function, point):
    """Maximise in the unit box with L-BFGS-B from one point."""

    def negative(x):
        value, gradient = function(x[None])
        return -value[0], -gradient[0]

    options = {"ftol": 1e-15, "gtol": 1e-12, "maxiter": 2000}
    return minimize(negative, point, jac=True, method="L-BFGS-B", bounds=[(0, 1)] * len(point), options=options)


@pytest.mark.parametrize("d", [1, 2, 5, 12])
def test_quadratics_with_maxima_inside_and_outside_the_box(d):
    rng = np.random.default_rng(d)
    for _ in range(10):
        root = rng.normal(size=(d, d))
        a = root @ root.T + 0.05 * np.eye(d)
        centre = rng.uniform(-0.5, 1.5, d)

        def function(x, a=a, centre=centre):
            slope = (x - centre) @ a
            return -0.5 * np.sum(slope * (x - centre), axis=1), -slope

        # Some climbers gain by rounding for a thousand steps.
        ascent = climb(function, rng.random((8, d)), steps=150)
        wanted = best_of_scipy(function, np.full(d, 0.5))
        # The maximum is unique; gains below rounding are invisible, so the points have half the digits.
        np.testing.assert_allclose(ascent.values, -wanted.fun, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(ascent.points, np.tile(wanted.x, (8, 1)), atol=1e-5)


@pytest.mark.parametrize("scale", [4.0, 2.6])
def test_rosenbrock_inside_the_box_and_on_its_boundary(scale):
    """The maximum, x = 1, is at 3/4 of the box or outside it (x <= 0.6)."""

    def function(u):
        x = scale * u - 2
        a = x[:, 1:] - x[:, :-1] ** 2
        b = 1 - x[:, :-1]
        gradient = np.zeros_like(x)
        gradient[:, 1:] += 200 * a
        gradient[:, :-1] -= 400 * a * x[:, :-1] + 2 * b
        return -np.sum(100 * a**2 + b**2, axis=1), -scale * gradient

    starts = np.random.default_rng(0).random((12, 2))
    ascent = climb(function, starts)
    wanted = -best_of_scipy(function, starts[0]).fun
    np.testing.assert_allclose(ascent.values, wanted, rtol=1e-6, atol=1e-8)


def test_steps_grow_on_a_long_convex_slope():
    def function(x):
        return np.expm1(x).sum(axis=1) * 1e-3, np.exp(x) * 1e-3

    upper = np.full(3, 50.0)
    ascent = climb(function, np.zeros((2, 3)) + 0.1, upper, steps=15)
    assert np.all(ascent.points == 50)


def test_variables_without_slope_and_omitted_rows_do_not_move():
    def function(x):
        return -((x[:, 0] - 0.3) ** 2), np.column_stack([-2 * (x[:, 0] - 0.3), np.zeros(len(x))])

    starts = np.random.default_rng(2).random((3, 2))
    ascent = Ascent(function, starts, Box(np.ones(2)))
    for _ in range(20):
        ascent.advance(np.array([0, 2]))
    assert np.array_equal(ascent.points[1], starts[1])
    assert np.array_equal(ascent.points[:, 1], starts[:, 1])
    np.testing.assert_allclose(ascent.points[[0, 2], 0], 0.3)


@pytest.mark.parametrize("scale", [1e-250, 1e-160, 1e-80, 1e-20, 1e20])
def test_slopes_of_any_size(scale):
    def function(x):
        return -scale * np.sum((x - 0.4) ** 2, axis=1), -2 * scale * (x - 0.4)

    ascent = climb(function, np.random.default_rng(3).random((5, 3)))
    if scale > 1e-100:
        np.testing.assert_allclose(ascent.points, 0.4)


def test_forbidden_points_are_not_reached():
    def function(x):
        return np.where(x[:, 0] + x[:, 1] > 1, -np.inf, x.sum(axis=1)), np.ones_like(x)

    ascent = climb(function, np.array([[0.1, 0.2], [0.4, 0.1]]))
    assert np.all(ascent.values <= 1) and np.all(ascent.values > 1 - 1e-6)


def test_put_moves_climbers():
    def function(x):
        return -np.sum((x - 0.4) ** 2, axis=1), -2 * (x - 0.4)

    ascent = climb(function, np.zeros((2, 2)))
    ascent.put(np.array([1]), np.array([[0.9, 0.1]]))
    assert ascent.values.tolist() == function(ascent.points)[0].tolist()
    ascent.advance(np.array([1]))
    np.testing.assert_allclose(ascent.points, 0.4)


def test_a_step_whose_prediction_gains_too_little_is_not_tried():
    evaluated = []

    def function(x):
        evaluated.append(len(x))
        return -1e-4 * x[:, 0], np.array([[-1e-4, 0.0]] * len(x))

    ascent = Ascent(function, np.full((3, 2), 0.5), Box(np.ones(2)), gain=1e-4)
    ascent.advance(np.arange(3))
    assert evaluated == [3] and np.all(ascent.points == 0.5)


def test_climbers_do_not_wait_for_each_other():
    """Each takes the path that it takes alone, and a round of evaluations has all of them."""
    calls = []

    def function(x):
        calls.append(len(x))
        return -np.sum((x - 0.4) ** 4 + np.sin(9 * x), axis=1), -4 * (x - 0.4) ** 3 - 9 * np.cos(9 * x)

    starts = np.random.default_rng(5).random((6, 3))
    alone = []
    counts = []
    for start in starts:
        calls.clear()
        alone.append(climb(function, start[None]).points[0])
        counts.append(len(calls))
    calls.clear()
    ascent = Ascent(function, starts, Box(np.ones(3)))
    moving = np.arange(6)
    while len(moving):
        moving = moving[~ascent.advance(moving)]
    np.testing.assert_allclose(ascent.points, alone, rtol=1e-12)
    assert len(calls) == max(counts) and sum(calls) == sum(counts)


def test_known_curvature_leads_to_the_maximum_of_a_quadratic_in_one_step():
    root = np.random.default_rng(6).normal(size=(4, 4))
    a = root @ root.T + 0.1 * np.eye(4)

    def function(x):
        slope = (x - 0.5) @ a
        return -0.5 * np.sum(slope * (x - 0.5), axis=1), -slope

    starts = np.random.default_rng(7).uniform(0.3, 0.7, (3, 4))
    ascent = Ascent(function, starts, Box(np.ones(4)), curvature=np.tile(np.linalg.inv(a), (3, 1, 1)))
    ascent.advance(np.arange(3))
    np.testing.assert_allclose(ascent.points, 0.5, atol=1e-9)
