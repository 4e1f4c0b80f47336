from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, Constant, Float, Integer
from testing_spaces import conditional_space, odd_levels_space

from slayr_py import SpaceError
from slayr_py.space import Encoder


@pytest.fixture
def space() -> ConfigurationSpace:
    return ConfigurationSpace(
        [
            Categorical("act", ["relu", "tanh", "gelu"]),
            Categorical("size", [1, 2, 4, 8], ordered=True),
            Integer("layers", (2, 5)),
            Integer("units", (8, 512), log=True),
            Float("lr", (0.0, 1.0)),
            Constant("data", "iris"),
        ]
    )


def edges(graph: nx.Graph) -> dict[frozenset, float]:
    return {frozenset((u, v)): w for u, v, w in graph.edges(data="weight")}


def test_ordinals_are_paths_and_categoricals_complete(space):
    graphs = Encoder(space).graphs
    assert list(graphs) == ["act", "size"]
    assert edges(graphs["size"]) == {frozenset(pair): 1.0 for pair in [(1, 2), (2, 4), (4, 8)]}
    assert edges(graphs["act"]) == {
        frozenset(pair): 1.0 for pair in [("relu", "tanh"), ("relu", "gelu"), ("tanh", "gelu")]
    }


def test_graphs_by_name(space):
    encoder = Encoder(space, graphs={"act": "path", "size": "complete", "layers": "path"})
    assert len(encoder.graphs["act"].edges) == 2 and len(encoder.graphs["size"].edges) == 6
    assert edges(encoder.graphs["layers"]) == {frozenset(pair): 1.0 for pair in [(2, 3), (3, 4), (4, 5)]}


def test_a_networkx_graph_is_copied_and_frozen(space):
    star = nx.Graph([("relu", "tanh"), ("relu", "gelu", {"weight": 0.25, "colour": "red"})])
    encoder = Encoder(space, graphs={"act": star})
    star.remove_edge("relu", "gelu")  # the encoder has a copy
    graph = encoder.graphs["act"]
    assert list(graph) == ["relu", "tanh", "gelu"]
    assert edges(graph) == {frozenset({"relu", "tanh"}): 1.0, frozenset({"relu", "gelu"}): 0.25}
    with pytest.raises(nx.NetworkXError, match="[Ff]rozen"):
        graph.add_node("elu")


@pytest.mark.parametrize("kind", [list, tuple, iter])
def test_a_list_of_edges_is_a_graph(space, kind):
    encoder = Encoder(space, graphs={"act": kind([("relu", "gelu"), ["gelu", "tanh", 0.5]])})
    assert edges(encoder.graphs["act"]) == {frozenset({"relu", "gelu"}): 1.0, frozenset({"gelu", "tanh"}): 0.5}
    graph = weighted(("relu", "gelu", 1.0), ("gelu", "tanh", 0.5))
    assert encoder.matches(Encoder(space, graphs={"act": graph}))


def test_an_integer_on_a_graph_is_an_ordinal(space):
    encoder = Encoder(space, graphs={"layers": nx.cycle_graph([2, 3, 4, 5])})
    dimension = encoder.dimensions[encoder.names.index("layers")]
    assert (dimension.kind, dimension.levels) == ("ordinal", (2, 3, 4, 5))
    assert encoder.graph_names == ("act", "layers", "size") and encoder.real_names == ("lr", "units")
    configs = space.sample_configuration(50)
    encoded = encoder.encode(configs)
    decoded = encoder.decode(encoded)
    assert list(map(dict, decoded)) == list(map(dict, configs))
    assert all(type(config["layers"]) is int for config in decoded)
    assert encoded.vertices[:, 1].tolist() == [config["layers"] - 2 for config in configs]
    encoded, _ = encoder.resolve(encoder.from_uniform(np.random.default_rng(0).random((40, 5))))
    assert {config["layers"] for config in encoder.decode(encoded)} == {2, 3, 4, 5}


def test_conditions_on_an_integer_on_a_graph():
    space = conditional_space()
    plain = Encoder(space)
    on_graph = Encoder(space, graphs={"degree": "path"})
    configs = plain.sobol(64, 3)
    assert np.array_equal(on_graph.encode(configs).active, plain.encode(configs).active)
    assert list(map(dict, on_graph.decode(on_graph.encode(configs)))) == list(map(dict, configs))


def test_levels_that_cannot_be_networkx_nodes():
    encoder = Encoder(odd_levels_space())
    assert list(encoder.graphs["mixed"]) == ["None", "balanced", 0.5]
    assert (8, 8) in encoder.graphs["shape"]
    own = Encoder(odd_levels_space(), graphs={"mixed": nx.path_graph(["None", 0.5, "balanced"])})
    assert own.encode(own.sobol(8, 0)).vertices.shape == (8, 5)
    listed = Encoder(odd_levels_space(), graphs={"mixed": [(None, 0.5), (0.5, "balanced")]})
    assert listed.matches(own)


