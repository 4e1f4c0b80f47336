from __future__ import annotations

import pytest
from ConfigSpace import ConfigurationSpace, Constant, EqualsCondition, Float
from testing_spaces import mixed_space, nested_space

from slayr_py import SpaceError
from slayr_py.space import Encoder


def test_names_follow_the_space_without_constants():
    space = mixed_space()
    encoder = Encoder(space)
    assert encoder.names == tuple(k for k in space if k != "dataset")
    assert set(encoder.real_names) == {"lr", "layers", "units"}
    assert set(encoder.graph_names) == {"act", "size"}
    assert len(encoder.column_names) == 3 + 3 + 1


def test_empty_spaces_raise():
    with pytest.raises(SpaceError, match="empty"):
        Encoder(ConfigurationSpace())
    with pytest.raises(SpaceError, match="empty"):
        Encoder(ConfigurationSpace([Constant("a", 1)]))
    with pytest.raises(SpaceError, match="list"):
        Encoder([1])


@pytest.mark.filterwarnings("error")
def test_ancestors():
    encoder = Encoder(nested_space())
    root = ("z_root",)
    assert set(encoder.names) == {
        "z_root", "layers", "units", "trees", "drop", "rate", "after", "either", "deep", "unless"
    }  # fmt: skip
    above = {name: set(names) for name, names in encoder.ancestors.items()}
    assert above == {
        "z_root": set(),
        "layers": {*root},
        "drop": {*root},
        "trees": {*root},
        "rate": {*root, "drop"},
        "units": {*root, "layers"},
        "after": {*root, "layers"},  # through the constant `fixed`
        "either": {*root, "trees", "layers", "units"},
        "deep": {*root, "layers", "drop"},
        "unless": {*root, "layers"},
    }
    for names in encoder.ancestors.values():
        assert list(names) == sorted(names, key=encoder.names.index)
    assert encoder.conditional == encoder.names[1:]


@pytest.mark.filterwarnings("error")
def test_a_condition_on_a_constant_counts_as_a_condition():
    space = ConfigurationSpace([Constant("k", 2), Float("x", (0.0, 1.0)), Float("y", (0.0, 1.0))])
    space.add(EqualsCondition(space["x"], space["k"], 2))
    encoder = Encoder(space)
    assert encoder.ancestors == {"y": (), "x": ()} and encoder.conditional == ("x",)
    assert encoder.encode(encoder.sobol(4, 0)).active.all()


@pytest.mark.parametrize("other", [("b", 1), ("a", 2)])
def test_encoders_with_other_conditions_do_not_match(other):
    def made(parent: str, level: int) -> Encoder:
        space = ConfigurationSpace({"a": [1, 2], "b": [1, 2], "x": (0.0, 1.0)})
        space.add(EqualsCondition(space["x"], space[parent], level))
        return Encoder(space)

    encoded = made("a", 1).encode([{"a": 2, "b": 1}])
    assert made("a", 1).encode(encoded) is encoded
    with pytest.raises(SpaceError, match="another space"):
        made(*other).encode(encoded)
