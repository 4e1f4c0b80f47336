"""Plans of composite kernels: the backward sweep to hyperparameters."""

from __future__ import annotations

import numpy as np
import pytest
from testing_kernels import CASES, random_points, random_theta

from slayr_py.kernels.expressions.composite import Planned
from slayr_py.kernels.expressions.pairs import Pairs
from slayr_py.space import Encoder

PLANNED = {name: case for name, case in CASES.items() if isinstance(case[0], Planned)}


def draws_of(kernel, encoder, count):
    rng = np.random.default_rng(3)
    each = [random_theta(kernel, encoder, rng) for _ in range(count)]
    return {name: np.stack([theta[name] for theta in each]) for name in each[0]}


@pytest.mark.parametrize("name", PLANNED)
@pytest.mark.parametrize("count", [1, 3])
def test_pullback_is_the_derivative_by_every_hyperparameter(name, count):
    kernel, space = PLANNED[name]
    encoder = Encoder(space)
    a = random_points(encoder, 6, 1)
    b = random_points(encoder, 5, 2)
    plan = kernel.plan(encoder)
    pairs = Pairs.cross(a, b, plan.given)
    draws = draws_of(kernel, encoder, count)
    adjoint = np.random.default_rng(4).normal(size=(count, 6, 5))
    value, pullback = plan.correlation_pullback(pairs, draws)
    np.testing.assert_array_equal(value, plan.correlation(pairs, draws))
    slopes = pullback(adjoint)
    assert set(slopes) == {h.name for h in kernel.hyperparameters(encoder)}
    for hyperparameter, slope in slopes.items():
        for entry in range(slope.shape[1]):
            step = np.zeros_like(slope)
            step[:, entry] = 1e-6 * draws[hyperparameter][:, entry]
            up, down = (
                plan.correlation(pairs, draws | {hyperparameter: draws[hyperparameter] + sign * step})
                for sign in (1, -1)
            )
            expected = np.sum(adjoint * (up - down), axis=(1, 2)) / (2 * step[:, entry])
            np.testing.assert_allclose(slope[:, entry], expected, rtol=1e-6, atol=1e-7)


def test_pairs_compute_each_feature_once():
    encoder = Encoder(PLANNED["composite-plain"][1])
    points = random_points(encoder, 4, 1)
    pairs = Pairs.cross(points, points, ())
    assert pairs.squares((0, 1)) is pairs.squares((0, 1))
    np.testing.assert_array_equal(pairs.squares((1,)), np.square(pairs.differences((1,))))
    four_products = np.square(pairs.sums((0,))) - pairs.squares((0,))
    np.testing.assert_allclose(4 * pairs.products((0,)), four_products, rtol=0, atol=1e-14)
