"""Invalid search spaces raise; unusual valid ones work."""

from __future__ import annotations

import datetime
import math
import re
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace, Float, Integer
from testing_hostility import MAP

import slayr_py as sl
from slayr_py.cli.inline_space import inline_space, read_space
from slayr_py.errors import SpaceError


def floats(lower, upper, **more):
    return {"type": "float", "lower": lower, "upper": upper, **more}


def integers(lower, upper):
    return {"type": "integer", "lower": lower, "upper": upper}


ENTRIES = [
    ("no upper bound", floats(0.0, math.inf), "upper of the float parameter 'x' must lie between .*, not inf"),
    ("NaN for a bound", floats(math.nan, 1.0), "lower of the float parameter 'x' must lie between .*, not nan"),
    ("a date for a bound", floats(datetime.date(2020, 1, 1), 1.0), "must be a number of this type, not datetime.date"),
    ("a span beyond floats", floats(-1e308, 1e308), "'x' must lie between -1e.290 and 1e.290, not -1e.308"),
    ("a bound whose rounding overflows", floats(0.0, 1e300), "upper of the .* must lie between .*, not 1e.300"),
    ("a span too small", floats(0.0, 5e-324), "'x' is illegal: Upper bound .* must be larger than lower bound"),
    ("a default outside", floats(0.0, 1.0, default=3.0), "'x' is illegal: .*default value 3.0"),
    (
        "400 digits",
        {"type": "integer", "lower": 0, "upper": 10**400},
        "must lie between -1e.18 and 1e.18, not 1000",
    ),
    ("NaN for a choice", {"type": "categorical", "choices": [math.nan, 1.0]}, "'x' is illegal: .*nan"),
]


@pytest.mark.parametrize(("entry", "words"), [row[1:] for row in ENTRIES], ids=[row[0] for row in ENTRIES])
def test_invalid_parameters_are_named(entry, words):
    with pytest.raises(SpaceError, match=words) as caught:
        inline_space({"x": entry})
    assert type(caught.value) is SpaceError


@pytest.mark.parametrize("space", [None, [("x", 0.0, 1.0)], "x", 3], ids=repr)
def test_an_argument_that_is_not_a_space_raises_before_any_evaluation(space):
    with pytest.raises(SpaceError, match=f"the space is a {type(space).__name__}; give a ConfigSpace"):
        sl.minimize(lambda config: pytest.fail("evaluated"), space, budget=2, progress=False)


SPACE_FILES = [
    ("bytes that are not text", b"\xff\xfe{}", "cannot be read: .*utf-8.*; save it as UTF-8"),
    ("a list a hundred thousand deep", b"[" * 100_000, "cannot be read as JSON: .*(recursion|Stack overflow)"),
    ("a number of 5000 digits", b'{"name": ' + b"9" * 5000 + b"}", "cannot be read as JSON: .*4300"),
    ("a parameter of an unknown kind", b'{"hyperparameters": [{"type": "quantum", "name": "x"}]}', "quantum"),
    ("a condition alone", b'{"hyperparameters": [], "conditions": [{"type": "EQ"}]}', "not a ConfigSpace space"),
]


@pytest.mark.parametrize(("content", "words"), [row[1:] for row in SPACE_FILES], ids=[row[0] for row in SPACE_FILES])
def test_invalid_space_files_are_named(tmp_path, content, words):
    path = tmp_path / "space.json"
    path.write_bytes(content)
    with pytest.raises(SpaceError, match=words) as caught:
        read_space(path)
    assert type(caught.value) is SpaceError and re.search("space.json|ConfigSpace", str(caught.value))


@pytest.mark.parametrize("name", [".", "a\0b", "n" * 300], ids=["a folder", "a null character", "a long name"])
def test_impossible_file_names_are_reported(name):
    with pytest.raises(SpaceError, match="cannot be read") as caught:
        read_space(Path(name))
    assert type(caught.value) is SpaceError


WORKS = [
    ("a range far from zero", [Float("x", (1e8, 1e8 + 1))]),
    ("sixty decades", [Float("x", (1e-10, 1e50), log=True)]),
    ("integers of eighteen digits", [Integer("x", (-(10**18), 10**18))]),
    ("a single choice beside a number", {"x": (0.0, 1.0), "c": ["only"]}),
    ("names that are not identifiers", {"a b[1].c/\n\0é": (0.0, 1.0), "-": (0.0, 1.0)}),
]


@pytest.mark.stan
@pytest.mark.parametrize("parameters", [row[1] for row in WORKS], ids=[row[0] for row in WORKS])
def test_unusual_spaces_are_searched(parameters):
    space = ConfigurationSpace(parameters)
    result = sl.minimize(lambda config: float(len(str(config))), space, budget=4, n_initial=3, seed=1, **MAP)
    assert result.trials["state"].tolist() == ["COMPLETE"] * 4 and np.isfinite(result.best_value)


@pytest.mark.stan
@pytest.mark.parametrize("noisy", [False, True])
def test_a_space_with_fewer_configurations_than_trials_is_searched(noisy):
    options = {"budget": 4, "n_initial": 3, "seed": 1, "noisy": noisy, **MAP}
    ends = nullcontext() if noisy else pytest.warns(UserWarning, match="ends after 2 of 4 trials: all 2 configurations")
    with ends:
        result = sl.minimize(lambda config: float(config["c"] == "a"), {"c": ["a", "b"]}, **options)
    assert result.trials["state"].tolist() == ["COMPLETE"] * (4 if noisy else 2) and result.best_value == 0
