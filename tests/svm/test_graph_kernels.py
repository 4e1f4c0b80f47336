from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.linalg import cosm, expm

from slayr_py import DataError, svm

KARATE = nx.karate_club_graph()  # its edges have weights


def laplacian(graph, normalized):
    make = nx.normalized_laplacian_matrix if normalized else nx.laplacian_matrix
    return make(graph).toarray().astype(float)


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize(
    ("make", "function"),
    [
        (lambda **k: svm.Diffusion(beta=0.3, **k), lambda L: expm(-0.3 * L)),
        (lambda **k: svm.RegularizedLaplacian(beta=0.3, **k), lambda L: np.linalg.inv(np.eye(34) + 0.3 * L)),
        (lambda **k: svm.RandomWalk(p=3, a=60.0, **k), lambda L: np.linalg.matrix_power(60 * np.eye(34) - L, 3)),
    ],
)
def test_kernels_are_functions_of_the_laplacian(make, function, normalized):
    wanted = function(laplacian(KARATE, normalized))
    computed = make(graph=KARATE, normalized=normalized)(list(KARATE))
    np.testing.assert_allclose(computed, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())


def test_inverse_cosine():
    wanted = cosm(laplacian(KARATE, True) * np.pi / 4)
    np.testing.assert_allclose(svm.InverseCosine(KARATE)(list(KARATE)), wanted, atol=1e-12)
    pair = nx.path_graph(2)  # no eigenvalue exceeds 2, normalised or not
    np.testing.assert_allclose(
        svm.InverseCosine(pair, normalized=False)([0, 1]), cosm(laplacian(pair, False) * np.pi / 4)
    )


@pytest.mark.parametrize("normalized", [True, False])
def test_default_a_is_the_smallest_legal_value(normalized):
    a = 2.0 if normalized else np.linalg.eigvalsh(laplacian(KARATE, False))[-1]
    wanted = np.linalg.matrix_power(a * np.eye(34) - laplacian(KARATE, normalized), 2)
    computed = svm.RandomWalk(KARATE, normalized=normalized)(list(KARATE))
    np.testing.assert_allclose(computed, wanted, atol=1e-12 * wanted.max())


def test_a_graph_may_be_a_matrix():
    dense = nx.to_numpy_array(KARATE)
    wanted = svm.Diffusion(KARATE)(list(KARATE))
    for matrix in (dense, dense.tolist(), sparse.csr_array(dense), sparse.coo_matrix(dense)):
        np.testing.assert_allclose(svm.Diffusion(matrix)(range(34)), wanted, atol=1e-14)


def test_kernel_values_between_components_are_zero():
    graph = nx.Graph([("a", "b"), ("c", "d")])
    graph.add_node("alone")
    for normalized in (True, False):
        gram = svm.Diffusion(graph, normalized=normalized)(["a", "c", "alone"])
        np.testing.assert_allclose(gram - np.diag(np.diag(gram)), 0, atol=1e-15)
        assert gram[2, 2] == pytest.approx(1.0)


@pytest.mark.parametrize(
    "nodes",
    [
        ["b", "a", "b"],
        np.array(["b", "a", "b"]),
        np.array([["b"], ["a"], ["b"]], dtype=object),
        pd.Series(["b", "a", "b"]),
        pd.DataFrame({"node": ["b", "a", "b"]}),
    ],
)
def test_containers_of_nodes(nodes):
    graph = nx.Graph([("a", "b"), ("b", "c")])
    whole = svm.Diffusion(graph)(["a", "b", "c"])
    np.testing.assert_allclose(svm.Diffusion(graph)(nodes), whole[np.ix_([1, 0, 1], [1, 0, 1])])


def test_features_are_exact_for_nodes_not_passed_to_fit():
    kernel = svm.Diffusion(KARATE, beta=0.2)
    factorization = svm.KernelFactorization(kernel).fit([0, 33])
    features = factorization.transform(list(KARATE))
    np.testing.assert_allclose(features @ features.T, kernel(list(KARATE)), atol=1e-12)
    np.testing.assert_array_equal(factorization.fit_transform([5, 0]), features[[5, 0]])


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("name", ["diffusion", "regularized_laplacian", "random_walk"])
def test_few_eigenpairs_of_a_large_sparse_graph(name, normalized):
    graph = nx.grid_2d_graph(23, 31)  # nodes are tuples; all eigenvalues of the Laplacian are distinct
    kernel = svm.from_name(name, graph=graph, normalized=normalized)
    few = kernel.eigenpairs(12)
    all_of_them = kernel.eigenpairs()
    np.testing.assert_allclose(few.values, all_of_them.values[:12], rtol=1e-9)
    np.testing.assert_allclose(few.vectors, all_of_them.vectors[:, :12], atol=1e-6)
    corner = svm.KernelFactorization(kernel, rank=12).fit([(0, 0)]).transform([(0, 0), (22, 30)])
    assert corner.shape == (2, 12)


