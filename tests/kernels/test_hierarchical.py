from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from testing_kernels import random_points, random_theta
from testing_spaces import conditional_space

from slayr_py.errors import DataError
from slayr_py.kernels import Hierarchical, Separable
from slayr_py.space import Encoder


def embedding(points, i, theta):
    """Return the paper's map f of one dimension into a Euclidean space, row by row."""
    encoder = points.encoder
    name = encoder.names[i]
    dimension = encoder.dimensions[i]
    line = [encoder.names.index(n) for n in (*encoder.ancestors[name], name)]
    omega = np.prod(theta["gamma"][line])
    rho = theta["rho"][i]
    rows = []
    for x, on in zip(points.unit_values[:, i], points.active[:, i], strict=True):
        if dimension.kind == "categorical":
            row = np.full(len(dimension.levels), 1 - rho)
            row[int(x)] = 1.0
            row /= np.linalg.norm(row)
        else:
            u = x / (len(dimension.levels) - 1) if dimension.levels else x
            row = np.array([np.sin(np.pi * rho * u), np.cos(np.pi * rho * u)])
        rows.append(on * omega * row)
    return np.array(rows)


@pytest.mark.parametrize("combine", ["product", "sum"])
@pytest.mark.parametrize(
    ("base", "euclidean"),
    [
        ("se", lambda d, theta: np.exp(-0.5 * d**2)),
        ("rq", lambda d, theta: (1 + d**2 / (2 * theta["rq_alpha"])) ** -theta["rq_alpha"]),
        ("matern", lambda d, theta: (1 + np.sqrt(5) * d + 5 / 3 * d**2) * np.exp(-np.sqrt(5) * d)),
    ],
)
def test_a_euclidean_kernel_of_the_embedding(base, euclidean, combine):
    encoder = Encoder(conditional_space())
    kernel = Hierarchical(base, combine)
    points = random_points(encoder, 40, 0)
    for seed in range(10):
        theta = random_theta(kernel, encoder, np.random.default_rng(seed))
        factors = []
        for i, lengthscale in enumerate(theta["lengthscale"]):
            embedded = embedding(points, i, theta)
            factors.append(euclidean(cdist(embedded, embedded) / lengthscale, theta))
        wanted = np.prod(factors, axis=0) if combine == "product" else np.sum(factors, axis=0)
        # cdist differs from the direct distances by the rounding of the embedding.
        np.testing.assert_allclose(kernel.gram(points, points, theta), theta["sigma_f"] ** 2 * wanted, rtol=1e-7)


@pytest.mark.parametrize("kernel", [Hierarchical, Separable])
def test_only_matern_kernels_have_an_order(kernel):
    assert kernel(base="matern", p=1).p == 1
    with pytest.raises(DataError, match="p is 1, but the base kernel 'se' has no order; leave p out, or use"):
        kernel(base="se", p=1)


def test_limits_of_the_weights_are_legal():
    encoder = Encoder(conditional_space())
    kernel = Hierarchical("matern")
    points = random_points(encoder, 20, 1)
    n = len(encoder.names)
    for gamma, rho in [(0.0, 0.5), (1.0, 0.0), (1.0, 1.0), (0.0, 0.0)]:
        theta = {"gamma": [gamma] * n, "rho": [rho] * n, "lengthscale": [1.0] * n}
        k = kernel.gram(points, points, theta)
        assert np.all(np.isfinite(k)) and np.all(np.diag(k) == 1)
