"""Importance resampling and population Monte Carlo."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

import slayr_py as sl
from slayr_py.inference.diagnostics.importance import smoothed_resample
from slayr_py.inference.sampling import approximations
from slayr_py.inference.sampling.population import improve
from slayr_py.space import Encoder


def two_modes(points):
    """Mass 0.75 at +1.5 and 0.25 at -1.5 in the first of three directions."""
    centres = np.array([[1.5, 0, 0], [-1.5, 0, 0]])
    squares = np.square(points[:, None] - centres).sum(-1)
    return logsumexp(-0.5 * squares / 0.25 + np.log([0.75, 0.25]), axis=1)


def never(pareto_k, ess):
    return False


def test_a_normal_approximation_becomes_a_mixture():
    rng = np.random.default_rng(0)
    start = rng.normal([0.75, 0, 0], [1.5, 0.5, 0.5], size=(200, 3))
    means = []
    for seed in range(20):
        found = improve(two_modes, start, 400, never, np.random.default_rng(seed))
        assert found.pareto_k < 0.7 and found.ess > 100
        means.append((found.draws.mean(axis=0), found.draws.var(axis=0)))
    means, variances = (np.array(m) for m in zip(*means, strict=True))
    for got, wanted in ((means, [0.75, 0, 0]), (variances, [0.25 + 0.75 * 0.25 * 9, 0.25, 0.25])):
        error = got.std(axis=0, ddof=1) / np.sqrt(len(got))
        # Self-normalised importance sampling has a bias of the order 1 / ess, a fortieth of a standard deviation here.
        assert np.all(np.abs(got.mean(axis=0) - wanted) < 4 * error + 0.01 * np.abs(wanted) + 0.005)


def test_it_stops_at_good_ratios():
    calls = []

    def density(points):
        calls.append(len(points))
        return -0.5 * np.square(points).sum(1)

    start = np.random.default_rng(0).normal(size=(100, 2))
    improve(density, start, 50, lambda k, ess: k < 0.7 and ess > 20, np.random.default_rng(1))
    assert calls == [1000]


def test_one_parameter():
    found = improve(
        lambda x: -0.5 * x[:, 0] ** 2, np.linspace(-1, 1, 50)[:, None], 500, never, np.random.default_rng(0)
    )
    assert found.draws.shape == (500, 1) and found.draws.std() == pytest.approx(1, abs=0.1)


def test_a_density_without_finite_values():
    start = np.random.default_rng(0).normal(size=(50, 2))
    with pytest.raises(ValueError, match="only 0 of 1000"):
        improve(lambda x: np.full(len(x), -np.inf), start, 50, never, np.random.default_rng(0))


def test_resampling_keeps_expected_counts():
    log_ratio = np.log([0.5, 0.25, 0.125, 0.0625, 0.0625, 1e-300])
    log_ratio[-1] = np.nan
    kept = smoothed_resample(log_ratio, 1600, np.random.default_rng(0))
    assert 5 not in kept.rows and 1 < kept.ess <= 5
    assert np.all(np.diff(np.bincount(kept.rows, minlength=5)) <= 1)


@pytest.mark.stan
@pytest.mark.parametrize("method", ["pathfinder", "laplace"])
@pytest.mark.parametrize("fixture", ["branin_posterior", "mixed_posterior"])
def test_a_fit_with_improved_draws(fixture, method, request, monkeypatch):
    exact = request.getfixturevalue(fixture)
    resample = approximations.smoothed_resample
    monkeypatch.setattr(approximations, "smoothed_resample", lambda *a: resample(*a)._replace(pareto_k=2.0))
    y = exact.y_mean + exact.y_sd * np.asarray(exact.data["y"])
    gp = sl.GaussianProcess(exact.encoder, exact.kernel)
    posterior = gp.fit(exact.train, y, method=method, draws=100, seed=1)
    if fixture == "mixed_posterior" and posterior.record["arguments"]["method"] == "nuts":
        pytest.skip(f"{method} was abandoned here: {posterior.record['abandoned']}")
    assert posterior.record["arguments"]["improved"] and posterior.check().ok
    assert posterior.check().pareto_k <= 0.7 and posterior.check().ess_bulk_min >= 50 / 2
    assert posterior.draws.keys() == exact.draws.keys()
    new = Encoder(exact.encoder.space).sobol(5, 9)
    for a, b in zip(posterior.predict(new), posterior.predict(new, engine="stan"), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8 * posterior.y_sd)
    for name in ("lengthscale", "sigma_f", "sigma_n"):
        gap = np.log(posterior.draws[name]).mean(axis=0) - np.log(exact.draws[name]).mean(axis=0)
        assert np.all(np.abs(gap) < 0.6 * np.log(exact.draws[name]).std(axis=0)), name
