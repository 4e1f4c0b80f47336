"""Tempered sequential Monte Carlo, against distributions whose moments are known."""

from __future__ import annotations

import numpy as np
import pytest

from slayr_py.inference.diagnostics.checks import PARETO_K_LIMIT
from slayr_py.inference.sampling.tempering import (
    EffectiveNumbers,
    _Particles,
    _Target,
    effective_lineages,
    effective_numbers,
    numbers_of_moves,
    temper,
)

PRIOR_ONLY = 18


class Bent:
    """Two coordinates on a bow, x ~ N(0, 1) and y ~ N(x^2 / 2, 1 / 2), and 18 logistic ones that stand for a prior."""

    def __call__(self, points):
        return self.with_gradient(points)[0]

    def with_gradient(self, points):
        x, y, z = points[:, 0], points[:, 1], points[:, 2:]
        with np.errstate(all="ignore"):
            apart = y - x**2 / 2
            density = -0.5 * x**2 - apart**2 - np.sum(z + 2 * np.logaddexp(0, -z), axis=1)
            slopes = np.column_stack([2 * x * apart - x, -2 * apart, -np.tanh(z / 2)])
        defined = np.isfinite(density) & np.isfinite(slopes).all(axis=1)
        return np.where(defined, density, -np.inf), np.where(defined[:, None], slopes, 0.0)


def start(rng, n=256):
    """Return draws of a distribution of another location and other scales, without the bow."""
    return rng.standard_normal((n, 2 + PRIOR_ONLY)) * [1.3, 1.2, *np.full(PRIOR_ONLY, 1.2)] + 0.3


def test_draws_are_those_of_the_target_and_errors_those_of_the_effective_number():
    errors = []
    numbers = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        tempered = temper(Bent(), start(rng), 200, 50, rng)
        assert tempered.temperatures[-1] == 1 and tempered.pareto_k <= PARETO_K_LIMIT and tempered.ess >= 50
        moments = np.column_stack([tempered.draws, np.square(tempered.draws[:, 2:])])
        variance = np.pi**2 / 3  # of the logistic distribution; its fourth moment is 4.2 times the square
        exact = np.array([0, 0.5, *np.zeros(PRIOR_ONLY), *np.full(PRIOR_ONLY, variance)])
        spread = np.array([1, 1, *np.full(PRIOR_ONLY, variance**0.5), *np.full(PRIOR_ONLY, 3.2**0.5 * variance)])
        errors.append((moments.mean(axis=0) - exact) / spread)
        numbers.append(tempered.ess)
    errors = np.array(errors)
    # The mean over 4 runs has the error of 200 effective draws; the largest of 38 is below 4 errors.
    assert np.abs(errors.mean(axis=0)).max() < 4 / np.sqrt(4 * 50)
    # The effective number is the smallest of all coordinates: mean squared errors are no larger than it says.
    assert np.square(errors[:, : 2 + PRIOR_ONLY]).mean() < 1 / np.mean(numbers)


class TwoModes:
    """In 12 dimensions, 0.3 N(4, 1 / 4) + 0.7 N(-4, 1)."""

    def __call__(self, points):
        return self.with_gradient(points)[0]

    def with_gradient(self, points):
        apart = np.stack([2 * (points - 4), points + 4])
        terms = np.log([0.3 * 2.0**12, 0.7])[:, None] - 0.5 * np.square(apart).sum(axis=2)
        total = np.logaddexp(*terms)
        slopes = np.exp(terms - total)[:, :, None] * -apart * np.array([2, 1])[:, None, None]
        return total, slopes.sum(axis=0)


@pytest.mark.parametrize("wanted", [50, 100])
def test_modes_have_their_shares(wanted):
    # 200 particles have an effective number of 40 to 110, however long they move; more particles start anew.
    right = []
    numbers = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        modes = np.repeat([[4.0], [-4.0]], 128, axis=0)  # as many draws of each, as of two chains that are stuck
        tempered = temper(TwoModes(), modes + 0.8 * rng.standard_normal((256, 12)), 200, wanted, rng)
        assert tempered.pareto_k <= PARETO_K_LIMIT and tempered.ess >= wanted
        right.append(np.mean(tempered.draws[:, 0] > 0))
        numbers.append(tempered.ess)
    assert np.mean(right) == pytest.approx(0.3, abs=3 * np.sqrt(0.3 * 0.7 / np.sum(numbers)))


