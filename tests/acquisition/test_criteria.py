from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from slayr_py import DataError
from slayr_py.acquisition import Acquisition, LowerConfidenceBound, from_name, names
from slayr_py.acquisition.criteria import State, Uncertainty
from slayr_py.inference.prediction.distribution import NO_WARP
from slayr_py.inference.prediction.draws import Chains
from slayr_py.inference.prediction.predictor import Moments
from slayr_py.inference.warp import log_slope, unwarped, warped

STATE = State(best=-0.4, t=3, dimension=2)
WARPED = STATE._replace(warp=np.array([0.1, 0.4, 1.0, 3.0])[:, None])


def moments(x):
    """Artificial moments of four draws at points (m, 2), and their gradients."""
    phase = np.arange(4)[:, None]
    mean = np.sin(x[:, 0] + phase) + 0.5 * x[:, 1]
    mean_gradient = np.stack([np.cos(x[:, 0] + phase), np.full((4, len(x)), 0.5)], axis=-1)
    variance = 0.1 + x[:, 0] ** 2 + np.cos(x[:, 1] + phase) ** 2
    slope = np.stack([np.tile(2 * x[:, 0], (4, 1)), -np.sin(2 * (x[:, 1] + phase))], axis=-1)
    return Moments(mean, variance, mean_gradient, slope)


STATES = {
    "no warp": STATE,
    "tangents": STATE._replace(is_tangent=True),
    "warp": WARPED,
    "warp above 0": WARPED._replace(best=0.7),
    "pivot": WARPED._replace(pivot=-0.4),
    "above the pivot": WARPED._replace(pivot=-1.0),
}


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
@pytest.mark.parametrize("criterion", [*map(from_name, names()), Uncertainty()], ids=[*names(), "uncertainty"])
def test_transformed_with_gradient_agrees_with_finite_differences(criterion, state):
    x = np.random.default_rng(0).normal(size=(6, 2))
    transformed, gradient = criterion.transformed_with_gradient(moments(x), state)
    np.testing.assert_allclose(transformed, criterion.transformed(*moments(x)[:2], state), rtol=1e-12)
    # Under a warp value and derivative are two quadratures, each with a relative error below 3e-4.
    tolerance = 1e-6 if state.is_linear else 1e-3
    h = 1e-6
    for j in range(2):
        step = h * np.eye(2)[j]
        above, below = (criterion.transformed(*moments(x + s)[:2], state) for s in (step, -step))
        finite = (above - below) / (2 * h)
        np.testing.assert_allclose(gradient[:, j], finite, rtol=tolerance, atol=1e-2 * tolerance)


@pytest.mark.parametrize("pivot", [None, -0.4])
@pytest.mark.parametrize("name", ["ei", "pi"])
def test_draws_with_different_best_values_are_averaged(name, pivot):
    criterion = from_name(name)
    mean, variance = moments(np.random.default_rng(0).normal(size=(6, 2)))[:2]
    state = WARPED._replace(best=np.array([-0.9, -0.4, 0.3, -0.7])[:, None], pivot=pivot)
    alone = []
    for s in range(4):
        one = state._replace(best=float(state.best[s, 0]), warp=state.warp[s : s + 1])
        alone.append(criterion.transformed(mean[s : s + 1], variance[s : s + 1], one))
    together = criterion.transformed(mean, variance, state)
    np.testing.assert_allclose(np.exp(together), np.exp(alone).mean(axis=0), rtol=1e-3)


@pytest.mark.parametrize("name", ["ei", "pi"])
def test_the_error_at_a_known_point_is_finite(name):
    chains = [Chains(1.0, np.arange(8).reshape(2, 4))]
    mean = np.linspace(-1.0, -0.5, 8)
    found = from_name(name).error(mean, np.zeros(8), STATE, chains)
    assert found == pytest.approx(from_name(name).error(mean, np.full(8, 1e-7), STATE, chains), rel=1e-6)


