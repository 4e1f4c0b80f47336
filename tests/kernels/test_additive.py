"""The additive kernel against the kernels it is made of."""

from __future__ import annotations

import numpy as np
import pytest
from testing_kernels import random_points
from testing_spaces import mixed_space

from slayr_py import DataError
from slayr_py.kernels import Additive, Composite, Matern
from slayr_py.kernels.additive import ALL_PARAMETERS
from slayr_py.space import Encoder


@pytest.fixture
def encoder():
    return Encoder(mixed_space())


def theta_of(encoder, seed):
    rng = np.random.default_rng(seed)
    columns = len(encoder.column_names)
    mains = {name: rng.lognormal(size=len(encoder.names)) for name in ("main_variance", "main_lengthscale")}
    return {"sigma_f": 1.7, "lengthscale": rng.lognormal(size=columns), **mains}


@pytest.mark.parametrize("p", [0, 1, 2])
def test_it_is_a_composite_kernel_whose_columns_of_a_parameter_share_a_lengthscale(encoder, p):
    theta = theta_of(encoder, p)
    widths = [len(d.levels) if d.kind == "categorical" else 1 for d in encoder.dimensions]
    relative = np.array([1.0, *theta["main_variance"]])
    shares = relative / relative.sum()
    leaf = f"MAT{2 * p + 1}2"
    composite = Composite(" + ".join([leaf, *(f"{leaf}[{name}]" for name in encoder.names)]))
    points = random_points(encoder, 9, 1)
    # Each sum is a convex combination of its left operand, the sum of all leaves before, and its right one.
    total = np.cumsum(shares)
    expected = {
        "sigma_f": theta["sigma_f"],
        "lengthscale": [*theta["lengthscale"], *np.repeat(theta["main_lengthscale"], widths)],
        "split": total[:-1] / total[1:],
    }
    gram = Additive(p).gram(points, points[:4], theta)
    np.testing.assert_allclose(gram, composite.gram(points, points[:4], expected), rtol=1e-12)


def test_without_main_effects_it_is_the_matern_kernel(encoder):
    theta = theta_of(encoder, 3) | {"main_variance": np.zeros(len(encoder.names))}
    points = random_points(encoder, 9, 1)
    matern = {name: theta[name] for name in ("sigma_f", "lengthscale")}
    assert np.array_equal(Additive(2).gram(points, points, theta), Matern(2).gram(points, points, matern))


def test_it_has_a_component_for_all_parameters_and_for_each(encoder):
    theta = theta_of(encoder, 4)
    draws = {name: np.asarray(value)[None] for name, value in theta.items()}
    points = random_points(encoder, 5, 1)
    assert Additive().component_names(encoder) == (ALL_PARAMETERS, *encoder.names)
    parts = Additive().component_cross(points, points, draws)
    relative = np.array([1.0, *theta["main_variance"]])
    for part, share, own in zip(
        parts, relative / relative.sum(), Additive().component_diagonal(points, draws), strict=True
    ):
        np.testing.assert_allclose(np.diag(part[0]), 1.7**2 * share)
        np.testing.assert_allclose(own, 1.7**2 * share)


def test_it_cannot_be_part_of_an_expression():
    with pytest.raises(DataError, match="kernel 'additive' cannot be part of a sum or product"):
        Matern() + Additive()