def test_vertices_and_real_unit_values():
    space = conditional_space()
    encoder = Encoder(space, graphs={"degree": "path"})
    assert encoder.graph_names == ("kernel", "degree") and encoder.real_names == ("C", "gamma", "coef0")
    encoded = encoder.encode(
        [
            {"kernel": "linear", "C": 1.0},
            {"kernel": "poly", "C": 0.01, "degree": 3, "gamma": 0.1, "coef0": 1.0},
            {"kernel": "rbf", "C": 100.0, "gamma": 10.0},
        ]
    )
    assert encoded.vertices.dtype == np.int64 and encoded.vertices.tolist() == [[0, 4], [1, 1], [2, 4]]
    assert encoded.real_active.tolist() == [[True, False, False], [True, True, True], [True, True, False]]
    assert encoded.real.flags.c_contiguous and encoded.real.dtype == np.float64
    assert encoded.real == pytest.approx(np.array([[0.5, 0.5, 0.5], [0.0, 0.5, 1.0], [1.0, 1.0, 0.5]]))
    assert encoded[[2]].vertices.tolist() == [[2, 4]]
    assert encoded.vertices is encoded.vertices and encoded.real is encoded.real


@pytest.mark.parametrize("kinds", [[Float("x", (0.0, 1.0))], [Categorical("c", ["a", "b"])]])
def test_spaces_without_graphs_or_without_real_parameters(kinds):
    encoder = Encoder(ConfigurationSpace(kinds))
    encoded = encoder.encode(encoder.sobol(4, 0))
    assert encoded.vertices.shape == (4, len(encoder.graph_names)) and encoded.vertices.dtype == np.int64
    assert encoded.real.shape == encoded.real_active.shape == (4, len(encoder.real_names))
    assert encoder.encode([]).real.shape == (0, len(encoder.real_names))


def weighted(*edges: tuple) -> nx.Graph:
    graph = nx.Graph()
    graph.add_weighted_edges_from(edges)
    return graph


SPLIT = nx.Graph([("relu", "tanh")])
SPLIT.add_node("gelu")
LOOP = nx.complete_graph(["relu", "tanh", "gelu"])
LOOP.add_edge("tanh", "tanh")


@pytest.mark.parametrize(
    ("graphs", "words"),
    [
        ({"act": nx.Graph([("relu", "tanh")])}, "'act' must have exactly the levels as nodes; missing: ['gelu']"),
        ({"act": nx.complete_graph(["relu", "tanh", "gelu", "elu"])}, "['elu'] are not among"),
        ({"act": nx.DiGraph([("relu", "tanh"), ("tanh", "gelu")])}, "use an undirected"),
        ({"act": nx.MultiGraph([("relu", "tanh"), ("tanh", "gelu")])}, "is a MultiGraph; use an undirected"),
        ({"act": SPLIT}, "'act' is not connected, since no edge leaves ['gelu']"),
        ({"act": LOOP}, "'act' joins 'tanh' to itself"),
        ({"act": weighted(("relu", "tanh", 1.0), ("tanh", "gelu", 0.0))}, "weight 0.0 between 'tanh' and 'gelu'"),
        ({"act": weighted(("relu", "tanh", -2), ("tanh", "gelu", 1))}, "weight -2 between 'relu' and 'tanh'"),
        ({"act": weighted(("relu", "tanh", np.nan), ("tanh", "gelu", 1))}, "weight nan"),
        ({"act": "compete"}, "'act' cannot be 'compete'; did you mean 'complete'"),
        ({"act": 3}, "use 'path', 'complete', a networkx.Graph or a list of edges such as"),
        ({"act": []}, "use 'path', 'complete', a networkx.Graph or a list of edges such as"),
        ({"act": [("relu", ["tanh"])]}, "is [('relu', ['tanh'])]"),
        ({"act": [("relu", "tanh"), ("tanh", "gelu"), ("tanh", "relu", 2)]}, "joins 'tanh' and 'relu' twice"),
        ({"act": [("relu", "tanh"), ("tanh", "gelu", "3")]}, "weight '3'"),
        ({"lr": "path"}, "the float 'lr'; give graphs for integers, ordinals and categoricals"),
        ({"data": "path"}, "the constant 'data'"),
        ({"layer": "path"}, "'layer', which is not a parameter; did you mean 'layers'"),
        ({"units": "path"}, "integer 'units' has 505 values, and a graph has at most 256"),
        (["act"], "give a mapping of parameter names to graphs"),
    ],
)
def test_invalid_graphs_raise(space, graphs, words):
    with pytest.raises(SpaceError) as error:
        Encoder(space, graphs=graphs)
    assert words in str(error.value)


def test_encoders_with_other_graphs_do_not_match(space):
    star = weighted(("relu", "tanh", 1.0), ("relu", "gelu", 1.0))
    heavy = weighted(("relu", "tanh", 1.0), ("relu", "gelu", 2.0))
    plain = Encoder(space)
    encoded = plain.encode(plain.sobol(3, 0))
    same = [Encoder(space), Encoder(space, graphs={"act": "complete"}), Encoder(space, graphs={"size": "path"})]
    for encoder in same:
        assert encoder.encode(encoded) is encoded
    for graphs in ({"act": star}, {"act": "path"}, {"size": "complete"}, {"layers": "path"}):
        with pytest.raises(SpaceError, match="other graphs"):
            Encoder(space, graphs=graphs).encode(encoded)
    starred = Encoder(space, graphs={"act": star})
    with pytest.raises(SpaceError, match="other graphs"):
        Encoder(space, graphs={"act": heavy}).encode(starred.encode(starred.sobol(2, 0)))
