"""Population Monte Carlo."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from slayr_py.inference.sampling.population import improve, normal_mixture


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
    assert calls == [500]


def test_no_more_proposals_than_should_suffice():
    """A second step of 500 is not needed if the first is worth nearly 100 draws; means remain unbiased."""
    rng = np.random.default_rng(0)
    start = rng.normal(0, 1.6, size=(200, 5))
    calls = []

    def density(points):
        calls[-1].append(len(points))
        return -0.5 * np.square(points).sum(1)

    means = []
    for seed in range(60):
        calls.append([])
        found = improve(density, start, 200, lambda k, ess: k < 0.7 and ess >= 100, np.random.default_rng(seed))
        assert found.ess >= 100 and found.steps == len(calls[-1])
        means.append(found.draws.mean(axis=0))
    assert {later for first, *others in calls for later in others} <= {125, 250, 375, 500}
    assert any(125 in others for _, *others in calls) and sum(map(sum, calls)) < 60 * 800
    error = np.std(means, axis=0, ddof=1) / np.sqrt(60)
    assert np.all(np.abs(np.mean(means, axis=0)) < 4 * error)


def test_ratios_that_are_only_too_few_keep_their_mixture():
    """Three times as many proposals as the first step had are needed and left: no mixture is fitted to few of them."""
    rng = np.random.default_rng(0)
    sizes = []

    def density(points):
        sizes.append(len(points))
        return -0.5 * np.square(points).sum(1)

    found = improve(density, rng.normal(0, 1.6, size=(200, 5)), 200, lambda k, ess: k < 0.7 and ess >= 250, rng)
    assert found.ess >= 250 and sizes[:2] == [500, 500] and len(sizes) == found.steps
    assert found.rows.min() < 500  # the first proposals are used


def test_one_parameter():
    found = improve(
        lambda x: -0.5 * x[:, 0] ** 2, np.linspace(-1, 1, 50)[:, None], 500, never, np.random.default_rng(0)
    )
    assert found.draws.shape == (500, 1) and found.draws.std() == pytest.approx(1, abs=0.1)


def test_a_density_without_finite_values():
    start = np.random.default_rng(0).normal(size=(50, 2))
    with pytest.raises(ValueError, match="only 0 of 500"):
        improve(lambda x: np.full(len(x), -np.inf), start, 50, never, np.random.default_rng(0))


def test_equal_draws_have_no_covariance():
    with pytest.raises(ValueError, match="the 50 draws are all equal"):
        improve(two_modes, np.ones((50, 3)), 50, never, np.random.default_rng(0))


def test_a_population_of_few_good_points_reaches_the_posterior():
    """The first ratios are worth one to three draws, from which no covariance in 14 dimensions can be estimated."""
    scales = np.geomspace(0.2, 1, 14)

    def good(pareto_k, ess):
        return pareto_k <= 0.7 and ess >= 50

    for seed in range(2):
        rng = np.random.default_rng(seed)
        start = rng.normal(0.5, 1.2, size=(200, 14))
        found = improve(lambda x: -0.5 * np.square(x / scales).sum(1), start, 200, good, rng, most_steps=10)
        assert 1 < found.steps <= 10 and good(found.pareto_k, found.ess)
        # At least 100 effective draws, which systematic resampling makes no worse.
        assert np.abs(found.draws.mean(axis=0) / scales).max() < 0.4


@pytest.mark.parametrize("seed", range(8))
def test_distant_modes_have_a_normal_distribution_each_in_many_dimensions(seed):
    # Their distance is most of the variance of one direction of twelve, and small where all variances are 1.
    rng = np.random.default_rng(seed)
    points = np.repeat([[4.0], [-4.0]], 128, axis=0) + 0.8 * rng.standard_normal((256, 12))
    found = normal_mixture(points, np.full(256, 1 / 256), np.cov(points.T), rng, distant=True)
    np.testing.assert_allclose(np.sort(found.centres.mean(axis=1)), [-4, 4], atol=0.1)
    np.testing.assert_allclose(found.shares, 0.5, atol=1e-6)
