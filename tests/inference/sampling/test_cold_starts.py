"""Points from which a fit starts: short length-scales, periods at peaks, and a spread as that of the prior."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace, EqualsCondition

import slayr_py as sl
from slayr_py.inference.sampling.cold_starts import LITTLE_NOISE, SHORT, cold_starts, quarter_of_period
from slayr_py.inference.sampling.coordinate_priors import CoordinatePriors
from slayr_py.kernels.expressions.periodogram import peaks
from slayr_py.space import Encoder

SPACE = Encoder(ConfigurationSpace({"x": (0.0, 1.0), "z": (0.0, 1.0)}))
X, Z = np.random.default_rng(1).random((2, 120))
WAVES = np.sin(2 * np.pi * X / 0.2) + 0.5 * np.sin(2 * np.pi * X / 0.07) + np.sin(2 * np.pi * Z / 0.13)

GRID = 1e-3
"""Scores are inverted on a grid; a start need not be more accurate."""


def data_of(expression, y=WAVES, priors=None, **options):
    gp = sl.GaussianProcess(SPACE, expression, priors)
    train = SPACE.encode([{"x": x, "z": z} for x, z in zip(X[: len(y)], Z, strict=False)])
    return gp.model.stan_data(train, y, train[:0], **options)


def starts_of(data, count=4, program="composite_gp", seed=0):
    return cold_starts(program, data, np.random.default_rng(seed), count)


def theta_of(data, start):
    """Return the hyperparameters at a start by name."""
    shapes = {name: np.shape(values) for name, values in start.items()}
    values = {name: np.asarray(value, dtype=np.float64) for name, value in data.items()}
    point = np.concatenate([np.ravel(start[name]) for name in shapes])
    return {name: each[0] for name, each in CoordinatePriors(values, shapes)(point[None]).theta.items()}


def periods(data, start):
    return theta_of(data, start)["period"]


def test_the_first_start_has_the_highest_peak_of_each_column():
    data = data_of("PER[z] * PER[x] + SE")
    first, *others = starts_of(data)
    np.testing.assert_allclose(periods(data, first), [0.13, 0.2], rtol=0.02)
    assert len(others) == 3
    in_x = peaks(X, WAVES, 8)
    for k, start in enumerate(others, start=1):
        np.testing.assert_allclose(periods(data, start)[1], in_x[k % len(in_x)], rtol=1e-5)


def test_a_single_period_starts_at_the_highest_peak_and_at_the_next_ones():
    data = data_of("PER[x] + SE")
    in_x = peaks(X, WAVES, 8)
    found = [periods(data, start)[0] for start in starts_of(data, 6)]
    np.testing.assert_allclose(found, in_x[[0, 1, 0, 2, 0, 3]], rtol=1e-5)


def test_short_length_scales_in_marked_columns_together_and_in_single_ones():
    encoder = Encoder(ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(3)}))
    points = np.random.default_rng(0).random((150, 3))
    y = np.sin(60 * points[:, 0]) + np.sin(50 * points[:, 2])
    train = encoder.encode([{f"x{i}": value for i, value in enumerate(row)} for row in points])
    model = sl.GaussianProcess(encoder, "matern").model
    data = model.stan_data(train, y, train[:0])
    found = cold_starts("matern_gp", data, np.random.default_rng(0))
    scale = np.exp(data["lengthscale_location"])
    short = [theta_of(data, start)["lengthscale"] < 0.5 * scale for start in found[:5]]
    assert len(found) == 7
    assert np.array(short).astype(int).tolist()[:2] == [[1, 1, 1], [1, 0, 1]]
    assert {tuple(np.flatnonzero(row)) for row in short[2:]} == {(0,), (1,), (2,)}


def test_leaves_of_one_column_start_at_different_peaks():
    data = data_of("PER[x] * PER[x] + SE")
    in_x = peaks(X, WAVES, 8)
    for k, start in enumerate(starts_of(data, 3)):
        np.testing.assert_allclose(periods(data, start), [in_x[0], in_x[k]], rtol=1e-5)


@pytest.mark.parametrize("prior", [sl.LogNormal(0, 0.1), sl.Gamma(2.0, 5.0), sl.HalfNormal(0.3)])
def test_periods_are_on_the_scale_of_the_prior(prior):
    data = data_of("PER[x]", priors={"period": prior})
    np.testing.assert_allclose(periods(data, starts_of(data, 1)[0]), 0.2, rtol=0.02)


def test_a_fixed_period_stays_where_it_is():
    data = data_of("PER[x] + PER[z]", priors={"period": {"1:PER": 0.3}})
    np.testing.assert_allclose(periods(data, starts_of(data, 1)[0]), [0.3, 0.13], rtol=0.02)


@pytest.mark.parametrize("y", [WAVES[:4], np.zeros(120)])
def test_periods_without_peaks_are_spread_as_the_prior(y):
    data = data_of("PER[x] + PER[z]", y=y)
    scores = (np.log([periods(data, start) for start in starts_of(data, 200)]) - data["period_location"]) / data[
        "period_scale"
    ]
    assert np.all(scores[0] == 0) and np.all(np.abs(scores) <= 2 + 1e-6)
    assert np.ptp(scores, axis=0).min() > 3.9


@pytest.mark.parametrize("n", [10, 120])
def test_length_scales_are_short_in_the_first_start_and_spread_as_the_prior_in_the_others(n):
    # The coordinates alone would have no length-scale below 0.4 within 2 of their origin.
    gp = sl.GaussianProcess(SPACE, "matern")
    train = SPACE.encode([{"x": x, "z": z} for x, z in zip(X[:n], Z, strict=False)])
    data = gp.model.stan_data(train, np.sin(40 * X[:n]), train[:0])
    first, *others = (theta_of(data, start) for start in starts_of(data, 400, "matern_gp"))
    location, scale = data["lengthscale_location"], data["lengthscale_scale"]
    if n == 120:
        np.testing.assert_allclose(first["lengthscale"][0], 2 * np.pi / 40 / 4, rtol=0.05)
    scores = np.array([(np.log(other["lengthscale"]) - location) / scale for other in others])
    assert np.all(np.abs(scores) < 2 + GRID) and np.allclose(np.quantile(scores, [0.1, 0.9]), [-1.6, 1.6], atol=0.15)
    noise = np.array(
        [(np.log(other["sigma_n"][0]) - data["sigma_n_location"]) / data["sigma_n_scale"] for other in others]
    )
    assert np.ptp(noise) > 3.9
    np.testing.assert_allclose(
        np.log(first["sigma_n"]), data["sigma_n_location"] + LITTLE_NOISE * data["sigma_n_scale"], atol=GRID
    )


def test_only_distances_have_short_length_scales():
    data = data_of("SE[x] + LIN[x] + PER[x]")
    start = theta_of(data, starts_of(data, 1)[0])["lengthscale"]
    np.testing.assert_allclose(start[0], 0.05, rtol=0.05)
    np.testing.assert_allclose(start[1:], np.exp(data["lengthscale_location"][1:]), rtol=GRID)


def test_a_parameter_of_a_branch_has_the_peak_where_it_is_active():
    space = ConfigurationSpace({"kind": ["wave", "line"]})
    x = ConfigurationSpace({"x": (0.0, 1.0)})["x"]
    space.add(x)
    space.add(EqualsCondition(x, space["kind"], "wave"))
    encoder = Encoder(space)
    configs = [dict(config) for config in encoder.sobol(120, 0)]
    train = encoder.encode(configs)
    y = np.array([np.sin(2 * np.pi * config["x"] / 0.1) if "x" in config else 5.0 for config in configs])
    gp = sl.GaussianProcess(encoder, "hierarchical")
    data = gp.model.stan_data(train, y, train[:0])
    start = theta_of(data, starts_of(data, 1, "hierarchical_gp")[0])
    labels = next(h.labels for h in gp.model.hyperparameters if h.name == "lengthscale")
    np.testing.assert_allclose(start["lengthscale"][labels.index("x")], 0.025, rtol=0.05)


def test_without_a_peak_a_length_scale_is_two_scores_below_the_median():
    assert quarter_of_period(np.empty(0), 0.0, 1.0) == SHORT == -2.0
    assert quarter_of_period(np.array([0.4, 0.1]), 0.0, 2.0) == np.log(0.1) / 2.0
    assert quarter_of_period(np.array([0.4]), 0.0, 0.1) == -4.0  # under a narrow prior
    assert quarter_of_period(np.array([0.4]), -3.0, 1.0) == 0.0  # never above the median


def test_the_mean_starts_at_the_observations_under_a_wide_prior():
    gp = sl.GaussianProcess(SPACE, "matern", {"mu": sl.Normal(0.0, 1000.0)})
    train = SPACE.encode([{"x": x, "z": z} for x, z in zip(X, Z, strict=False)])
    data = gp.model.stan_data(train, WAVES + 3.0, train[:0])
    for start in starts_of(data, 4, "matern_gp"):
        assert abs(theta_of(data, start)["mu"][0] - np.mean(WAVES) - 3.0) < 0.001  # six decimals of 1000
    fixed = sl.GaussianProcess(SPACE, "matern", {"mu": 0.5}).model.stan_data(train, WAVES, train[:0])
    assert theta_of(fixed, starts_of(fixed, 1, "matern_gp")[0])["mu"] == 0.5


def test_starts_depend_on_the_seed_only():
    data = data_of("SE + LIN")
    assert starts_of(data) == starts_of(data) != starts_of(data, seed=1)
    assert starts_of(data_of("SE + LIN", prior_only=True), 2)[0]["z_lengthscale"] == pytest.approx(
        starts_of(data_of("SE + LIN", y=np.zeros(120)), 2)[0]["z_lengthscale"]
    )


@pytest.mark.stan
@pytest.mark.parametrize(
    ("method", "options"),
    [("map", {}), ("laplace", {}), ("pathfinder", {}), ("nuts", {"chains": 2, "warmup": 150, "draws": 100})],
)
def test_sixteen_waves_are_not_taken_for_noise(method, options):
    # From CmdStan's own initial values modes, most paths and chains end where sigma_n is 0.7, and pass their checks.
    rng = np.random.default_rng(100)
    x = rng.random(100)
    y = np.sin(100 * x) + 3 * x + 0.2 * rng.standard_normal(100)
    gp = sl.GaussianProcess(ConfigurationSpace({"x": (0.0, 1.0)}))
    posterior = gp.fit([{"x": value} for value in x], y, method=method, seed=2, **options)
    noise = posterior.idata["posterior"]["sigma_n"].values * abs(posterior.y_sd)
    assert np.quantile(noise, 0.95) < 0.35 and posterior.check().ok


@pytest.mark.stan
def test_chains_start_at_the_points_of_the_paths_if_pathfinder_fails(monkeypatch):
    def fails(*arguments, **options):
        raise RuntimeError("no path")

    gp = sl.GaussianProcess(SPACE)
    configs = [{"x": x, "z": z} for x, z in zip(X[:20], Z, strict=False)]
    monkeypatch.setattr("cmdstanpy.CmdStanModel.pathfinder", fails)
    posterior = gp.fit(configs, WAVES[:20], chains=2, warmup=50, draws=20, seed=1)
    (call,) = posterior.record["calls"]
    data = gp.model.stan_data(gp.model.encoder.encode(configs), posterior.data["y"], gp.model.encoder.encode([]))
    assert "Pathfinder" not in posterior.record["inits"]
    assert call["init"] == cold_starts("matern_gp", data, np.random.default_rng(2))[:2]