def test_one_normal_keeps_the_variances_of_the_draws_and_shrinks_their_correlations():
    rng = np.random.default_rng(2)
    draws = rng.standard_normal((60, 12)) @ rng.standard_normal((12, 12))
    target = _Target.fitted(Bent(), draws, rng)
    wanted = np.cov(draws.T) * np.where(np.eye(12), 1, 60 / 72)
    np.testing.assert_allclose(target.root @ target.root.T, wanted, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(target.points(np.zeros((1, 12)))[0], draws.mean(axis=0))


@pytest.mark.parametrize("right", [True, False])
def test_steps_grow_while_particles_are_accepted_and_shrink_otherwise(right):
    class Wrong(Bent):
        def with_gradient(self, points):
            density, slopes = super().with_gradient(points)
            return density, slopes if right else -50 * slopes

    rng = np.random.default_rng(1)
    target = _Target.fitted(Wrong(), start(rng), rng)
    x = rng.standard_normal((50, 2 + PRIOR_ONLY))
    particles = _Particles(target, x, target.log_p(x)[0])
    particles.select(np.arange(50))
    particles.step = first = 0.1
    for _ in range(3):
        particles.move(1.0, rng)
    assert particles.step > 1.1 * first if right else particles.step < 0.8 * first


def test_draws_that_cannot_move_have_few_effective_ones():
    class Frozen(Bent):
        def with_gradient(self, points):
            density, slopes = super().with_gradient(points)
            return density, -50 * slopes

    rng = np.random.default_rng(1)
    assert temper(Frozen(), start(rng), 200, 50, rng).ess < 50


def test_a_target_far_from_the_start_is_refused():
    class Distant(Bent):
        def with_gradient(self, points):
            return super().with_gradient(100 * (points - 30.0))

    rng = np.random.default_rng(1)
    tempered = temper(Distant(), start(rng), 200, 50, rng)
    assert tempered.pareto_k > PARETO_K_LIMIT or tempered.ess < 50
    assert tempered.ess >= 1 and tempered.draws.shape == (200, 20)  # of which a record has means and their errors


def test_effective_number_counts_lineages():
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((20_000, 2))
    families = np.arange(20_000) // 10
    # Relatives that have become independent.
    assert effective_numbers(draws, families).numbers == pytest.approx(20_000, rel=0.1)
    assert effective_numbers(np.repeat(draws[:2000], 10, axis=0), families).numbers == pytest.approx(1999, rel=1e-9)
    assert effective_lineages(np.zeros(20_000)) == 1
    assert effective_lineages(np.arange(20_000) < 5000) == pytest.approx(1.6)


@pytest.mark.parametrize("left", [0.0, 0.3, 0.9, -0.9, 1.0])
@pytest.mark.parametrize("width", [0.0, 0.1, 1.0, 2.0])
def test_the_variance_of_a_mean_of_few_lineages_follows_from_what_is_left_of_the_positions(left, width):
    """Two lineages of particles, of which each has a width around its ancestor, before four moves."""
    rng = np.random.default_rng(0)
    m = 200
    numbers = []
    means = []
    for _ in range(300):
        x = np.repeat(rng.standard_normal((2, 1, 6)), m // 2, axis=1) * np.sqrt(max(1 - width**2, 0.0))
        path = [(x + width * rng.standard_normal((2, m // 2, 6))).reshape(m, 6)]
        for _ in range(4):
            path.append(left * path[-1] + np.sqrt(1 - left**2) * rng.standard_normal((m, 6)))
        numbers.append(numbers_of_moves(np.array(path), effective_lineages(np.arange(m) % 2)).numbers)
        means.append(path[-1].mean(axis=0))
    true = np.mean(1 / np.array(means).var(axis=0))
    assert np.median(numbers) < 1.25 * true
    if left == 0 and width > 0.5:
        assert np.median(numbers) > 0.8 * m


@pytest.mark.parametrize("sizes", [[5] * 8, [4] * 10, [12, 5, 5, 5, 5, 5, 3]])
@pytest.mark.parametrize("alike", [False, True])
def test_reciprocals_estimate_the_variance_of_the_mean(sizes, alike):
    """Of independent relatives without bias, of equal ones if the lineages are equally large."""
    rng = np.random.default_rng(0)
    ancestors = np.repeat(np.arange(len(sizes)), sizes)
    draws = rng.standard_normal((20_000, 40))
    if alike:
        draws = draws[:, ancestors] + 1e-6 * draws
    apart = np.square(draws - draws.mean(axis=1, keepdims=True)).sum(axis=1)
    ratio = np.mean(apart / 40 / effective_numbers(draws.T, ancestors).numbers) / np.mean(np.square(draws.mean(axis=1)))
    least = 0.8 if alike and sizes[0] != sizes[1] else 0.94
    assert least < ratio < 1.06


@pytest.mark.parametrize("slow", [1, 8])
def test_the_smallest_effective_number_is_not_that_of_a_coordinate_that_has_it_by_chance(slow):
    """Of forty lineages, relatives are independent or, in one coordinate, equal."""
    rng = np.random.default_rng(0)
    ancestors = np.repeat(np.arange(40), 5 * slow)
    found = []
    for _ in range(200):
        draws = rng.standard_normal((len(ancestors), 60))
        draws[:, 0] = draws[ancestors * 5 * slow, 0] if slow > 1 else draws[:, 0]
        found.append(effective_numbers(draws, ancestors))
    errors = np.std([np.log(each.numbers[1:]) for each in found], axis=0)
    assert np.mean([each.error for each in found]) == pytest.approx(errors.mean(), rel=0.1)
    raw, smallest = np.median([(each.numbers.min(), each.smallest) for each in found], axis=0)
    if slow == 1:
        assert raw < 0.7 * 200 < 0.8 * 200 < smallest < 200
    else:
        assert 39 <= smallest < 1.3 * 40  # the 40 lineages


@pytest.mark.parametrize("numbers, error, smallest", [([50.0, 50.0], 0.3, 50), ([20.0, 80.0, 90.0], 0.3, 20)])
def test_few_or_equal_effective_numbers_are_not_shrunk(numbers, error, smallest):
    assert EffectiveNumbers(np.array(numbers), error).smallest == smallest
