"""Expected hypervolume improvement: its boxes, its integrals, its factorisation over draws, and its gradient."""

from __future__ import annotations

import moocore
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr

from slayr_py.acquisition import hypervolume, non_dominated
from slayr_py.acquisition.boxes import non_dominated_boxes
from slayr_py.acquisition.criteria import LEAST, State, from_name
from slayr_py.acquisition.hypervolume_improvement import Sides
from slayr_py.acquisition.merit import HypervolumeImprovement, OneObjective
from slayr_py.acquisition.shortfall import Identity, LogWarp, Transformation
from slayr_py.inference import unwarped, warped
from slayr_py.inference.prediction.distribution import NO_WARP
from slayr_py.inference.prediction.draws import Chains
from slayr_py.inference.prediction.predictor import Moments, Predictor
from slayr_py.inference.warp import log_slope

WARPS = np.array([0.05, 0.4, 1.0, 2.5])[:, None]
TRANSFORMATIONS = [(None, None), (WARPS, None), (WARPS, -0.5)]


class Known:
    """A predictor of four draws with smooth moments at points (m, 2)."""

    n_draws = 4
    is_compared = False
    train = np.zeros((5, 2))
    incumbent = None
    improvement_scale = Predictor.improvement_scale
    noise = np.array([0.02, 0.1, 0.3, 1.0])[:, None]

    def __init__(self, phase, warp=None, pivot=None):
        self.phase = phase + np.arange(4)[:, None]
        self.warp = warp
        self.pivot = pivot

    def moments(self, x):
        mean = 0.6 * np.sin(2 * x[:, 0] + self.phase) + 0.5 * x[:, 1]
        return mean, 0.05 + 0.2 * np.cos(x[:, 1] + self.phase) ** 2

    def moments_with_gradient(self, x):
        angle = x[:, 1] + self.phase
        by_mean = np.stack([1.2 * np.cos(2 * x[:, 0] + self.phase), np.full((4, len(x)), 0.5)], axis=-1)
        by_variance = np.stack([np.zeros((4, len(x))), -0.2 * np.sin(2 * angle)], axis=-1)
        return Moments(*self.moments(x), by_mean, by_variance)


def merit_of(front, reference, warp=None, pivot=None, noisy=False):
    predictors = tuple(Known(1.7 * j, warp, pivot) for j in range(front.shape[1]))
    return HypervolumeImprovement(predictors, (2,) * front.shape[1], non_dominated_boxes(front, reference), noisy)


def front_of(objectives, n=7, seed=0):
    return np.random.default_rng(seed).uniform(-1.2, 0.8, (n, objectives))


def test_edges_with_equal_shortfalls_have_a_small_difference():
    sides = Sides(np.array([-0.2, 0.1]), np.array([-1, 0]), np.array([0, 1]))
    difference, *_ = sides.log_differences(np.full((3, 2), -0.7))
    assert np.all(difference[:, 0] == -0.7) and np.all(difference[:, 1] < -30) and np.all(np.isfinite(difference))


@pytest.mark.parametrize("n", [0, 1, 4, 25])
@pytest.mark.parametrize("objectives", [2, 3, 4])
def test_boxes_cover_what_is_not_dominated_once(objectives, n):
    rng = np.random.default_rng(n)
    front = np.round(rng.random((n, objectives)), 1)  # with equal values and equal points
    reference = np.full(objectives, 0.9)
    lower, upper = non_dominated_boxes(front, reference)
    points = rng.uniform(-0.2, 1.0, (500, objectives))
    inside = np.all((points[:, None] > lower) & (points[:, None] <= upper), axis=2).sum(axis=1)
    dominated = np.any(np.all(front[None] <= points[:, None], axis=2), axis=1)
    np.testing.assert_array_equal(inside, np.all(points < reference, axis=1) & ~dominated)
    np.testing.assert_allclose(
        hypervolume(front, reference), moocore.hypervolume(front, ref=reference) if n else 0.0, atol=1e-12
    )
    np.testing.assert_array_equal(non_dominated(front), moocore.is_nondominated(front, keep_weakly=True))