@pytest.mark.parametrize(
    ("best", "pivot"), [(-1.3, None), (0.0, None), (0.7, None), (-1.3, -1.3), (-1.3, -0.6), (-0.5, -1.3), (0.7, -1.3)]
)
def test_expected_improvement_under_a_warp_is_that_of_the_function_itself(best, pivot):
    """By integrals over the normal variable, for standard deviations times the warp of 0.04 to 10."""
    warp = np.array([0.05, 0.4, 1.0, 2.5])[:, None]
    gap = np.array([-6.0, -3.0, -1.0, 0.0, 1.0, 4.0])  # z
    sd = np.array([0.8, 0.1, 4.0])
    z, spread = (grid.ravel() for grid in np.meshgrid(gap, sd))
    top = warped(np.array(best), warp, pivot)
    slope = np.exp(-log_slope(np.array(best), warp, pivot))
    mean = best - z * slope * spread
    moments = (mean, slope * spread)  # of the tangent
    t = top - spread * np.linspace(0, 1, 20_001)[:, None, None] ** 2 * (10 + np.abs(z))  # (k, s, m)
    standard = (t - (top - z * spread)) / spread
    improvement = (best - unwarped(t, warp, pivot)) * np.exp(-0.5 * standard**2) / np.sqrt(2 * np.pi) / spread
    exact = -np.trapezoid(improvement, t, axis=0).mean(axis=0)
    state = State(best, 3, 2, warp, pivot)
    np.testing.assert_allclose(from_name("ei").value(*moments, state), exact, rtol=5e-4)
    np.testing.assert_allclose(from_name("log_ei").value(*moments, state), np.log(exact), atol=5e-4)
    # Probabilities are those of the tangent.
    np.testing.assert_allclose(from_name("pi").value(*moments, state), ndtr(z))


def test_expected_improvement_under_a_vanishing_warp_is_that_without_one():
    mean, variance, _, _ = moments(np.random.default_rng(1).normal(size=(40, 2)))
    vanishing = STATE._replace(warp=np.full((4, 1), NO_WARP))
    criterion = from_name("ei")
    value = criterion.value(mean, np.sqrt(variance), STATE)
    np.testing.assert_allclose(criterion.value(mean, np.sqrt(variance), vanishing), value, rtol=3e-4)


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


@pytest.mark.parametrize("name", [*names(), "prior", "uncertainty"])
def test_criteria_search_alike_on_every_scale(name):
    """Also at observed points, whose standard deviation is replaced by a small one."""
    others = {"prior": from_name("lcb").logarithmic(), "uncertainty": Uncertainty()}
    criterion = others[name] if name in others else from_name(name)
    scale = 1e-12
    large = moments(np.random.default_rng(1).normal(size=(40, 2)))
    large.variance[:, :3] = 0.0
    small = Moments(*(array * scale**power for array, power in zip(large, (1, 2, 1, 2), strict=True)))
    state = STATE._replace(best=scale * STATE.best, scale=scale)
    shift = np.log(scale) if name in ("ei", "log_ei", "uncertainty") else 0.0
    wanted, by_inputs = criterion.transformed_with_gradient(large, STATE)
    values, gradient = criterion.transformed_with_gradient(small, state)
    np.testing.assert_allclose(values, wanted + shift, rtol=1e-9)
    np.testing.assert_allclose(gradient, by_inputs, rtol=1e-9)
    values = criterion.transformed(*small[:2], state)
    np.testing.assert_allclose(values, criterion.transformed(*large[:2], STATE) + shift, rtol=1e-9)
    chains = [Chains(1.0, np.arange(4)[None])]
    error = criterion.error(small.mean[:, 9], np.sqrt(small.variance[:, 9]), state, chains)
    assert error == pytest.approx(criterion.error(large.mean[:, 9], np.sqrt(large.variance[:, 9]), STATE, chains))


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
