from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Integer
from numpy.testing import assert_allclose

from slayr_py.space import Encoder, Spectrum

EPS = np.finfo(np.float64).eps


def weighted_graph(m: int, seed: int) -> nx.Graph:
    rng = np.random.default_rng(seed)
    graph = nx.connected_watts_strogatz_graph(m, 4, 0.3, seed=seed)
    for u, v in graph.edges:
        graph.edges[u, v]["weight"] = float(10 ** rng.uniform(-3, 3))
    return graph


GRAPHS = {
    "point": nx.path_graph(1),
    "pair": nx.path_graph(2),
    "path": nx.path_graph(9),
    "long path": nx.path_graph(256),
    "complete": nx.complete_graph(7),
    "large complete": nx.complete_graph(300),
    "cycle": nx.cycle_graph(8),
    "star": nx.star_graph(6),
    "grid": nx.grid_2d_graph(4, 5),
    "hypercube": nx.hypercube_graph(5),
    "petersen": nx.petersen_graph(),
    "weighted": weighted_graph(30, 0),
    "heavy": weighted_graph(12, 1),
}
DISTINCT = {
    "point": 1,
    "pair": 2,
    "path": 9,
    "long path": 256,
    "complete": 2,
    "large complete": 2,
    "cycle": 5,
    "star": 3,
    "hypercube": 6,
    "petersen": 3,
    "weighted": 30,
    "heavy": 12,
}


def laplacian(graph: nx.Graph) -> np.ndarray:
    weights = nx.to_numpy_array(graph)
    return np.diag(weights.sum(axis=1)) - weights


@pytest.fixture(params=GRAPHS)
def graph(request) -> nx.Graph:
    return GRAPHS[request.param]


@pytest.mark.parametrize("name", DISTINCT)
def test_exactly_equal_eigenvalues_are_grouped(name):
    spectrum = Spectrum.of(nx.to_numpy_array(GRAPHS[name]))
    assert len(spectrum.eigenvalues) == DISTINCT[name]


def test_spectrum_agrees_with_eigh_of_the_laplacian(graph):
    matrix = laplacian(graph)
    spectrum = Spectrum.of(nx.to_numpy_array(graph))
    m = len(matrix)
    values, vectors = np.linalg.eigh(matrix)
    # Backward stable: the error of eigenvalues is m eps |L|, that of a projector this error over the spectral gap.
    error = 10 * m * EPS * max(values[-1], 1.0)
    assert_allclose(spectrum.eigenvalues[spectrum.group_of], values, rtol=0, atol=error)
    for g, eigenvalue in enumerate(spectrum.eigenvalues):
        ours = spectrum.basis[:, spectrum.group_of == g]
        theirs = vectors[:, spectrum.group_of == g]
        gap = np.abs(np.delete(spectrum.eigenvalues, g) - eigenvalue).min(initial=np.inf)
        assert_allclose(ours @ ours.T, theirs @ theirs.T, rtol=0, atol=2 * error / gap + 10 * m * EPS)
    scaled = spectrum.basis * spectrum.eigenvalues[spectrum.group_of]
    assert_allclose(scaled @ spectrum.basis.T, matrix, rtol=0, atol=error)


def test_shape_type_order_and_determinism(graph):
    weights = nx.to_numpy_array(graph)
    spectrum = Spectrum.of(weights)
    again = Spectrum.of(weights)
    m = len(weights)
    assert spectrum.eigenvalues[0] == 0.0 and np.all(np.diff(spectrum.eigenvalues) > 0)
    assert np.all(spectrum.basis[:, 0] == 1 / np.sqrt(m))
    assert_allclose(spectrum.basis.T @ spectrum.basis, np.eye(m), rtol=0, atol=10 * m * EPS)
    assert spectrum.group_of.dtype == np.int64 and set(np.diff(spectrum.group_of)) <= {0, 1}
    assert spectrum.basis.flags.c_contiguous and spectrum.basis.dtype == spectrum.eigenvalues.dtype == np.float64
    assert np.array_equal(spectrum.basis, again.basis)
    assert np.array_equal(weights, nx.to_numpy_array(graph))


def test_known_spectra():
    path = Spectrum.of(nx.to_numpy_array(nx.path_graph(6)))
    assert_allclose(path.eigenvalues, 2 - 2 * np.cos(np.pi * np.arange(6) / 6), rtol=0, atol=1e-14)
    assert_allclose(Spectrum.of(nx.to_numpy_array(nx.complete_graph(5))).eigenvalues, [0, 5], rtol=0, atol=1e-13)
    heavy = Spectrum.of(np.array([[0.0, 3.0], [3.0, 0.0]]))
    assert_allclose(heavy.eigenvalues, [0, 6], rtol=EPS)
    assert_allclose(heavy.basis, np.array([[1, 1], [1, -1]]) / np.sqrt(2), rtol=2 * EPS)


def test_inactivity_adds_one_vertex():
    space = ConfigurationSpace(
        [
            Categorical("root", ["a", "b", "c"]),
            Categorical("cat", list("pqrs")),
            Categorical("rank", [1, 2, 3, 4], ordered=True),
            Integer("count", (1, 4)),
        ]
    )
    space.add(*(EqualsCondition(space[name], space["root"], "a") for name in ("cat", "rank", "count")))
    own = nx.Graph()
    own.add_weighted_edges_from([(1, 2, 0.5), (2, 3, 2.0), (3, 4, 1.5), (4, 1, 1.0)])
    encoder = Encoder(space, graphs={"count": own})
    assert list(encoder.spectra) == list(encoder.graph_names)
    assert {name: len(graph) for name, graph in encoder.graphs.items()} == {"root": 3, "cat": 4, "rank": 4, "count": 4}
    assert len(encoder.spectra["root"].basis) == 3
    for name in encoder.conditional:
        extended = nx.Graph(encoder.graphs[name])
        extended.add_edges_from([(level, "inactive") for level in encoder.graphs[name]])
        order = [*encoder.graphs[name], "inactive"]
        weights = nx.to_numpy_array(extended, nodelist=order)
        matrix = np.diag(weights.sum(axis=1)) - weights
        spectrum = encoder.spectra[name]
        rebuilt = (spectrum.basis * spectrum.eigenvalues[spectrum.group_of]) @ spectrum.basis.T
        assert_allclose(rebuilt, matrix, rtol=0, atol=100 * EPS * np.abs(matrix).max())
    # Inactivity is at the same distance from every level: the graph of a category stays complete.
    assert len(encoder.spectra["cat"].eigenvalues) == 2
    encoded = encoder.encode([{"root": "a", "cat": "s", "rank": 1, "count": 4}, {"root": "c"}])
    row = dict(zip(encoder.graph_names, encoded.vertices.T.tolist(), strict=True))
    assert row == {"root": [0, 2], "cat": [3, 4], "rank": [0, 4], "count": [3, 4]}
    assert encoder.spectra is encoder.spectra
