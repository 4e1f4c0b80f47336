"""Predictions of a posterior, their gradients, and pending points."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import ConfigurationSpace

import slayr_py as sl
from slayr_py.inference.model import NOISE_FLOOR
from slayr_py.inference.modes.likelihood import Targets
from slayr_py.inference.prediction import blocks
from slayr_py.inference.prediction.blocks import predict_all, sample_all
from slayr_py.inference.prediction.distribution import Latent, Prediction, mixture_moments
from slayr_py.inference.prediction.factorisation import ExactFactorisation
from slayr_py.inference.prediction.kernel_predictor import KernelPredictor
from slayr_py.inference.prediction.stan_engine import coordinate_table
from slayr_py.inference.sampling.programs import compiled
from slayr_py.inference.sampling.run import generate
from slayr_py.kernels import Matern
from slayr_py.space import Encoded, Encoder


@pytest.mark.stan
@pytest.mark.parametrize("fixture", ["branin_posterior", "mixed_posterior"])
def test_stan_and_numpy_predict_the_same(fixture, request):
    posterior = request.getfixturevalue(fixture)
    new = posterior.encoder.sobol(9, 123)
    here = posterior.predict(new)
    there = posterior.predict(new, engine="stan")
    for name in ("mean", "sd", "draw_mean", "draw_sd"):
        a = getattr(here, name)
        b = getattr(there, name)
        assert a.flags.c_contiguous and b.flags.c_contiguous
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8 * posterior.y_sd)


def test_prediction_is_the_mixture_of_its_draws(mixed_posterior):
    prediction = mixed_posterior.predict(mixed_posterior.encoder.sobol(5, 8))
    assert prediction.draw_mean.shape == prediction.draw_sd.shape == (200, 5)
    np.testing.assert_allclose(prediction.mean, prediction.draw_mean.mean(axis=0))
    second_moment = np.mean(prediction.draw_sd**2 + prediction.draw_mean**2, axis=0)
    np.testing.assert_allclose(prediction.sd**2, second_moment - prediction.mean**2, rtol=1e-9)


def test_prediction_against_the_formulas_with_an_inverse(mixed_posterior):
    posterior = mixed_posterior
    new = posterior.encoder.encode(posterior.encoder.sobol(4, 5))
    prediction = posterior.predict(new)
    y = posterior.idata["observed_data"]["y"].values
    for i in (0, 57, 199):
        theta = {name: value[i] for name, value in posterior.draws.items()}
        noise = theta["sigma_n"] ** 2 + NOISE_FLOOR**2
        inverse = np.linalg.inv(posterior.kernel.gram(posterior.train, posterior.train, theta) + noise * np.eye(len(y)))
        cross = posterior.kernel.gram(posterior.train, new, theta)
        mean = theta["mu"] + cross.T @ inverse @ (y - theta["mu"])
        own = np.diag(posterior.kernel.gram(new, new, theta))
        variance = own - np.einsum("ij,ik,kj->j", cross, inverse, cross)
        np.testing.assert_allclose(prediction.draw_mean[i], posterior.y_mean + posterior.y_sd * mean, rtol=1e-7)
        np.testing.assert_allclose(prediction.draw_sd[i], posterior.y_sd * np.sqrt(variance), rtol=1e-5)


@pytest.mark.stan
@pytest.mark.parametrize("fixture", ["branin_posterior", "mixed_posterior"])
def test_joint_moments_in_stan_and_numpy(fixture, request):
    posterior = request.getfixturevalue(fixture)
    new = posterior.encoder.encode(posterior.encoder.sobol(5, 123))
    mean, covariance = posterior.predictor().joint_moments(new)
    data = posterior.model.stan_data(posterior.train, posterior.data["y"], new, pointwise=False) | {"want_cov": 1}
    table = coordinate_table(posterior.parts[0].contents.coordinates)
    output = generate(compiled(posterior.kernel.program), data, table, seed=1)
    by_stan = output[[f"f_cov.{i + 1}.{j + 1}" for i in range(5) for j in range(5)]].to_numpy()
    np.testing.assert_allclose(covariance.reshape(-1, 25), by_stan, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(mean, output[[f"f_mean.{i + 1}" for i in range(5)]].to_numpy(), rtol=1e-8, atol=1e-8)
    one_by_one = posterior.predictor().moments(new)[1]
    np.testing.assert_allclose(np.diagonal(covariance, axis1=1, axis2=2), one_by_one, rtol=1e-8, atol=1e-10)


@pytest.fixture(scope="module")
def drawn():
    """Draws of a Matérn kernel on six observations, and configurations of which two coincide and one is observed."""
    encoder = Encoder(ConfigurationSpace({"a": (0.0, 1.0), "b": (0.0, 1.0)}))
    rng = np.random.default_rng(7)
    train = encoder.encode(rng.random((6, 2)))
    new = encoder.encode(
        np.vstack([rng.random((2, 2)), train.unit_values[:1], train.unit_values[1:2], train.unit_values[1:2]])
    )
    draws = {"mu": rng.normal(size=4), "sigma_f": rng.lognormal(size=4), "sigma_n": np.array([1e-9, 1e-4, 0.1, 0.5])}
    draws["lengthscale"] = 0.5 * rng.lognormal(size=(4, 2))
    return Matern(), train, rng.normal(size=6), draws, new


def test_a_table_may_have_other_columns_in_another_order(mixed_posterior):
    configs = mixed_posterior.encoder.sobol(3, 8)
    table = pd.DataFrame([dict(config) for config in configs])
    table = table[table.columns[::-1]].assign(accuracy=0.5)
    np.testing.assert_array_equal(mixed_posterior.predict(table).mean, mixed_posterior.predict(configs).mean)
    with pytest.raises(sl.SpaceError, match="the table has no column for parameter 'layers'; did you mean 'layer'"):
        mixed_posterior.predict(table.rename(columns={"layers": "layer"}))


def predictor_of(drawn):
    kernel, train, y, draws, _ = drawn
    return lambda rows: KernelPredictor.factorise(
        kernel, train, y, {name: values[rows] for name, values in draws.items()}
    )


def test_joint_draws_have_the_joint_moments(drawn):
    kernel, train, y, draws, new = drawn
    for row in range(4):
        rows = np.full(20_000, row)
        values = sample_all(predictor_of(drawn), len(train), new, rows, np.random.default_rng(1))
        mean, covariance = (
            moment[row] for moment in KernelPredictor.factorise(kernel, train, y, draws).joint_moments(new)
        )
        sd = np.sqrt(np.maximum(np.diag(covariance), 0))
        np.testing.assert_allclose(values.mean(axis=0), mean, atol=4.5 * sd.max() / np.sqrt(20_000))
        np.testing.assert_allclose(
            np.cov(values.T), covariance, atol=4.5 * np.sqrt(2) * sd.max() ** 2 / np.sqrt(20_000)
        )
        np.testing.assert_allclose(values[:, 3], values[:, 4], atol=1e-4)


def test_repeated_draws_are_factorised_once(drawn, monkeypatch):
    kernel, train, y, draws, new = drawn
    rows = np.array([2, 0, 2, 1, 0])
    factorisation = ExactFactorisation(kernel, train, Targets(y, np.zeros(6)))
    calls = []

    def factorise(kernel, train, targets, some, original=KernelPredictor.factorise):
        calls.append(len(some["mu"]))
        return original(kernel, train, targets, some)

    monkeypatch.setattr(KernelPredictor, "factorise", factorise)
    predictor = factorisation.predictor(draws, rows)
    assert calls == [3]
    alone = [factorisation.predictor(draws, np.array([row])).moments(new) for row in rows]
    for found, expected in zip(predictor.moments(new), zip(*alone, strict=True), strict=True):
        np.testing.assert_allclose(found, np.concatenate(expected), rtol=1e-12, atol=1e-12)
    assert predictor.draws["mu"].tolist() == draws["mu"][rows].tolist()


def test_joint_draws_do_not_depend_on_blocks(drawn, monkeypatch):
    _, train, _, _, new = drawn
    rows = np.array([3, 0, 3, 2, 1, 3])
    whole = sample_all(predictor_of(drawn), len(train), new, rows, np.random.default_rng(1))
    monkeypatch.setattr(blocks, "BLOCK", 1)
    split = sample_all(predictor_of(drawn), len(train), new, rows, np.random.default_rng(1))
    alone = sample_all(predictor_of(drawn), len(train), new, rows[:1], np.random.default_rng(1))
    # The conditional variance of a repeated configuration is a rounding error of at most 1e-14, besides the jitter.
    np.testing.assert_allclose(split, whole, atol=1e-6)
    np.testing.assert_allclose(alone[0], whole[0], atol=1e-6)


def test_gradients_of_the_moments(branin_posterior):
    predictor = branin_posterior.predictor(7)
    encoder = branin_posterior.encoder
    values = np.random.default_rng(0).random((5, 2))

    def at(v):
        return Encoded(v, np.ones(v.shape, dtype=bool), encoder)

    mean, variance, mean_gradient, variance_gradient = predictor.moments_with_gradient(at(values))
    np.testing.assert_allclose(predictor.moments(at(values))[0], mean)
    np.testing.assert_allclose(predictor.moments(at(values))[1], variance)
    h = 1e-6
    for j in range(2):
        step = h * np.eye(2)[j]
        above = predictor.moments(at(values + step))
        below = predictor.moments(at(values - step))
        np.testing.assert_allclose(mean_gradient[..., j], (above[0] - below[0]) / (2 * h), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(variance_gradient[..., j], (above[1] - below[1]) / (2 * h), rtol=1e-5, atol=1e-5)


@pytest.mark.stan
@pytest.mark.parametrize("fixture", ["branin_posterior", "mixed_posterior"])
def test_pending_points_extend_the_factor_exactly(fixture, request):
    posterior = request.getfixturevalue(fixture)
    encoder = posterior.encoder
    predictor = posterior.predictor(20)
    pending = encoder.encode(encoder.sobol(3, 50))
    elsewhere = encoder.encode(encoder.sobol(6, 51))
    quick = predictor.with_pending(pending)
    believed = np.hstack([np.tile(posterior.data["y"], (len(predictor.factor), 1)), predictor.moments(pending)[0]])
    targets = Targets(believed, np.zeros(believed.shape[1]), posterior.model.noise_floor)
    whole = KernelPredictor.factorise(posterior.kernel, posterior.train.concatenate(pending), targets, predictor.draws)
    np.testing.assert_allclose(quick.factor, whole.factor, atol=1e-9)
    for a, b in zip(quick.moments_with_gradient(elsewhere), whole.moments_with_gradient(elsewhere), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)


def test_pending_points_shrink_the_variance_and_keep_the_mean(branin_posterior):
    predictor = branin_posterior.predictor(5)
    encoder = branin_posterior.encoder
    pending = encoder.encode(encoder.sobol(2, 50))
    elsewhere = encoder.encode(encoder.sobol(6, 51))
    conditioned = predictor.with_pending(pending)
    before = predictor.moments(elsewhere)
    after = conditioned.moments(elsewhere)
    np.testing.assert_allclose(after[0], before[0], rtol=1e-6, atol=1e-6)
    assert np.all(after[1] <= before[1] + 1e-9)
    assert np.all(conditioned.moments(pending)[1] < predictor.noise + 1e-9)


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ([0.1, 0.1, 20.0, 0.1, 0.1], 0.1),  # a bad measurement
        ([0.3, 0.2, 0.2, 0.2, 0.0], 0.2),  # a value without an error
        ([0.0, 0.0, 0.0, 0.0, 0.6], 0.0),
        ([0.5, 0.6, 0.7, 0.8, 0.9], 0.7),
    ],
)
def test_a_further_observation_has_the_median_of_the_last_known_errors(branin_posterior, last, expected):
    predictor = branin_posterior.predictor(5)
    errors = np.zeros(len(predictor.train))
    errors[-5:] = last
    targets = predictor.targets._replace(errors=errors)
    told = KernelPredictor.factorise(predictor.kernel, predictor.train, targets, predictor.draws)
    noise = predictor.draws["sigma_n"][:, None] ** 2 + NOISE_FLOOR**2
    np.testing.assert_allclose(told.noise, noise + expected**2)
    np.testing.assert_allclose(told.with_error(3.0).noise, noise + 9.0)
    pending = branin_posterior.encoder.encode(branin_posterior.encoder.sobol(1, 50))
    variance = told.moments(pending)[1]
    for error in (None, 3.0):
        further = told.with_error(error)
        wanted = variance * further.noise / (variance + further.noise)  # of a normal function after one noisy value
        np.testing.assert_allclose(further.with_pending(pending).moments(pending)[1], wanted, rtol=1e-6)


@pytest.mark.stan
@pytest.mark.parametrize("pending", [0, 2])
@pytest.mark.parametrize("fixture", ["branin_posterior", "mixed_posterior"])
def test_compared_moments_are_those_of_the_means_after_an_evaluation(fixture, pending, request):
    """One standard deviation of a new value moves the difference of two posterior means by the compared one."""
    posterior = request.getfixturevalue(fixture)
    encoder = posterior.encoder
    predictor = posterior.predictor(20).with_pending(encoder.encode(encoder.sobol(pending, 50)))
    recommended = encoder.encode(encoder.sobol(1, 52))
    new = encoder.encode(encoder.sobol(4, 51))
    mean, variance = predictor.compared(recommended).linearised(0.0).moments(new)
    at_recommended = predictor.moments(recommended)[0]
    np.testing.assert_allclose(mean, predictor.moments(new)[0])
    np.testing.assert_allclose(predictor.compared(recommended).linearised(0.1).incumbent, at_recommended + 0.1)
    y = observations_behind(predictor)
    for i in range(4):
        told = predictor.moments(new[[i]])[0] + np.sqrt(predictor.moments(new[[i]])[1] + predictor.noise)
        targets = Targets(np.hstack([y, told]), np.zeros(y.shape[1] + 1), posterior.model.noise_floor)
        train = predictor.train.concatenate(new[[i]])
        after = KernelPredictor.factorise(posterior.kernel, train, targets, predictor.draws)
        moved = after.moments(new[[i]])[0] - mean[:, [i]] - (after.moments(recommended)[0] - at_recommended)
        np.testing.assert_allclose(np.square(moved[:, 0]), variance[:, i], rtol=1e-5, atol=1e-10)
    assert np.all(predictor.compared(recommended).linearised(0.0).moments(recommended)[1] < 1e-12)


def observations_behind(predictor):
    """Return observations whose posterior is that of a predictor: K alpha + mu."""
    covariance = predictor.factor @ predictor.factor.transpose(0, 2, 1)
    return predictor.draws["mu"][:, None] + np.einsum("sij,sj->si", covariance, predictor.weights)


@pytest.mark.stan
@pytest.mark.parametrize("fixture", ["branin_posterior", "mixed_posterior"])
@pytest.mark.parametrize("several", [False, True])
def test_a_running_configuration_that_a_draw_believes_to_be_better_is_compared_with(several, fixture, request):
    """The recommended one is its runner-up."""
    posterior = request.getfixturevalue(fixture)
    encoder = posterior.encoder
    points = encoder.encode(encoder.sobol(64, 50))
    alike = points[np.argsort(posterior.predictor(20).moments(points)[0].mean(axis=0))[28:33]]
    recommended = alike[: 2 if several else 1]
    running = alike[2:]
    new = encoder.encode(encoder.sobol(4, 51)).concatenate(running)
    predictor = posterior.predictor(20).with_pending(running)
    found = predictor.compared(recommended, running).linearised(-0.1)
    values = predictor.moments(recommended[:1].concatenate(running))[0]
    best = values.argmin(axis=1)
    assert len(set(best)) > 1
    np.testing.assert_allclose(found.incumbent, values.min(axis=1, keepdims=True) - 0.1)
    for i, chosen in enumerate(best):
        pair = running[[chosen - 1]].concatenate(recommended[:1]) if chosen else recommended
        expected = predictor.at(np.array([i])).compared(pair).linearised(-0.1).moments(new)
        for place, value in zip(found.at(np.array([i])).moments(new), expected, strict=True):
            np.testing.assert_allclose(place, value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("running", [0, 3])
def test_gradients_of_compared_moments(running, several, prepared, branin_posterior):
    encoder = branin_posterior.encoder
    recommended = encoder.encode(encoder.sobol(2 if several else 1, 52))
    believed = encoder.encode(encoder.sobol(running, 50)) if running else None
    predictor = branin_posterior.predictor(7).compared(recommended, believed).linearised(0.0)
    predictor = predictor.for_search() if prepared else predictor
    values = np.random.default_rng(0).random((5, 2))

    def at(v):
        return Encoded(v, np.ones(v.shape, dtype=bool), encoder)

    found = predictor.moments_with_gradient(at(values))
    for place, expected in zip(found[:2], predictor.moments(at(values)), strict=True):
        np.testing.assert_allclose(place, expected, rtol=1e-9)
    h = 1e-6
    for j in range(2):
        step = h * np.eye(2)[j]
        above = predictor.moments(at(values + step))
        below = predictor.moments(at(values - step))
        np.testing.assert_allclose(found.mean_gradient[..., j], (above[0] - below[0]) / (2 * h), rtol=1e-5, atol=1e-5)
        slope = (above[1] - below[1]) / (2 * h)
        np.testing.assert_allclose(found.variance_gradient[..., j], slope, rtol=1e-4, atol=1e-5)
    if several and not running:  # beside the recommended one, the runner-up is what an evaluation may improve
        best, second = np.split(branin_posterior.predictor(7).moments(recommended)[0], 2, axis=1)
        runner_up = best + np.abs(second - best)
        is_new = found.mean != runner_up
        assert is_new.any() and not predictor.moments_with_gradient(recommended[:1]).mean_gradient.any()
        np.testing.assert_allclose(predictor.moments(recommended[:1])[0], runner_up)
        assert np.all(predictor.moments(recommended[:1])[1] > 1e-6)
    plain = predictor.compared(None)
    np.testing.assert_allclose(plain.moments(at(values))[1], branin_posterior.predictor(7).moments(at(values))[1])


def test_nearly_singular_covariances_are_still_factored(branin_posterior):
    encoder = branin_posterior.encoder
    point = encoder.encode(encoder.sobol(1, 0))
    rows = point[[0] * 30]
    draws = {"mu": np.zeros(1), "sigma_f": np.ones(1), "sigma_n": np.array([1e-9]), "lengthscale": np.ones((1, 2))}
    predictor = KernelPredictor.factorise(branin_posterior.kernel, rows, np.ones(30), draws)
    mean, variance = predictor.moments(point)
    assert mean[0, 0] == pytest.approx(1, abs=1e-3) and variance[0, 0] < 1e-3
    (note,) = predictor.predict(point, 0.0, 1.0).notes
    assert "singular up to rounding under 1 of 1 draws; a relative jitter of at most 1e-1" in note
    assert branin_posterior.predict(point).notes == () and note in repr(predictor.predict(point, 0.0, 1.0))


def test_mixture_moments():
    mean = np.array([[0.0], [2.0]])
    sd = np.array([[1.0], [3.0]])
    assert [float(v[0]) for v in mixture_moments(mean, sd)] == [1.0, pytest.approx(np.sqrt(6))]


def test_a_short_description_has_the_first_rows():
    rng = np.random.default_rng(0)
    latent = Latent(rng.normal(size=(3, 8)), np.ones((3, 8)), None, 10.0, 2.0, np.ones(3), np.zeros(3))
    about = Prediction.from_latent(latent)
    first, header, *rows, more = repr(about).splitlines()
    assert first == "Prediction of the latent function at 8 configurations by 3 draws"
    assert header.split() == ["configuration", "mean", "sd"] and len(rows) == 5 and more.strip() == "... 3 more rows"
    assert [float(number) for number in rows[4].split()] == pytest.approx([4, about.mean[4], about.sd[4]], rel=1e-5)
    assert "<th>sd</th>" in about._repr_html_()


@pytest.mark.stan
@pytest.mark.parametrize("fixture", ["branin_posterior", "mixed_posterior"])
def test_moments_in_a_search_are_those_of_a_prediction(fixture, request):
    posterior = request.getfixturevalue(fixture)
    new = posterior.encoder.encode(posterior.encoder.sobol(5, 123))
    plain = posterior.predictor(16)
    prepared = plain.for_search()
    assert prepared.subset(posterior.n_chains, 8).inverse.shape[0] == 8
    for one, other in zip(plain.moments_with_gradient(new), prepared.moments_with_gradient(new), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-8, atol=1e-9)


def test_predictions_of_no_configurations_have_no_jitter(monkeypatch):
    monkeypatch.setattr(np, "empty", np.ones)  # memory that was used before
    new = Encoder(ConfigurationSpace({"x": (0.0, 1.0)})).encode([])
    mean, sd, jitter = predict_all(lambda rows: None, 5, 3, new)
    assert mean.shape == sd.shape == (5, 0) and not jitter.any()
