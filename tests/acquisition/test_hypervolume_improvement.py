"""Expected hypervolume improvement: its boxes, its integrals, its factorisation over draws, and its gradient."""

from __future__ import annotations

import moocore
import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from scipy.integrate import quad
from scipy.special import ndtr

from slayr_py.acquisition import hypervolume, non_dominated
from slayr_py.acquisition.boxes import non_dominated_boxes
from slayr_py.acquisition.criteria import LEAST, State, from_name
from slayr_py.acquisition.hypervolume_improvement import Sides
from slayr_py.acquisition.merit import HypervolumeImprovement, OneObjective
from slayr_py.acquisition.shortfall import Identity, LogWarp, Transformation
from slayr_py.inference import GaussianProcess, unwarped, warped
from slayr_py.inference.prediction.comparison import FrontMoments
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
    shift = np.empty((4, 0))

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

    def front_moments(self, x):
        return self.front_moments_with_gradient(x)[:2]

    def front_moments_with_gradient(self, x):
        moments = self.moments_with_gradient(x)
        n_front = self.shift.shape[1]
        places = np.random.default_rng(5).normal(size=(n_front, 2))
        apart = x[:, None] - places
        near = 0.7 * np.exp(-np.square(apart).sum(axis=2))  # correlation with the configurations of the front
        covariances = moments.variance[..., None] * near
        found = FrontMoments.of(moments.mean, moments.variance, covariances, self.shift, self.noise)
        slopes = moments.variance_gradient[:, :, None] * near[..., None]
        slopes -= 2 * covariances[..., None] * apart
        slopes = np.concatenate([slopes, np.zeros((4, len(x), 1, 2))], axis=2)

        def gradient(by_mean, by_sd):
            by_x = found.by_variance[..., None] * moments.variance_gradient[:, :, None]
            by_x = by_x + found.by_covariance[..., None] * slopes
            mean = np.einsum("smq,smd->md", by_mean, moments.mean_gradient)
            return mean + np.einsum("smq,smqd->md", by_sd, by_x)

        return found.mean, found.sd, gradient


def merit_of(front, reference, warp=None, pivot=None, noise="none"):
    predictors = tuple(Known(1.7 * j, warp, pivot) for j in range(front.shape[1]))
    beside = None
    if noise == "beside":
        beside = front
        for predictor in predictors:
            predictor.shift = np.random.default_rng(6).normal(0, 0.1, (4, len(front)))
    boxes = non_dominated_boxes(front, reference)
    return HypervolumeImprovement(predictors, (2,) * front.shape[1], boxes, noise != "none", beside)


def front_of(objectives, n=7, seed=0):
    return np.random.default_rng(seed).uniform(-1.2, 0.8, (n, objectives))


def test_edges_with_equal_shortfalls_have_a_small_difference():
    sides = Sides(np.array([-0.2, 0.1]), np.array([-1, -1]), np.array([-1, 0]), np.array([0, 1]))
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
            moments = np.array([[[top - z * sd]]]), np.array([[[sd]]])
            transformation = Transformation.of(np.array([[a]]), pivot)
            found = transformation.shortfall(*moments, np.array([edge])).log[0, 0, 0]
            assert found == pytest.approx(np.log(exact), abs=1e-6)


@pytest.mark.parametrize(("warp", "pivot"), TRANSFORMATIONS, ids=["no warp", "warp", "pivot"])
def test_the_shortfall_is_finite_where_nothing_changes(warp, pivot):
    """At a configuration of a noisy front, sd is 0 up to rounding; with z = -2e10 psi became 0 under a warp."""
    transformation = Transformation.of(warp, pivot)
    edges = np.array([-1.0, -0.2, 0.0, 0.3, 2.0])
    found = transformation.shortfall(np.full((4, 1, 1), 4.0), np.full((4, 1, 1), 1e-10), edges)
    assert all(np.isfinite(values).all() for values in found) and found.log.max() < -1e14


def test_a_vanishing_warp_is_none():
    mean, variance = (each[..., None] for each in Known(0.0).moments(front_of(2)))
    edges = np.array([-1.0, 0.0, 0.4])
    plain = Identity().shortfall(mean, np.sqrt(variance), edges)
    vanishing = LogWarp(np.full((4, 1), NO_WARP)).shortfall(mean, np.sqrt(variance), edges)
    for here, there in zip(plain, vanishing, strict=True):
        np.testing.assert_allclose(here, there, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("warp", "pivot"), TRANSFORMATIONS, ids=["no warp", "warp", "pivot"])
def test_moments_may_differ_between_edges(warp, pivot):
    rng = np.random.default_rng(0)
    edges = np.sort(rng.normal(size=5))
    mean = rng.normal(size=(4, 2, 5))
    sd = rng.uniform(0.1, 1.0, (4, 2, 5))
    transformation = Transformation.of(warp, pivot)
    together = transformation.shortfall(mean, sd, edges)
    for k in range(5):
        alone = transformation.shortfall(mean[..., [k]], sd[..., [k]], edges[[k]])
        for here, there in zip(together, alone, strict=True):
            np.testing.assert_allclose(here[..., [k]], there, rtol=1e-12)


