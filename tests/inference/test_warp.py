"""The transformation of the targets, and predictions under it."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from scipy.special import log_ndtr, ndtr
from scipy.stats import norm

import slayr_py as sl
from slayr_py.inference import Model, Targets, observe
from slayr_py.inference.prediction.distribution import Latent, Prediction, mixture_moments
from slayr_py.inference.prediction.kernel_predictor import KernelPredictor
from slayr_py.inference.sampling.programs import compiled
from slayr_py.inference.sampling.run import run
from slayr_py.inference.warp import (
    HalfLine,
    counts_in_jacobian,
    log_slope,
    slopes_by_log_warp,
    unwarped,
    unwarped_moments,
    warp_range,
    warped,
)
from slayr_py.space import Encoder

Y = np.linspace(-2.5, 9.0, 300)
STRENGTHS = [1e-9, 1e-3, 0.4, 3.0]


@pytest.mark.parametrize("pivot", [None, 0.0, -0.81])
@pytest.mark.parametrize("a", STRENGTHS)
def test_transformation_is_a_bijection_with_the_stated_slope(a, pivot):
    a = np.array(a)
    np.testing.assert_allclose(unwarped(warped(Y, a, pivot), a, pivot), Y, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(warped(unwarped(Y[Y < 5], a, pivot), a, pivot), Y[Y < 5], rtol=1e-9, atol=1e-12)
    assert abs(warped(np.zeros(1), a, pivot)[0]) < 1e-15
    h = 1e-5
    slope = (warped(Y + h, a, pivot) - warped(Y - h, a, pivot)) / (2 * h)
    np.testing.assert_allclose(np.exp(log_slope(Y, a, pivot)), slope, rtol=1e-5)
    assert np.all(np.diff(slope) < 1e-9)  # large values are compressed, small ones stretched


@pytest.mark.parametrize("pivot", [None, 0.0, -0.81])
@pytest.mark.parametrize("a", STRENGTHS[1:])
def test_derivatives_by_the_logarithm_of_the_strength(a, pivot):
    h = 1e-5
    below, above = a * np.exp(-h), a * np.exp(h)
    by_target, by_slope = slopes_by_log_warp(Y, np.array(a), pivot)
    for given, function in ((by_target, warped), (by_slope, log_slope)):
        difference = (function(Y, np.array(above), pivot) - function(Y, np.array(below), pivot)) / (2 * h)
        np.testing.assert_allclose(given, difference, rtol=1e-6, atol=1e-8)


def test_quadrature_on_a_half_line_has_the_probability_and_the_mean():
    z = np.array([-40.0, -8.0, -0.7, 0.0, 0.4, 5.0, 30.0])
    rule = HalfLine(nodes=24, power=2.0, drop=20.0)
    v, weights = (np.concatenate(each) for each in zip(*rule.points(z), strict=True))
    probability = np.exp(log_ndtr(z) - rule.log_scale(z))
    np.testing.assert_allclose(weights.sum(axis=0), probability, rtol=1e-6)
    mean = z * probability + np.exp(norm.logpdf(z) - rule.log_scale(z))
    np.testing.assert_allclose((weights * v).sum(axis=0), mean, rtol=1e-6)
    short = sum(weights.sum(axis=0) for _, weights in rule.points(z[2:5], end=0.5))
    wanted = (ndtr(0.5 - z[2:5]) - ndtr(-z[2:5])) * np.exp(-rule.log_scale(z[2:5]))
    np.testing.assert_allclose(short, wanted, rtol=1e-9)


@pytest.mark.parametrize("pivot", [None, -0.81])
def test_limit_without_transformation(pivot):
    np.testing.assert_allclose(warped(Y, np.array(1e-12), pivot), Y, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(log_slope(Y, np.array(1e-12), pivot), 0, atol=1e-10)


def test_the_pivot_is_the_best_value_and_the_range_above_it_keeps_its_length():
    model = Model(ConfigurationSpace({"x": (0.0, 1.0)}), warp="best")
    x = np.linspace(0, 1, 5)[:, None]
    y = np.array([3.0, -1.0, 7.0, 0.5, 2.0])
    for maximize in (False, True):
        data = observe(model, x, y, maximize=maximize).data
        pivot = data["warp_pivot"][0]
        assert (data["n_pivot"], pivot) == (1, data["y"].min())
        for a in (np.array(0.2), np.array(500.0)):
            ends = warped(np.array([pivot, pivot + 4]), a, pivot)
            assert ends[1] - ends[0] == pytest.approx(4)
    assert observe(Model(model.encoder, warp="log"), x, y).data["n_pivot"] == 0


def test_one_of_several_targets_at_the_pivot_counts_in_the_jacobian():
    y = np.array([0.5, -1.0, -1.0, 2.0, -1.0, 0.5])
    assert counts_in_jacobian(y, -1.0).tolist() == [1, 1, 0, 1, 0, 1]
    assert counts_in_jacobian(y).all() and counts_in_jacobian(y, -1.5).all()


@pytest.mark.stan
def test_many_best_values_do_not_drive_the_warp_to_infinity():
    x = np.linspace(0, 1, 16)[:, None]
    gp = sl.GaussianProcess({"x": (0.0, 1.0)}, warp="best")
    for ties in (1, 9, 16):
        y = np.maximum(x[:, 0] - x[ties - 1, 0], 0.0)
        posterior = gp.fit(x, y, seed=1)
        assert posterior.check().ok
        # The prior is LogNormal(-2, 2), and at the pivot one factor a makes it LogNormal(2, 2).
        assert np.median(posterior.idata.posterior["warp"]) < np.exp(4)
        assert np.all(posterior.predict(x).sd < 1)


@pytest.mark.parametrize(
    ("mean", "sd", "a"),
    [
        (0.3, 0.8, 1.5),
        (-1.2, 0.4, 0.7),
        (2.0, 0.1, 3.0),
        (0.0, 1.0, 1e-6),
        (0.0, 5.0, 1.0),
        (1.0, 8.0, 1.2),
        (-20.0, 6.0, 1.0),
        (-0.1, 1.01, 1.0),
        (3.0, 1e-6, 1.0),
    ],
)
@pytest.mark.parametrize("pivot", [None, -0.6])
def test_moments_in_the_units_of_the_targets(mean, sd, a, pivot):
    # The exponentials shift the normal density by a sd^2 and 2 a sd^2: integrate where one of the three is not 0.
    rate = a if pivot is None else 1 / float(warp_range(np.array(a)))
    joint = 0.0 if pivot is None else float(warped(np.array(pivot), np.array(a), pivot))
    centres = [mean + k * rate * sd**2 for k in range(3)]
    edges = np.unique(np.concatenate([[joint], *(centre + sd * np.linspace(-12, 12, 49) for centre in centres)]))
    nodes, weights = np.polynomial.legendre.leggauss(20)
    half = np.diff(edges)[:, None] / 2
    t = (edges[:-1, None] + half) + half * nodes
    mass = half * weights * norm.pdf(t, mean, sd)
    y = unwarped(t, np.array(a), pivot)
    centre = np.sum(mass * y)
    spread = np.sqrt(np.sum(mass * (y - centre) ** 2))
    got = unwarped_moments(np.array(mean), np.array(sd), np.array(a), pivot)
    np.testing.assert_allclose(got, (centre, spread), rtol=1e-5, atol=1e-7)


def test_moments_without_uncertainty_and_above_the_largest_number():
    t = np.array([-2.0, 0.0, 2.0])
    one = np.ones(())
    mean, sd = unwarped_moments(t, 0 * t, one)
    np.testing.assert_allclose(mean, unwarped(t, one))
    assert not sd.any()
    far = latent(np.full(40, 3.0))
    far = Prediction.from_latent(far._replace(sd=np.where(np.arange(40)[:, None] < 2, 60.0, far.sd)))
    assert np.all(far.mean == np.inf) and np.all(far.sd == np.inf)
    assert np.isfinite(far.quantile([0.1, 0.5, 0.9])).all()


def latent(warp, y_sd=3.0, pivot=None):
    rng = np.random.default_rng(3)
    sigma_n = np.linspace(0.1, 0.6, 40)
    mean = rng.normal(size=(40, 5))
    sd = 0.1 + rng.random((40, 5))
    return Latent(mean, sd, warp, y_mean=2.0, y_sd=y_sd, sigma_n=sigma_n, jitter=np.zeros(40), pivot=pivot)


@pytest.mark.parametrize("y_sd", [3.0, -3.0], ids=["minimised", "maximised"])
@pytest.mark.parametrize(
    ("warp", "pivot"),
    [(None, None), (np.full(40, 0.5), None), (np.linspace(0.1, 0.8, 40), None), (np.linspace(0.1, 5, 40), -0.9)],
    ids=["none", "one", "many", "pivot"],
)
def test_predictions_are_the_mixture_of_the_draws(warp, pivot, y_sd):
    about = latent(warp, y_sd, pivot)
    prediction = Prediction.from_latent(about)
    rng = np.random.default_rng(4)
    f = rng.normal(about.mean, about.sd, size=(5_000, 40, 5))
    y = 2.0 + y_sd * (f if warp is None else unwarped(f, warp[:, None], pivot))
    flat = y.reshape(-1, 5)
    low, high = prediction.interval(0.8)
    # Six Monte Carlo errors of a share of 0.1 among 200,000 values.
    np.testing.assert_allclose((flat < low).mean(axis=0), 0.1, atol=4e-3)
    np.testing.assert_allclose((flat > high).mean(axis=0), 0.1, atol=4e-3)
    np.testing.assert_allclose((flat < prediction.quantile(0.5)).mean(axis=0), 0.5, atol=7e-3)
    assert prediction.quantile([0.2, 0.3, 0.4]).shape == (3, 5)
    np.testing.assert_allclose(prediction.mean, flat.mean(axis=0), atol=6 * flat.std() / np.sqrt(len(flat)))
    np.testing.assert_allclose(prediction.sd, flat.std(axis=0), rtol=0.05)
    h = 1e-4
    points = prediction.quantile(0.3)
    slope = (about.cumulative(points + h) - about.cumulative(points - h)) / (2 * h)
    np.testing.assert_allclose(np.exp(about.log_density(points)), slope, rtol=1e-5)


@pytest.mark.parametrize(
    ("sd", "warp", "p"),
    [(1.0, np.linspace(0.1, 20, 40), 0.9), (5.0, np.full(40, 3.0), 0.5), (1e-6, None, 0.3), (1.0, None, 1e-12)],
    ids=["powers of ten", "far", "spikes", "tail"],
)
def test_a_quantile_has_its_probability(sd, warp, p):
    about = latent(warp)._replace(sd=np.full((40, 5), sd))
    quantile = Prediction.from_latent(about).quantile(p)
    np.testing.assert_allclose(about.cumulative(quantile), p, rtol=1e-8)


@pytest.mark.parametrize("warp", [None, np.full(40, 0.5)], ids=["none", "one"])
def test_a_prediction_without_uncertainty_is_a_point(warp):
    about = latent(warp)
    about = about._replace(mean=np.tile(about.mean[:1], (40, 1)), sd=np.zeros((40, 5)))
    prediction = Prediction.from_latent(about)
    np.testing.assert_allclose(prediction.quantile([0.05, 0.5, 0.95]), np.tile(prediction.mean, (3, 1)), rtol=1e-12)
    np.testing.assert_array_equal(about.cumulative(prediction.mean - 1e-6), 0)
    np.testing.assert_array_equal(about.cumulative(prediction.mean + 1e-6), 1)


@pytest.mark.parametrize("warp", [None, np.linspace(0.1, 0.8, 40)], ids=["none", "many"])
def test_a_new_observation_is_the_function_plus_noise_before_the_warp_is_inverted(warp):
    about = latent(warp)
    prediction = Prediction.from_latent(about)
    rng = np.random.default_rng(4)
    f = rng.normal(about.mean, about.sd, size=(5_000, 40, 5)) + rng.normal(size=(5_000, 40, 5)) * about.sigma_n[:, None]
    flat = (2.0 + 3.0 * (f if warp is None else unwarped(f, warp[:, None]))).reshape(-1, 5)
    np.testing.assert_allclose(prediction.observation_sd, flat.std(axis=0), rtol=0.02)
    assert np.all(prediction.observation_sd > prediction.sd)
    low, high = prediction.interval(0.8, observation=True)
    # Six Monte Carlo errors of a share of 0.1 among 200,000 values.
    np.testing.assert_allclose((flat < low).mean(axis=0), 0.1, atol=4e-3)
    np.testing.assert_allclose((flat > high).mean(axis=0), 0.1, atol=4e-3)
    np.testing.assert_allclose(prediction.quantile([0.1, 0.9], observation=True), [low, high], rtol=1e-9)
    noisy = prediction.with_noise()  # the noise is added once
    np.testing.assert_array_equal(noisy.observation_sd, noisy.sd)
    np.testing.assert_array_equal(noisy.interval(0.8, observation=True), noisy.interval(0.8))


@pytest.mark.parametrize("warp", [None, np.linspace(0.1, 0.8, 40)], ids=["none", "many"])
def test_a_negative_scale_mirrors_the_prediction_to_the_last_bit(warp):
    about = latent(warp)
    plain = Prediction.from_latent(about)
    mirrored = Prediction.from_latent(about._replace(y_mean=-2.0, y_sd=-3.0))
    assert np.array_equal(mirrored.mean, -plain.mean) and np.array_equal(mirrored.sd, plain.sd)
    assert np.array_equal(mirrored.draw_mean, -plain.draw_mean) and np.all(mirrored.draw_sd > 0)
    assert np.array_equal(mirrored.quantile([0.5, 0.75]), -plain.quantile([0.5, 0.25]))
    assert np.array_equal(mirrored.centre_and_spread()[0], -plain.centre_and_spread()[0])
    # Far quantiles do not lose their digits to 1 - p.
    np.testing.assert_allclose(mirrored.quantile([0.2, 1e-13]), -plain.quantile([0.8, 1 - 1e-13]), rtol=1e-3)
    y = np.linspace(-1.0, 1.0, 5)
    np.testing.assert_allclose(mirrored.latent.cumulative(-y), 1 - plain.latent.cumulative(y), rtol=1e-12)
    np.testing.assert_array_equal(mirrored.latent.log_density(-y, 0.3), plain.latent.log_density(y, 0.3))


def test_a_tail_beyond_all_numbers_has_a_note_and_a_spread():
    """Far from all observations the worse values of a warped function exceed the floating-point numbers."""
    about = latent(np.full(40, 2.0))
    wide = about._replace(sd=np.full_like(about.sd, 400.0))
    for scale in (3.0, -3.0):
        prediction = Prediction.from_latent(wide._replace(y_sd=scale))
        assert "exceed the range of floating-point numbers" in prediction.notes[-1]
        median, spread = prediction.centre_and_spread()
        assert np.all(np.isfinite(median)) and np.all(spread < 20)


@pytest.mark.parametrize("y_sd", [1e307, -1e307])
@pytest.mark.parametrize("pivot", [None, -0.81])
def test_moments_beyond_all_numbers_in_the_units_of_the_user_only_are_infinite(y_sd, pivot):
    about = latent(np.full(40, 2.0), y_sd, pivot)
    prediction = Prediction.from_latent(about._replace(sd=np.full_like(about.sd, 5.0)))
    assert np.all(prediction.mean == np.copysign(np.inf, y_sd)) and np.all(prediction.sd == np.inf)
    assert np.all(np.isfinite(prediction.centre_and_spread()))


@pytest.mark.parametrize("moment", [1e300, 1.7e308])
def test_moments_of_mixtures_beyond_all_numbers_are_infinite(moment):
    """The sum of the means may overflow although each of them is a number."""
    mean, sd = mixture_moments(np.full((3, 2), moment), np.full((3, 2), moment))
    assert np.all(mean >= moment * (1 - 1e-15)) and np.all(sd == np.inf)


@pytest.mark.parametrize("q", [0.0, 1.0, -0.1, np.nan, "a", [0.5, "b"]])
def test_probabilities_outside_the_unit_interval_are_refused(q):
    with pytest.raises(sl.DataError, match="give probabilities between 0 and 1"):
        Prediction.from_latent(latent(None)).quantile(q)
    with pytest.raises(sl.DataError, match="level must be a single number in"):
        Prediction.from_latent(latent(None)).interval(q)


def test_the_level_of_an_interval_is_a_single_number():
    prediction = Prediction.from_latent(latent(None))
    with pytest.raises(sl.DataError, match=r"level must be a single number in .*, got \[0.5, 0.9\]"):
        prediction.interval([0.5, 0.9])
    np.testing.assert_array_equal(prediction.interval(np.float32(0.5)), prediction.interval(0.5))


def test_the_linearised_predictor_has_the_moments_and_gradients_of_the_tangent():
    rng = np.random.default_rng(5)
    encoder = Encoder(ConfigurationSpace({"a": (0.0, 1.0), "b": (0.0, 1.0)}))
    train = encoder.encode(rng.random((12, 2)))
    new = encoder.encode(rng.random((4, 2)))
    warp = np.array([0.3, 1.2, 2.5])
    best = -0.7
    draws = {"mu": np.zeros(3), "sigma_f": np.ones(3), "sigma_n": np.full(3, 0.1), "warp": warp}
    draws["lengthscale"] = np.full((3, 2), 0.5)
    y = rng.normal(size=12)
    raw = KernelPredictor.factorise(sl.kernels.Matern(), train, y, draws)
    tangent = raw.linearised(best)
    mean, variance = raw.moments(new)
    slope = np.exp(-log_slope(np.array(best), warp))[:, None]
    np.testing.assert_allclose(tangent.moments(new)[0], best + slope * (mean - warped(np.array(best), warp)[:, None]))
    np.testing.assert_allclose(tangent.moments(new)[1], slope**2 * variance)
    # Improvements have the slope of a warp with a pivot as unit.
    assert raw.improvement_scale == tangent.improvement_scale == 1.0
    at_best = KernelPredictor.factorise(sl.kernels.Matern(), train, Targets(y, np.zeros(12), pivot=y.min()), draws)
    for predictor, value in ((at_best, y.min()), (at_best.linearised(best), best)):
        slopes = np.exp(-log_slope(np.array(value), warp, y.min()))
        assert predictor.improvement_scale == pytest.approx(slopes.mean())
    # The targets of each draw are its transformed ones.
    plain = {name: values[:1] for name, values in draws.items() if name != "warp"}
    alone = KernelPredictor.factorise(sl.kernels.Matern(), train, warped(y, warp[0]), plain)
    np.testing.assert_allclose(alone.moments(new)[0][0], mean[0])
    h = 1e-6
    moments = tangent.moments_with_gradient(new)
    for d in range(2):
        shifted = new.unit_values.copy()
        shifted[:, d] += h
        moved = tangent.moments(encoder.encode(shifted))
        np.testing.assert_allclose((moved[0] - moments.mean) / h, moments.mean_gradient[..., d], rtol=1e-3, atol=1e-4)
        finite = (moved[1] - moments.variance) / h
        np.testing.assert_allclose(finite, moments.variance_gradient[..., d], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("warp", ["auto", "log", "best"])
def test_known_errors_leave_out_an_automatic_warp_and_refuse_a_chosen_one(warp):
    encoder = Encoder(ConfigurationSpace({"x": (0.0, 1.0)}))
    model = Model(encoder, priors={"warp": sl.LogNormal(0, 1), "sigma_n": 0.1}, warp=warp)
    x = np.linspace(0, 1, 5)[:, None]
    y = np.sin(6 * x[:, 0])
    assert observe(model, x, y, errors=np.zeros(5)).model.warp == ("best" if warp == "best" else "log")
    if warp != "auto":
        with pytest.raises(sl.DataError, match=f"warp='{warp}' cannot be combined with known errors.*use warp='none'"):
            observe(model, x, y, errors=0.3)
        return
    observed = observe(model, x, y, errors=0.3).model
    assert (observed.warp, "warp" in observed.priors, observed.priors["sigma_n"]) == (
        "none",
        False,
        model.priors["sigma_n"],
    )
    assert observed.left_out == ("no warp, since errors of observations are known (y_sd): warp='auto'",)
    assert Model.fromdict(model.asdict()).given_warp == "auto"


@pytest.mark.stan
def test_noisy_values_with_known_errors_are_predicted_as_without_a_warp():
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 24)[:, None]
    truth = np.sin(2 * np.pi * x[:, 0])
    y = truth + 0.6 * rng.normal(size=24)
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    posterior = sl.GaussianProcess(space, warp="auto").fit(x, y, y_sd=0.6, method="map")
    assert "no warp, since errors of observations are known" in posterior.check().notes[0]
    # The standard error of a smooth function with a few degrees of freedom is about 0.6 sqrt(5 / 24).
    assert np.sqrt(np.mean(np.square(posterior.predict(x).mean - truth))) < 0.35


@pytest.mark.stan
def test_the_programs_refuse_known_errors_under_a_warp():
    model = Model(ConfigurationSpace({"x": (0.0, 1.0)}), warp="log")
    x = model.encoder.encode(np.linspace(0, 1, 5)[:, None])
    data = model.stan_data(x, np.arange(5.0), x[:0], y_sd=np.full(5, 0.1))
    with pytest.raises(sl.InferenceError, match="y_sd is above 0"):
        run(compiled("matern_gp"), data, sl.inference.FitOptions(method="map"), seed=1)


def test_unknown_warps_are_refused():
    with pytest.raises(sl.DataError, match="unknown warp 'lgo'; did you mean 'log'"):
        sl.GaussianProcess(ConfigurationSpace({"x": (0.0, 1.0)}), warp="lgo")
