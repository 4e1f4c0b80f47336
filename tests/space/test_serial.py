from __future__ import annotations

import copy
import json

import networkx as nx
import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Integer
from testing_spaces import RULED_SPACES, SPACES, odd_levels_space

from slayr_py import SpaceError
from slayr_py.space import Encoder, encoder_from_json, encoder_to_json, space_from_json, space_to_json


def through_text(values):
    return json.loads(json.dumps(values, allow_nan=False))


def assert_equal_encoders(a: Encoder, b: Encoder) -> None:
    assert a.dimensions == b.dimensions and a.ancestors == b.ancestors and a.conditional == b.conditional
    assert list(a.spectra) == list(b.spectra)
    for name in a.spectra:
        for field in ("eigenvalues", "basis", "group_of"):
            assert np.array_equal(getattr(a.spectra[name], field), getattr(b.spectra[name], field))


@pytest.mark.parametrize("name", [*SPACES, *RULED_SPACES])
def test_spaces_survive_json(name):
    encoder = Encoder((SPACES | RULED_SPACES)[name]())
    again = encoder_from_json(through_text(encoder_to_json(encoder)))
    assert_equal_encoders(encoder, again)
    assert list(map(dict, again.sobol(50, 1))) == list(map(dict, encoder.sobol(50, 1)))
    encoded = encoder.encode(encoder.sobol(5, 0))
    assert again.encode(encoded) is encoded
    assert np.array_equal(again.encode(encoder.sobol(5, 0)).unit_values, encoded.unit_values)


def test_graphs_survive_json():
    space = SPACES["mixed"]()
    own = nx.Graph([("gelu", "relu"), ("relu", "tanh", {"weight": 0.1})])
    encoder = Encoder(space, graphs={"act": own, "layers": nx.cycle_graph([1, 2, 3, 4, 5]), "size": "complete"})
    values = encoder_to_json(encoder)
    assert values["graphs"]["size"] == "complete"
    assert values["graphs"]["act"] == [[0, 1, 0.1], [0, 2, 1.0]]
    again = encoder_from_json(through_text(values))
    assert_equal_encoders(encoder, again)
    assert encoder_to_json(again) == values
    assert encoder_to_json(Encoder(space))["graphs"] == {}


def test_tuple_levels_survive_json():
    again = space_from_json(through_text(space_to_json(odd_levels_space())))
    assert again["shape"].choices == ((8,), (8, 8), (16, 8, 4))


def test_reading_does_not_change_its_input():
    values = through_text(encoder_to_json(Encoder(RULED_SPACES["nested"](), graphs={"layers": "path"})))
    before = copy.deepcopy(values)
    encoder_from_json(values)
    assert values == before


GOOD = encoder_to_json(Encoder(ConfigurationSpace({"c": ["a", "b", "d"], "x": (0.0, 1.0)})))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "not an encoder in JSON: KeyError"),
        ({"space": {"hyperparameters": 3}, "graphs": {}}, "not a ConfigSpace space in JSON"),
        (GOOD | {"graphs": {"c": [[0, 1, 1.0], [1, 7, 1.0]]}}, "not an encoder in JSON: IndexError"),
        (GOOD | {"graphs": {"c": [[0, 1]]}}, "not an encoder in JSON: ValueError"),
        (GOOD | {"graphs": {"c": [[0, 1, 1.0]]}}, "the graph of 'c' is not connected"),
        (GOOD | {"graphs": {"c": [[0, 1, 1.0], [1, 2, -1.0]]}}, "weight -1.0"),
        (GOOD | {"graphs": {"c": "pth"}}, "did you mean 'path'"),
        (GOOD | {"graphs": {"e": "path"}}, "'e', which is not a parameter"),
        (GOOD | {"graphs": {"x": []}}, "the float 'x'"),
        (GOOD | {"graphs": []}, "graphs is .*; give a mapping"),
        (GOOD | {"within": [{"name": "f"}]}, "not an encoder in JSON: KeyError"),
        (GOOD | {"within": ["x +"]}, "constraint 'x \\+'"),
    ],
)
def test_invalid_json_raises(values, words):
    with pytest.raises(SpaceError, match=words):
        encoder_from_json(values)


def test_constraints_on_inputs_survive_json():
    def odd(config):
        return config["n"] % 2 == 1

    encoder = Encoder({"x": (0.0, 1.0), "n": (1, 5)}, within=["0.1 <= x <= 0.5", odd, "n * x <= 2"])
    values = through_text(encoder_to_json(encoder))
    assert values["within"] == ["0.1 <= x <= 0.5", "n * x <= 2", {"function": "odd"}]
    configs = [{"x": 0.3, "n": 3}, {"x": 0.3, "n": 4}, {"x": 0.6, "n": 3}, {"x": 0.5, "n": 5}]
    assert encoder_to_json(again := encoder_from_json(values)) == values
    assert again.inside(again.encode(configs)).tolist() == [True, True, False, False]
    given = encoder_from_json(values, within=encoder.region.constraints)
    assert given.inside(given.encode(configs)).tolist() == [True, False, False, False]
    assert "within" not in encoder_to_json(encoder.unconstrained)


def test_a_cycle_of_conditions_is_reported():
    space = ConfigurationSpace([Categorical(name, [1, 2]) for name in "abcd"] + [Integer("n", (1, 3))])
    space.add(EqualsCondition(space["b"], space["a"], 1), EqualsCondition(space["c"], space["b"], 1))
    values = space_to_json(space)
    values["conditions"].append({"type": "EQ", "child": "a", "parent": "c", "value": 1})
    with pytest.raises(SpaceError, match="form a cycle: (a -> b -> c -> a|b -> c -> a -> b|c -> a -> b -> c)"):
        space_from_json(values)