@pytest.mark.parametrize("noise", ["none", "own", "beside"])
@pytest.mark.parametrize(("warp", "pivot"), TRANSFORMATIONS, ids=["no warp", "warp", "pivot"])
@pytest.mark.parametrize("objectives", [2, 3])
def test_it_is_the_mean_over_all_combinations_of_draws_and_functions(objectives, warp, pivot, noise):
    """Monte Carlo: a draw of each objective on its own, then a value, then the volume that it adds.

    If the objectives are noisy, the value is the posterior mean after an observation of the function. Beside a front,
    it is relative to the owner of the upper edge of each box.
    """
    front = front_of(objectives)
    reference = np.full(objectives, 1.0)
    x = np.array([[-2.0, -1.2]])
    merit = merit_of(front, reference, warp, pivot, noise)
    lower, upper = merit.boxes
    rng = np.random.default_rng(1)
    n = 20_000
    values = np.empty((n, len(upper), objectives))  # for each box
    for j, predictor in enumerate(merit.predictors):
        mean, variance = predictor.moments(x)
        draws = rng.integers(4, size=n)
        t = mean[draws, 0] + np.sqrt(variance[draws, 0]) * rng.standard_normal(n)
        if noise == "own":
            error = predictor.noise[draws, 0]
            observed = t + np.sqrt(error) * rng.standard_normal(n)
            precision = 1 / variance[draws, 0] + 1 / error
            t = (mean[draws, 0] / variance[draws, 0] + observed / error) / precision
        for k, edge in enumerate(upper[:, j]):
            if noise == "beside":
                centre, sd = predictor.front_moments(x)
                owner = np.append(np.flatnonzero(front[:, j] == edge), -1)[0]
                t = centre[draws, 0, owner] + sd[draws, 0, owner] * rng.standard_normal(n)
            values[:, k, j] = t if warp is None else unwarped(t, warp[draws, 0], pivot)
    gained = np.prod(np.maximum(upper - np.maximum(lower, values), 0), axis=2).sum(axis=1)
    for i in range(5 * (noise != "beside")):  # the volume that a value adds, in another way
        both = moocore.hypervolume(np.vstack([front, values[i, 0]]), ref=reference)
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
@pytest.mark.parametrize("noise", ["none", "own", "beside"])
@pytest.mark.parametrize("objectives", [2, 3])
def test_the_gradient_agrees_with_finite_differences(objectives, noise, warp, pivot):
    merit = merit_of(front_of(objectives), np.full(objectives, 1.0), warp, pivot, noise)
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


@pytest.mark.stan
def test_the_improvement_of_noisy_objectives_is_the_growth_of_the_front_of_means():
    """Add a noisy value of both objectives at one configuration, and predict the front again.

    The order of the front's configurations, which the criterion takes as fixed, may change: up to 10% here. Without the
    changes of the front, evaluating one of its configurations again would count like a new one.
    """
    rng = np.random.default_rng(0)
    space = ConfigurationSpace({"a": (0.0, 1.0), "b": (0.0, 1.0)})
    x = rng.random((14, 2))
    y = np.column_stack([np.sum((x - centre) ** 2, axis=1) for centre in (0.2, 0.8)])
    y += 0.05 * rng.standard_normal(y.shape)
    gp = GaussianProcess(space, warp="none")
    posteriors = [gp.fit(x, y[:, j], method="map", seed=1) for j in range(2)]
    encoded = posteriors[0].train
    means = np.column_stack([(each.predict(encoded).mean - each.y_mean) / each.y_sd for each in posteriors])
    best = non_dominated(means)
    front, reference = means[best], np.full(2, 1.5)
    predictors = [each.predictor() for each in posteriors]
    beside = tuple(each.beside(encoded[best], values) for each, values in zip(predictors, front.T, strict=True))
    merit = HypervolumeImprovement(beside, (1, 1), non_dominated_boxes(front, reference), True, front)
    new = posteriors[0].encoder.encode(rng.random((6, 2)))
    normals = rng.standard_normal((4000, 2))
    for i in range(len(new)):
        moved = []
        for predictor, normal in zip(predictors, normals.T, strict=True):
            mean, covariance = predictor.joint_moments(new[[i]].concatenate(encoded[best]))
            sd = covariance[0, 0] / np.sqrt(covariance[0, 0, 0] + predictor.noise[0])
            moved.append(mean[0] + sd * normal[:, None])
        points = np.stack(moved, axis=2)
        grown = np.array([hypervolume(each, reference) - hypervolume(each[1:], reference) for each in points])
        assert abs(merit.at(new[[i]]) - grown.mean()) < 0.1 * grown.mean() + 4 * grown.std() / np.sqrt(len(grown))
    assert np.all(np.exp(merit.values(encoded[best])) < LEAST)
    own = HypervolumeImprovement(tuple(predictors), (1, 1), merit.boxes, True)
    assert np.exp(own.values(encoded[best])).max() > 0.01