def test_few_eigenpairs_of_a_graph_of_several_components():
    sizes = np.random.default_rng(3).integers(8, 16, 6)
    graph = nx.disjoint_union_all([nx.gnp_random_graph(int(n), 0.5, seed=300 + i) for i, n in enumerate(sizes)])
    few = svm.Diffusion(graph).eigenpairs(6)
    np.testing.assert_allclose(few.values, 1, rtol=1e-12)
    np.testing.assert_allclose(few.vectors.T @ few.vectors, np.eye(6), atol=1e-12)


@pytest.mark.parametrize("rank", [None, 6, 40])
def test_components_have_their_own_eigenvectors(rank):
    graph = nx.disjoint_union_all([nx.grid_2d_graph(4, 8), *[nx.gnp_random_graph(7, 0.6, seed=i) for i in range(9)]])
    graph.add_node("alone")
    order = list(np.random.default_rng(1).permutation(len(graph)))
    weights = nx.to_numpy_array(graph)[np.ix_(order, order)]
    pairs = svm.Diffusion(weights).eigenpairs(rank)
    eigenvalues = np.exp(-np.linalg.eigvalsh(np.diag(weights.sum(axis=1)) - weights))
    np.testing.assert_allclose(pairs.values, eigenvalues[: len(pairs.values)], rtol=1e-9)
    np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(len(pairs.values)), atol=1e-9)
    for component in nx.connected_components(nx.from_numpy_array(weights)):
        shares = np.square(pairs.vectors[list(component)]).sum(axis=0)
        assert np.all((shares == 0) | (np.abs(shares - 1) < 1e-9))


def test_rank_as_a_share_of_the_trace():
    kernel = svm.Diffusion(KARATE)
    values = kernel.eigenpairs().values
    r = len(kernel.eigenpairs(0.9).values)
    assert values[:r].sum() >= 0.9 * values.sum() > values[: r - 1].sum()


@pytest.mark.parametrize(
    ("graph", "match"),
    [
        (nx.DiGraph([(0, 1)]), "directed .*DiGraph"),
        (np.array([[0.0, 2.0], [0.0, 0.0]]), r"directed: .* 2 at \(0, 1\) and 0 at \(1, 0\)"),
        (nx.Graph(), "empty: 0 nodes"),
        (np.zeros((0, 0)), "empty: 0 nodes"),
        (nx.empty_graph(3), "empty: 3 nodes and no edges"),
        (nx.Graph([(0, 1, {"weight": -2.0})]), r"weight -2\.0"),
        (nx.Graph([(0, 1, {"weight": np.nan})]), "weight nan"),
        (np.ones((2, 3)), r"square.*\(2, 3\)"),
        ("karate", "'karate'"),
    ],
)
def test_invalid_graphs_raise(graph, match):
    with pytest.raises(DataError, match=match):
        svm.KernelFactorization(svm.Diffusion(graph)).fit([0])


@pytest.mark.parametrize(
    ("kernel", "nodes", "match"),
    [
        (svm.Diffusion(KARATE), [0, 99], r"99 is not a node of the graph; the first of its 34 nodes are \[0, 1, 2\]"),
        (svm.Diffusion(KARATE), ["Mr. Hi"], "'Mr. Hi' is not a node"),
        (svm.Diffusion(nx.to_numpy_array(KARATE)), [-1], "-1 is not a node"),
        (svm.Diffusion(KARATE), np.ones((3, 2)), "single column of nodes"),
        (svm.Diffusion(KARATE), 7, "list or a single column of nodes, got 7"),
        (svm.Diffusion(KARATE, beta=0.0), [0], r"beta of Diffusion .* 0\.0"),
        (svm.RegularizedLaplacian(KARATE, beta=-1), [0], "beta .* -1"),
        (svm.RandomWalk(KARATE, p=0), [0], "p of RandomWalk .* 0"),
        (svm.RandomWalk(KARATE, a=1.9), [0], r"at least 2 for the normalised .* 1\.9"),
        (svm.RandomWalk(KARATE, a=2.0, normalized=False), [0], r"at least 52\.06.* for the unnormalised .* 2\.0"),
        (svm.InverseCosine(KARATE, normalized=False), [0], r"eigenvalue 52\.06.*normalized=True"),
    ],
)
def test_invalid_nodes_and_parameters_raise(kernel, nodes, match):
    with pytest.raises(DataError, match=match):
        svm.KernelFactorization(kernel).fit(nodes)
