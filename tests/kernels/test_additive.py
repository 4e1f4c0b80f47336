"""The additive kernel against the kernels it is made of."""

from __future__ import annotations

import numpy as np
import pytest
from testing_kernels import random_points
from testing_spaces import mixed_space, plain_space

from slayr_py import DataError
from slayr_py.kernels import Additive, Composite, Matern
from slayr_py.kernels.additive import ALL_COLUMNS
from slayr_py.space import Encoder


@pytest.fixture
def encoder():
    return Encoder(mixed_space())


def theta_of(encoder, seed):
    rng = np.random.default_rng(seed)
    scales = rng.lognormal(size=len(encoder.column_names))
    return {"sigma_f": 1.7, "lengthscale": scales, "main_variance": rng.lognormal(), "main_ratio": rng.lognormal()}


def shares_of(theta, columns):
    relative = np.array([1.0, *[theta["main_variance"] / columns] * columns])
    return relative / relative.sum()


@pytest.mark.parametrize("p", [0, 1, 2])
def test_it_is_a_composite_kernel_with_shared_lengthscales(p):
    encoder = Encoder(plain_space())
    theta = theta_of(encoder, p)
    leaf = f"MAT{2 * p + 1}2"
    composite = Composite(" + ".join([leaf, *(f"{leaf}[{name}]" for name in encoder.names)]))
    points = random_points(encoder, 9, 1)
    # Each sum is a convex combination of its left operand, the sum of all leaves before, and its right one.
    total = np.cumsum(shares_of(theta, len(encoder.names)))
    expected = {
        "sigma_f": theta["sigma_f"],
        "lengthscale": [*theta["lengthscale"], *theta["main_ratio"] * theta["lengthscale"]],
        "split": total[:-1] / total[1:],
    }
    gram = Additive(p).gram(points, points[:4], theta)
    assert Additive(p).gram(points, points[:0], theta).shape == (9, 0)
    np.testing.assert_allclose(gram, composite.gram(points, points[:4], expected), rtol=1e-12)


def test_without_main_effects_it_is_the_matern_kernel(encoder):
    theta = theta_of(encoder, 3) | {"main_variance": 0.0}
    points = random_points(encoder, 9, 1)
    matern = {name: theta[name] for name in ("sigma_f", "lengthscale")}
    np.testing.assert_allclose(
        Additive(2).gram(points, points, theta), Matern(2).gram(points, points, matern), rtol=1e-14
    )


def test_it_has_a_component_for_all_columns_and_for_each(encoder):
    theta = theta_of(encoder, 4)
    draws = {name: np.asarray(value)[None] for name, value in theta.items()}
    points = random_points(encoder, 5, 1)
    columns = encoder.column_names
    assert Additive().component_names(encoder) == (ALL_COLUMNS, *columns)
    parts = Additive().component_cross(points, points, draws)
    np.testing.assert_allclose(parts.sum(axis=0)[0], Additive().gram(points, points, theta))
    own = Additive().component_diagonal(points, draws)
    for part, share, diagonal in zip(parts, shares_of(theta, len(columns)), own, strict=True):
        np.testing.assert_allclose(np.diag(part[0]), 1.7**2 * share)
        np.testing.assert_allclose(diagonal[0], 1.7**2 * share)


def test_it_cannot_be_part_of_an_expression():
    with pytest.raises(DataError, match="kernel 'additive' cannot be part of a sum or product"):
        Matern() + Additive()
