"""Laws that every kernel function must obey, for all kernels."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from sklearn.base import clone
from testing_kernels import CASES as GP_CASES, random_points, random_theta

from slayr_py import svm
from slayr_py.space import Encoder

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(40, 3))
GRAPH = nx.karate_club_graph()
NODES = RNG.permutation(GRAPH)[:20].tolist()


def gp_case(name):
    kernel, space = GP_CASES[name]
    encoder = Encoder(space)
    theta = random_theta(kernel, encoder, np.random.default_rng(1))
    return svm.GPKernel(encoder, kernel, theta), random_points(encoder, 30, 2)


CASES = {
    "linear": (svm.Linear(), VECTORS),
    "polynomial": (svm.Polynomial(degree=2, gamma=0.3, coef0=0.5), VECTORS),
    "polynomial-homogeneous": (svm.Polynomial(coef0=0.0), VECTORS),
    "rbf": (svm.RBF(gamma=0.2), VECTORS),
    "laplacian": (svm.Laplacian(gamma=0.7), VECTORS),
    **{f"matern-{p}": (svm.Matern(p, [0.5, 1.0, 2.0]), VECTORS) for p in (0, 1, 4)},
    "precomputed": (svm.Precomputed(), VECTORS @ VECTORS.T),
    **{f"gp-{name}": gp_case(name) for name in GP_CASES},
    **{
        f"{name}-{'' if normalized else 'un'}normalised": (
            svm.from_name(name, graph=GRAPH, normalized=normalized),
            NODES,
        )
        for name in ("diffusion", "regularized_laplacian", "random_walk")
        for normalized in (True, False)
    },
    "inverse_cosine": (svm.InverseCosine(GRAPH), NODES),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def test_every_name_has_a_case():
    assert {name.split("-")[0] for name in CASES} == set(svm.names())


def test_only_graph_kernels_provide_eigenpairs(case):
    kernel, _ = case
    assert kernel.needs_factorization is not isinstance(kernel, svm.GraphKernel)


def test_gram_is_symmetric_and_positive_semidefinite(case):
    kernel, points = case
    gram = kernel(points)
    assert gram.shape == (len(points), len(points)) and gram.dtype == np.float64
    np.testing.assert_allclose(gram, gram.T, atol=1e-13 * np.abs(gram).max())
    assert np.linalg.eigvalsh(gram).min() > -1e-12 * np.trace(gram)


def test_cross_gram_is_a_block_of_the_gram(case):
    kernel, points = case
    gram = kernel(points)
    np.testing.assert_allclose(kernel(points[3:5], points), gram[3:5], atol=1e-13 * np.abs(gram).max())
    if not isinstance(kernel, svm.Precomputed):  # a row of kernel values alone is not a point
        np.testing.assert_allclose(kernel(points[3:4])[0, 0], gram[3, 3], rtol=1e-12)


def test_inner_products_of_features_are_the_kernel(case):
    kernel, points = case
    gram = kernel(points)
    factorization = svm.KernelFactorization(kernel)
    features = factorization.fit_transform(points)
    again = factorization.transform(points)
    largest = np.abs(gram).max()
    for product in (features @ features.T, again @ again.T, again @ features.T):
        np.testing.assert_allclose(product, gram, rtol=0, atol=1e-10 * largest)


def test_clones_have_the_same_gram(case):
    kernel, points = case
    np.testing.assert_array_equal(clone(kernel)(points), kernel(points))


def test_points_are_not_modified():
    before = VECTORS.copy(), CASES["precomputed"][1].copy()
    for kernel, points in CASES.values():
        svm.KernelFactorization(kernel).fit(points).transform(points)
    assert np.array_equal(VECTORS, before[0]) and np.array_equal(CASES["precomputed"][1], before[1])
