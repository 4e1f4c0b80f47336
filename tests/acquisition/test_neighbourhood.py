from __future__ import annotations

import networkx as nx
import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer

from slayr_py.acquisition.neighbourhood import Neighbourhood
from slayr_py.space import Encoder


def space():
    space = ConfigurationSpace()
    space.add(
        Float("x", (0.0, 1.0)),
        Integer("n", (1, 5)),
        Integer("log", (1, 100), log=True),
        Categorical("nominal", ["a", "b", "c"]),
        Categorical("ordinal", ["s", "m", "l", "xl"], ordered=True),
        Categorical("star", ["hub", "p", "q", "r"]),
        Categorical("alone", ["only"]),
    )
    return space


def neighbours(encoder, name, value):
    """Return the values one step from a value."""
    j = encoder.names.index(name)
    dimension = encoder.dimensions[j]
    return [dimension.value(u) for u in Neighbourhood(encoder).neighbours(j, dimension.unit_value(value))]


def test_steps_follow_the_graphs():
    encoder = Encoder(
        space(), graphs={"star": nx.relabel_nodes(nx.star_graph(3), dict(enumerate("hpqr")) | {0: "hub"})}
    )
    assert neighbours(encoder, "nominal", "b") == ["a", "c"]
    assert neighbours(encoder, "ordinal", "s") == ["m"] and neighbours(encoder, "ordinal", "l") == ["m", "xl"]
    assert neighbours(encoder, "star", "hub") == ["p", "q", "r"] and neighbours(encoder, "star", "q") == ["hub"]
    assert neighbours(encoder, "alone", "only") == []


def test_integers_step_by_one_and_floats_do_not():
    encoder = Encoder(space())
    assert [neighbours(encoder, "n", value) for value in (1, 3, 5)] == [[2], [2, 4], [4]]
    assert neighbours(encoder, "log", 10) == [9, 11]
    assert neighbours(encoder, "x", 0.3) == []


def test_an_integer_on_a_graph_steps_along_its_edges():
    encoder = Encoder(space(), graphs={"n": nx.cycle_graph(range(1, 6))})
    assert neighbours(encoder, "n", 1) == [2, 5]


def test_one_movable_parameter_changes_at_a_time():
    encoder = Encoder(space())
    genotypes = encoder.from_uniform(np.random.default_rng(0).random((4, 7)))
    kept = genotypes.copy()
    movable = np.zeros((4, 7), dtype=bool)
    movable[0, [1, 3]] = movable[2, 4] = True
    owners, found = Neighbourhood(encoder).of(genotypes, movable)
    assert set(owners) == {0, 2} and np.array_equal(genotypes, kept)
    changed = found != genotypes[owners]
    assert np.all(changed.sum(axis=1) == 1) and not np.any(changed & ~movable[owners])
    no_owners, no_neighbours = Neighbourhood(encoder).of(genotypes, np.zeros((4, 7), dtype=bool))
    assert len(no_owners) == 0 and no_neighbours.shape == (0, 7)
