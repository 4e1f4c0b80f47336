"""Predictors of several kernels: the methods that a search uses."""

from __future__ import annotations

import numpy as np
import pytest

import slayr_py as sl
from slayr_py.acquisition import from_name, suggest
from slayr_py.acquisition.criteria import State
from slayr_py.inference.diagnostics.arviz_bridge import standard_error

pytestmark = pytest.mark.stan


@pytest.fixture
def new(plane_data):
    encoder = plane_data[0]
    return encoder.encode(encoder.sobol(5, 77))


def test_moments_are_those_of_the_parts(stacked, new):
    predictor = stacked.predictor()
    mean, variance = predictor.moments(new)
    parts = [one.predictor().moments(new) for one in stacked.posteriors]
    rows = [rows for _, rows in stacked.rows_of(stacked.n_draws)]
    n_one = len(predictor.rows[0])
    assert mean.shape == variance.shape == (stacked.n_draws, 5)
    np.testing.assert_allclose(mean[:n_one], parts[0][0][rows[0]], rtol=1e-12)
    np.testing.assert_allclose(variance[n_one:], parts[1][1][rows[1]], rtol=1e-12)
    found = predictor.moments_with_gradient(new)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12)
    assert found.variance_gradient.shape == (stacked.n_draws, 5, 2)
    prediction = predictor.predict(new, stacked.y_mean, stacked.y_sd)
    np.testing.assert_allclose(prediction.mean, stacked.predict(new).mean)


@pytest.mark.parametrize("n", [4, 16, 64, 200])
def test_thinning_keeps_the_proportions(stacked, new, n):
    predictor = stacked.predictor(256).subset(stacked.n_chains, n)
    sizes = [len(rows) for rows in predictor.rows]
    assert sum(sizes) == predictor.n_draws == n and abs(sizes[0] - 0.37 * n) < 1.5
    assert predictor.moments(new)[0].shape == (n, 5)
    every = predictor.subset(1, n)
    assert every is predictor


def test_pending_points_and_the_tangent(stacked, new):
    predictor = stacked.predictor(60)
    pending = predictor.with_pending(new[:2])
    assert len(pending.train) == len(stacked.train) + 2
    mean, variance = pending.moments(new)
    before = predictor.moments(new)
    np.testing.assert_allclose(mean, before[0], atol=1e-8)
    assert (variance[:, :2] < before[1][:, :2]).all()
    prior = before[1][:, :1]
    alone = predictor.with_pending(new[:1]).moments(new)[1][:, :1]
    np.testing.assert_allclose(alone, prior * predictor.noise / (prior + predictor.noise), rtol=1e-5)
    assert predictor.linearised(0.0).moments(new)[0].shape == mean.shape
    compared = predictor.compared(new[:1]).linearised(0.0)
    np.testing.assert_allclose(compared.incumbent, before[0][:, :1], atol=1e-10)
    np.testing.assert_allclose(compared.moments(new)[1][:, 0], 0, atol=1e-12)
    np.testing.assert_allclose(compared.compared(None).moments(new)[1], before[1], rtol=1e-10)
    assert predictor.warp is None


def test_chains_are_those_of_the_parts(stacked):
    first, second = stacked.chains(100)
    assert first.share + second.share == pytest.approx(1) and first.rows.shape[0] == second.rows.shape[0] == 2
    assert first.rows.max() < 100 * first.share <= second.rows.min() and second.rows.max() < 100
    # Four draws are too few for two chains.
    (few, _) = stacked.chains(12)
    assert few.rows.shape == (1, round(12 * few.share))


def test_the_error_of_the_criterion_is_that_of_a_stratified_mean(stacked, new):
    criterion = from_name("ei")
    state = State(0.0, 1, 2)
    mean, variance = stacked.predictor(100).moments(new[:1])
    chains = stacked.chains(100)
    error = criterion.error(mean[:, 0], np.sqrt(variance[:, 0]), state, chains)
    terms = np.array(
        [criterion.value(m[None], np.sqrt(v)[None], state)[0] for m, v in zip(mean, variance, strict=True)]
    )
    wanted = np.hypot(*(group.share * standard_error(terms[group.rows]) for group in chains)) / terms.mean()
    assert error == pytest.approx(wanted, rel=1e-9)
    apart = np.where(np.arange(100) < len(chains[0].rows.ravel()), 5.0, -5.0)
    assert from_name("lcb").error(apart, np.ones(100), state, chains) < 0.5  # a difference of parts is no error


@pytest.mark.parametrize("acquisition", ["ei", "log_ei", "pi", "lcb"])
def test_a_search_takes_a_stack_like_a_posterior(stacked, plane_data, acquisition):
    _, configs, y = plane_data
    arguments = {"best": y.min(), "t": 2, "pending": configs[:1], "exclude": configs}
    found = suggest(stacked, acquisition, rng=np.random.default_rng(3), **arguments)
    found.config.check_valid_configuration()
    assert np.isfinite([found.value, found.mean, found.sd, found.error]).all()
    assert found == suggest(stacked, acquisition, rng=np.random.default_rng(3), **arguments)


def test_a_stack_of_one_with_few_draws_suggests_what_its_part_does(plane_data):
    encoder, configs, y = plane_data
    one = sl.GaussianProcess(encoder).fit(configs, y, method="map")
    made = [suggest(post, best=y.min(), t=1, rng=np.random.default_rng(1)) for post in (one, sl.Posterior.stack([one]))]
    assert dict(made[0].config) == pytest.approx(dict(made[1].config), rel=1e-3, abs=1e-3)