@pytest.mark.parametrize("objectives", [2, 3, 4])
def test_fronts_of_many_points_have_the_hypervolume_of_another_library(objectives):
    rng = np.random.default_rng(objectives)
    points = rng.standard_normal((700, objectives))
    points = np.vstack([1 + points / np.linalg.norm(points, axis=1, keepdims=True), np.round(points[:100], 1)])
    reference = np.full(objectives, 1.2)
    np.testing.assert_array_equal(non_dominated(points), moocore.is_nondominated(points, keep_weakly=True))
    np.testing.assert_allclose(hypervolume(points, reference), moocore.hypervolume(points, ref=reference), rtol=1e-12)


@pytest.mark.parametrize("objectives", [2, 3])
def test_infinite_values_are_dominated_by_finite_ones_alone(objectives):
    points = np.full((4, objectives), np.inf)
    assert non_dominated(points).all()
    points[2] = 0.0
    assert non_dominated(points).tolist() == [False, False, True, False]


def test_the_number_of_boxes_stays_small():
    """n + 1 for two objectives; without joined slices it would be 435 for three."""
    angle = np.linspace(0.05, 1.5, 30)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    assert len(non_dominated_boxes(circle, np.ones(2)).lower) == 31
    assert len(non_dominated_boxes(np.column_stack([circle, angle[::-1] % 0.3]), np.full(3, 2.0)).lower) < 150


@pytest.mark.parametrize("a", [0.05, 0.4, 2.5])
@pytest.mark.parametrize("pivot", [None, -0.4])
@pytest.mark.parametrize("edge", [-1.3, 0.0, 0.7, 2.5])
def test_the_shortfall_under_a_warp_is_exact(edge, pivot, a):
    for sd in (0.01, 0.3, 3.0):
        for z in (-6.0, -1.0, 0.0, 4.0):
            top = float(warped(np.array(edge), np.array(a), pivot))
            joint = float(warped(np.array(0.0 if pivot is None else pivot), np.array(a), pivot))

            def shortfall(v, top=top, sd=sd, z=z):
                value = edge - float(unwarped(np.array(top - sd * v), np.array(a), pivot))
                return value * np.exp(-0.5 * (v - z) ** 2) / np.sqrt(2 * np.pi)

            end = max(z, 0.0) + 12
            kinks = [point for point in ((top - joint) / sd, max(z, 0.0)) if 0 < point < end]
            exact = quad(shortfall, 0, end, points=kinks or None, limit=200, epsabs=0, epsrel=1e-10)[0]
            moments = np.array([[top - z * sd]]), np.array([[sd]])
            transformation = Transformation.of(np.array([[a]]), pivot)
            found = transformation.shortfall(*moments, np.array([edge])).log[0, 0, 0]
            assert found == pytest.approx(np.log(exact), abs=1e-6)


