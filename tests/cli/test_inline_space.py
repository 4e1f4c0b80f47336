from __future__ import annotations

import pytest

from slayr_py.cli.inline_space import inline_space, read_space
from slayr_py.errors import SpaceError
from slayr_py.space import as_encoder


def test_inline_spaces():
    space = inline_space(
        {
            "lr": {"type": "float", "lower": 1e-4, "upper": 1, "log": True, "default": 0.01},
            "n": {"type": "integer", "lower": 1, "upper": 9},
            "act": {"type": "categorical", "choices": ["relu", "tanh", "leaky"]},
            "size": {"type": "ordinal", "sequence": ["s", "m"]},
            "k": {"type": "constant", "value": 3},
            "slope": {"type": "float", "lower": 0, "upper": 1, "when": {"act": "leaky"}},
            "m": {"type": "integer", "lower": 1, "upper": 3, "when": {"act": ["relu", "tanh"], "size": "m"}},
        }
    )
    assert space["lr"].log and space["lr"].default_value == 0.01 and space["n"].upper == 9
    assert space["size"].sequence == ("s", "m") and space["k"].value == 3
    assert {c.child.name for c in space.conditions if hasattr(c, "child")} | {"m"} == {"slope", "m"}
    for config in space.sample_configuration(40):
        assert ("slope" in config) == (config["act"] == "leaky")
        assert ("m" in config) == (config["act"] in ("relu", "tanh") and config["size"] == "m")


def test_short_parameters_are_those_of_a_dictionary():
    """Arrays stand for Python's tuples and lists; two numbers are bounds."""
    short = {"x": [0.0, 1.0], "n": [1, 10], "kind": ["a", "b"], "sizes": [16, 32, 64], "flag": [True, False], "k": 3}
    in_python = {**short, "x": (0.0, 1.0), "n": (1, 10)}
    assert inline_space(short) == as_encoder(in_python).space
    when = {"type": "float", "lower": 0.0, "upper": 1.0, "when": {"kind": "b"}}
    assert inline_space({**short, "depth": when}).conditions


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (["a", "a"], "'x' is .*; give two floats or two integers, a list of levels"),
        ([0, 1.5], "the bounds of 'x' are 0 and 1.5; write two floats, or two integers, such as 0.0 and 1.5"),
        ([1.0, 0.0], "lower < upper"),
        ([0.0, 1e300], "must lie between"),
        ([], "give two floats or two integers, a list of levels"),
        ({}, "has no type"),
        ({"type": "flaot"}, "did you mean 'float'"),
        ({"type": "float", "lower": 0.0}, "has no 'upper'"),
        ({"type": "float", "lower": 0.0, "uper": 1.0}, "unknown key 'uper'.*did you mean 'upper'"),
        ({"type": "float", "lower": 1.0, "upper": 0.0}, "lower < upper"),
        ({"type": "float", "lower": "a", "upper": 1.0}, "lower.*not 'a'"),
        ({"type": "float", "lower": 0.0, "upper": 1.0, "log": True}, "lower must be positive"),
        ({"type": "float", "lower": 0.1, "upper": 1.0, "log": 1}, "true or false"),
        ({"type": "integer", "lower": 0.5, "upper": 3}, "0.5"),
        ({"type": "categorical", "choices": "abc"}, "list of values"),
        ({"type": "categorical", "choices": ["a", "a"]}, "illegal"),
        ({"type": "ordinal", "sequence": []}, "list of values"),
        ({"type": "constant", "value": 1, "when": {"z": 1}}, "unknown parameter 'z'"),
        ({"type": "constant", "value": 1, "when": {"other": "q"}}, "when of the parameter 'x' is illegal"),
        ({"type": "constant", "value": 1, "when": 3}, "when.*must be a table"),
    ],
)
def test_wrong_parameters_are_named(entry, words):
    with pytest.raises(SpaceError, match=words):
        inline_space({"x": entry, "other": {"type": "categorical", "choices": ["a", "b"]}})


def test_invalid_space_files_raise(folder):
    for text, words in (
        ("{", "as JSON"),
        ("[1]", "is not a space: write"),
        ("{}", "has no parameter"),
        ('{"hyperparameters": 3}', "not a ConfigSpace space"),
    ):
        (folder / "bad.json").write_text(text)
        with pytest.raises(SpaceError, match=words):
            read_space(folder / "bad.json")
    with pytest.raises(SpaceError, match="no space file"):
        read_space(folder / "absent.json")


def test_an_empty_inline_space_raises():
    with pytest.raises(SpaceError, match="empty"):
        inline_space({})
