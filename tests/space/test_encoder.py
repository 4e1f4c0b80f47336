from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, Constant, Float, ForbiddenEqualsClause, Integer
from testing_spaces import conditional_space, mixed_space, plain_space

from slayr_py import SpaceError
from slayr_py.space import Encoder


def test_decode_undoes_encode_to_the_last_digit(any_space):
    any_space.seed(1)
    configs = any_space.sample_configuration(300)
    encoder = Encoder(any_space)
    assert encoder.decode(encoder.encode(configs)) == configs


def test_encoded_values_lie_where_they_should(any_space):
    any_space.seed(2)
    encoded = Encoder(any_space).encode(any_space.sample_configuration(100))
    assert encoded.values.flags.c_contiguous and encoded.values.dtype == np.float64
    assert np.all(encoded.values[~encoded.active] == 0)
    for j, dimension in enumerate(encoded.encoder.dimensions):
        column = encoded.values[encoded.active[:, j], j]
        upper = 1 if dimension.is_real else len(dimension.levels) - 1
        assert column.min() >= 0 and column.max() <= upper
    assert encoded.columns.shape == (100, len(encoded.encoder.column_names))
    assert encoded.columns.min() >= 0 and encoded.columns.max() <= 1


def test_names_follow_the_space_without_constants():
    space = mixed_space()
    encoder = Encoder(space)
    assert encoder.names == tuple(k for k in space if k != "dataset")
    assert set(encoder.real_names) == {"lr", "layers", "units"}
    assert set(encoder.graph_names) == {"act", "size"}
    assert len(encoder.column_names) == 3 + 3 + 1


def test_known_coordinates():
    encoder = Encoder(mixed_space())
    config = {"lr": 1e-4 * 1000**0.25, "layers": 2, "units": 64, "act": "tanh", "size": "large", "dataset": "iris"}
    row = dict(zip(encoder.names, encoder.encode([config]).values[0], strict=True))
    assert row["lr"] == pytest.approx(0.25)
    assert row["layers"] == pytest.approx(0.25)
    assert row["units"] == pytest.approx(0.5)
    assert (row["act"], row["size"]) == (1, 2)


def test_conditions_decide_what_is_active():
    encoder = Encoder(conditional_space())
    encoded = encoder.encode([{"kernel": "linear", "C": 1.0}, {"kernel": "rbf", "C": 1.0, "gamma": 0.1, "marker": 7}])
    active = pd.DataFrame(encoded.active, columns=encoder.names)
    assert active["gamma"].tolist() == [False, True]
    assert active["degree"].tolist() == [False, False]


def test_resolve_agrees_with_configspace():
    space = conditional_space()
    encoder = Encoder(space)
    genotype = encoder.from_uniform(np.random.default_rng(0).random((500, len(encoder.names))))
    encoded, allowed = encoder.resolve(genotype)
    poly5 = [c.get("kernel") == "poly" and c.get("degree") == 5 for c in _unchecked(encoder, encoded)]
    assert np.array_equal(~allowed, poly5) and not allowed.all()
    for config in encoder.decode(encoded[np.flatnonzero(allowed)]):
        config.check_valid_configuration()


def _unchecked(encoder, encoded):
    return [
        {d.name: d.value(v) for d, v, on in zip(encoder.dimensions, row, active, strict=True) if on}
        for row, active in zip(encoded.values, encoded.active, strict=True)
    ]


def test_sobol_is_seeded_nested_and_valid(any_space):
    encoder = Encoder(any_space)
    long, short = encoder.sobol(20, 7), encoder.sobol(5, 7)
    assert long[:5] == short
    assert encoder.sobol(5, 8) != short
    for config in long:
        config.check_valid_configuration()


def test_sobol_fills_the_cube_evenly():
    encoder = Encoder(plain_space())
    values = encoder.encode(encoder.sobol(64, 0)).values
    counts, _ = np.histogram(values[:, 0], bins=8, range=(0, 1))
    assert np.all(counts == 8)


def test_every_level_is_equally_likely():
    encoder = Encoder(ConfigurationSpace({"a": [1, 2, 3], "n": (1, 4)}))
    u = (np.arange(12) + 0.5) / 12
    genotype = encoder.from_uniform(np.column_stack([u, u]))
    assert np.bincount(genotype[:, encoder.names.index("a")].astype(int)).tolist() == [4, 4, 4]
    assert len(np.unique(genotype[:, encoder.names.index("n")])) == 4