def test_a_vanishing_warp_is_none():
    mean, variance = Known(0.0).moments(front_of(2))
    edges = np.array([-1.0, 0.0, 0.4])
    plain = Identity().shortfall(mean, np.sqrt(variance), edges)
    vanishing = LogWarp(np.full((4, 1), NO_WARP)).shortfall(mean, np.sqrt(variance), edges)
    for here, there in zip(plain, vanishing, strict=True):
        np.testing.assert_allclose(here, there, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize(("warp", "pivot"), TRANSFORMATIONS, ids=["no warp", "warp", "pivot"])
@pytest.mark.parametrize("objectives", [2, 3])
def test_it_is_the_mean_over_all_combinations_of_draws_and_functions(objectives, warp, pivot, noisy):
    """Monte Carlo: a draw of each objective on its own, then a value, then the volume that it adds.

    If the objectives are noisy, the value is the posterior mean after an observation of the function.
    """
    front = front_of(objectives)
    reference = np.full(objectives, 1.0)
    x = np.array([[0.3, -0.8]])
    merit = merit_of(front, reference, warp, pivot, noisy)
    rng = np.random.default_rng(1)
    n = 20_000
    values = np.empty((n, objectives))
    for j, predictor in enumerate(merit.predictors):
        mean, variance = predictor.moments(x)
        draws = rng.integers(4, size=n)
        t = mean[draws, 0] + np.sqrt(variance[draws, 0]) * rng.standard_normal(n)
        if noisy:
            noise = predictor.noise[draws, 0]
            observed = t + np.sqrt(noise) * rng.standard_normal(n)
            precision = 1 / variance[draws, 0] + 1 / noise
            t = (mean[draws, 0] / variance[draws, 0] + observed / noise) / precision
        values[:, j] = t if warp is None else unwarped(t, warp[draws, 0], pivot)
    lower, upper = merit.boxes
    gained = np.prod(np.maximum(upper - np.maximum(lower, values[:, None]), 0), axis=2).sum(axis=1)
    for i in range(5):  # the volume that a value adds, in another way
        both = moocore.hypervolume(np.vstack([front, values[i]]), ref=reference)
        assert gained[i] == pytest.approx(both - moocore.hypervolume(front, ref=reference), abs=1e-12)
    assert abs(merit.at(x) - gained.mean()) < 4 * gained.std() / np.sqrt(n)


@pytest.mark.parametrize(("warp", "pivot"), TRANSFORMATIONS, ids=["no warp", "warp", "pivot"])
def test_one_objective_is_expected_improvement(warp, pivot):
    x = front_of(2)
    merit = merit_of(np.array([[-0.4], [0.2]]), np.array([1.0]), warp, pivot)
    predictor = merit.predictors[0]
    mean, variance = predictor.moments(x)
    if warp is None:
        exact = OneObjective(predictor, 2, from_name("log_ei"), State(-0.4, 1, 2)).values(x)
    else:  # by the integral of P(Y < y)
        y = np.linspace(-9, -0.4, 60_001)[:, None, None]
        below = ndtr((warped(y, warp, pivot) - mean) / np.sqrt(variance)).mean(axis=1)
        exact = np.log(np.trapezoid(below, y[:, 0, 0], axis=0))
    np.testing.assert_allclose(merit.values(x), exact, atol=1e-6)


@pytest.mark.parametrize(("warp", "pivot"), TRANSFORMATIONS, ids=["no warp", "warp", "pivot"])
def test_an_improvement_vanishes_in_units_of_the_warp_at_the_pivot(warp, pivot):
    scale = 1.0 if pivot is None else np.mean(np.exp(-log_slope(np.array(pivot), warp, pivot)))
    merit = merit_of(front_of(2), np.full(2, 1.0), warp, pivot)
    assert merit.least == pytest.approx(LEAST * scale**2)
    wanted = {"ei": LEAST * scale, "log_ei": np.log(LEAST * scale), "pi": LEAST, "lcb": -np.inf}
    for name, least in wanted.items():
        one = OneObjective(merit.predictors[0], 2, from_name(name), State(-0.4, 1, 2))
        assert one.least == pytest.approx(least)


@pytest.mark.parametrize(("warp", "pivot"), TRANSFORMATIONS, ids=["no warp", "warp", "pivot"])
@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("objectives", [2, 3])
def test_the_gradient_agrees_with_finite_differences(objectives, noisy, warp, pivot):
    merit = merit_of(front_of(objectives), np.full(objectives, 1.0), warp, pivot, noisy)
    x = np.random.default_rng(2).normal(size=(6, 2))
    values, gradients = merit.values_and_gradients(x)
    np.testing.assert_allclose(values, merit.values(x), rtol=1e-12)
    h = 1e-5
    for i in range(2):
        step = h * np.eye(2)[i]
        finite = (merit.values(x + step) - merit.values(x - step)) / (2 * h)
        np.testing.assert_allclose(gradients[:, i], finite, rtol=1e-5, atol=1e-6)


def test_it_neither_underflows_nor_loses_its_slope_far_from_the_front():
    merit = merit_of(front_of(2) - 60.0, np.full(2, -50.0))
    values, gradients = merit.values_and_gradients(front_of(2))
    assert np.all(np.isfinite(values)) and np.all(values < -1000) and np.all(np.abs(gradients).max(axis=1) > 1)


def test_its_error_is_that_of_independent_draws():
    """Bootstrap the four draws of each objective on their own."""
    x = np.array([[0.3, -0.8]])
    merit = merit_of(front_of(2), np.full(2, 1.0))
    groups = [[Chains(1.0, np.arange(4)[None])]] * 2
    rng = np.random.default_rng(0)
    found = []
    for _ in range(400):
        resampled = []
        for predictor in merit.predictors:
            chosen = Known(0.0)
            chosen.phase = predictor.phase[rng.integers(4, size=4)]
            resampled.append(chosen)
        found.append(HypervolumeImprovement(tuple(resampled), (1, 1), merit.boxes).at(x))
    bootstrap = np.std(found) / merit.at(x) * np.sqrt(4 / 3)
    assert merit.error(x, groups) == pytest.approx(bootstrap, rel=0.35)