def test_integers_and_arrays_and_frames_give_the_same(any_space):
    any_space.seed(4)
    configs = any_space.sample_configuration(10)
    encoder = Encoder(any_space)
    frame = pd.DataFrame([dict(c) for c in configs], dtype=object)
    assert np.array_equal(encoder.encode(frame).values, encoder.encode(configs).values)
    if not encoder.is_conditional:
        array = np.array([[c[name] for name in encoder.names] for c in configs], dtype=object)
        assert np.array_equal(encoder.encode(array).values, encoder.encode(configs).values)


def test_neighbours():
    by_name = {d.name: d for d in Encoder(mixed_space()).dimensions}
    assert by_name["act"].neighbours(0).tolist() == [1, 2]
    assert by_name["size"].neighbours(1).tolist() == [0, 2]
    assert [by_name["layers"].value(c) for c in by_name["layers"].neighbours(0.0)] == [2]
    assert by_name["lr"].neighbours(0.5).size == 0


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"x": 0.5}, "z"),
        ({"x": 0.5, "z": 0.0, "q": 1}, "q"),
        ({"x": 2.0, "z": 0.0}, "2.0"),
        ({"x": float("nan"), "z": 0.0}, "nan"),
        ({"x": "high", "z": 0.0}, "high"),
        (3, "mapping"),
    ],
)
def test_wrong_configurations_are_named(config, words):
    with pytest.raises(SpaceError, match="configuration 1") as error:
        Encoder(plain_space()).encode([{"x": 0.1, "z": 0.0}, config])
    assert words in str(error.value)


def test_wrong_arrays():
    encoder = Encoder(plain_space())
    with pytest.raises(SpaceError, match=r"\(n, 2\)"):
        encoder.encode(np.zeros((3, 5)))
    with pytest.raises(SpaceError, match="single one"):
        encoder.encode({"x": 0.5, "z": 0.0})
    with pytest.raises(SpaceError, match="another space"):
        encoder.encode(Encoder(mixed_space()).encode(Encoder(mixed_space()).sobol(1, 0)))


def test_empty_spaces():
    with pytest.raises(SpaceError, match="empty"):
        Encoder(ConfigurationSpace())
    with pytest.raises(SpaceError, match="empty"):
        Encoder(ConfigurationSpace([Constant("a", 1)]))
    with pytest.raises(SpaceError, match="list"):
        Encoder([1])


def test_a_fully_forbidden_space_says_so():
    space = ConfigurationSpace({"a": [1, 2], "x": (0.0, 1.0)})
    space.add(ForbiddenEqualsClause(space["a"], 2))
    encoder = Encoder(space)
    assert {c["a"] for c in encoder.sobol(8, 0)} == {1}


def test_graphs():
    space = ConfigurationSpace([Categorical("c", ["a", "b", "d"]), Categorical("o", [1, 2, 4], ordered=True)])
    encoder = Encoder(space)
    assert nx.is_isomorphic(encoder.graphs["c"], nx.complete_graph(3))
    assert set(map(frozenset, encoder.graphs["o"].edges)) == {frozenset({1, 2}), frozenset({2, 4})}
    star = nx.Graph([("a", "b"), ("a", "d")])
    assert Encoder(space, graphs={"c": star}).graphs["c"] is star


@pytest.mark.parametrize(
    ("name", "graph", "words"),
    [
        ("c", nx.Graph([("a", "b")]), "exactly"),
        ("c", nx.DiGraph([("a", "b"), ("b", "d")]), "undirected"),
        ("x", nx.Graph(), "only"),
    ],
)
def test_wrong_graphs(name, graph, words):
    space = ConfigurationSpace([Categorical("c", ["a", "b", "d"]), Float("x", (0.0, 1.0))])
    with pytest.raises(SpaceError, match=words):
        Encoder(space, graphs={name: graph})


def test_a_disconnected_graph():
    graph = nx.Graph([("a", "b")])
    graph.add_node("d")
    with pytest.raises(SpaceError, match="not connected"):
        Encoder(ConfigurationSpace([Categorical("c", ["a", "b", "d"])]), graphs={"c": graph})


def test_one_hot_columns():
    encoder = Encoder(ConfigurationSpace([Integer("n", (0, 4)), Categorical("c", ["a", "b"])]))
    columns = dict(zip(encoder.column_names, encoder.encode([{"n": 1, "c": "b"}]).columns[0], strict=True))
    assert columns == {"n": 0.25, "c[a]": 0.0, "c[b]": 1.0}
