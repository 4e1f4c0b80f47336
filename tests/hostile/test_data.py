"""Observations and configurations that no model should take as they are, and those that it must take all the same."""

from __future__ import annotations

import re

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace

import slayr_py as sl

SPACE = ConfigurationSpace({"x": (0.0, 1.0), "z": (-1.0, 1.0)})
THREE = [{"x": 0.1, "z": 0.0}, {"x": 0.6, "z": 0.5}, {"x": 0.9, "z": -0.5}]


# What is done, the exact error, and words that name the value and the way out.
REFUSED = [
    ("y is a column", {"y": [[1.0], [2.0], [3.0]]}, sl.DataError, r"y has shape \(3, 1\) .*give one number for each"),
    ("y is too short", {"y": [1.0]}, sl.DataError, r"y has shape \(1,\) for 3 configurations"),
    ("y is empty", {"y": [], "configs": []}, sl.DataError, "y is empty"),
    ("y has a text", {"y": ["a", "b", "c"]}, sl.DataError, "y is .*; give numbers"),
    ("y is infinite", {"y": [1.0, np.inf, 3.0]}, sl.DataError, r"y\[1\] is inf"),
    ("a parameter is missing", {"configs": [{"x": 0.5}] * 3}, sl.SpaceError, "'z' has no value"),
    ("y is ragged", {"y": [[1.0], [2.0, 3.0], [4.0]]}, sl.DataError, r"y is \[\[1\.0\], \[2.*; give numbers"),
    ("y is complex", {"y": [1j, 2.0, 3.0]}, sl.DataError, "y is .*1j.*; give numbers"),
    ("y has 400 digits", {"y": [10**400, 1, 2]}, sl.DataError, "y is .*1000.*; give numbers"),
    ("y is masked", {"y": np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])}, sl.DataError, r"y\[1\] is nan; drop failed"),
    ("y has a None", {"y": [1.0, None, 3.0]}, sl.DataError, r"y\[1\] is nan; drop failed evaluations"),
    ("configurations are None", {"configs": None}, sl.SpaceError, "the configurations are None; give"),
    ("configurations are a text", {"configs": "abc"}, sl.SpaceError, "0: the configuration is 'a'; give a mapping"),
]


@pytest.mark.parametrize(("change", "error", "words"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_cannot_be_fitted_is_named(change, error, words):
    arguments = {"configs": THREE, "y": [1.0, 2.0, 3.0]} | change
    with pytest.raises(error, match=words) as caught:
        sl.GaussianProcess(SPACE).fit(method="map", **arguments)
    assert type(caught.value) is error


WORKS = [
    ("one observation", THREE[:1], [3.0]),
    ("one configuration, five values", THREE[:1] * 5, [1.0, 2.0, 3.0, 4.0, 5.0]),
    ("thirty times the same row", THREE[:1] * 30, [1.0] * 30),
    ("a constant target", THREE, [5.0] * 3),
    ("zero everywhere", THREE, [0.0] * 3),
    ("a constant but for rounding", THREE, [1.0, 1.0 + 2.3e-16, 1.0]),
    ("steps of 1e-12 at 1", THREE, [1.0, 1.0 + 1e-12, 1.0 + 2e-12]),
    ("values of 1e308", THREE, [8e307, -8e307, 0.0]),
    ("values of 1e-200", THREE, [1e-200, 2e-200, 3e-200]),
    ("three hundred decades", THREE, [1e-150, 1e150, 0.0]),
    ("integers beyond 64 bits", THREE, [2**70, 1, 2]),
    ("a constant column", [{"x": 0.5, "z": c["z"]} for c in THREE], [1.0, 2.0, 3.0]),
    ("integers and truth values for numbers", [{"x": 0, "z": True}, *THREE[1:]], [True, False, True]),
]


@pytest.mark.stan
@pytest.mark.parametrize(("configs", "y"), [row[1:] for row in WORKS], ids=[row[0] for row in WORKS])
def test_awkward_observations_are_fitted(configs, y):
    prediction = sl.GaussianProcess(SPACE).fit(configs, y, method="map").predict(configs)
    # The optimiser finds a mean of 0 to about 1e-6, relative to the noise that the default prior expects.
    spread = max(float(np.ptp(np.asarray(y, dtype=float))), 1e-6 * abs(float(y[0])), 1e-5 * (y[0] == 0))
    assert np.all(np.isfinite(prediction.mean)) and np.all(np.isfinite(prediction.sd)) and np.all(prediction.sd >= 0)
    assert np.all(prediction.mean >= min(y) - spread) and np.all(prediction.mean <= max(y) + spread)


TABLES = [
    ("a span beyond floats", b"x,loss\n-1e308,2\n1e308,3\n", r"'x' spans from -1e\+308 to 1e\+308, which is too large"),
    ("a span below rounding", b"x,loss\n1e-20,2\n2e-20,3\n", "'x' spans from 1e-20 to 2e-20, which is too small for"),
    ("an infinite cell", b"x,loss\n1,2\ninf,3\n4,5\n", r"row 2 of t\.csv has inf in column 'x' of numbers"),
    ("bytes that are no text", b"x,loss\n1,\xff\xfe\n", r"t\.csv cannot be read: .*; save it as UTF-8"),
    ("ragged rows", b"x,loss\n1,2\n1,2,3,4\n", r"t\.csv has 4 cells in row 2 and 2 columns; if numbers"),
]


@pytest.mark.stan
@pytest.mark.parametrize(("content", "words"), [row[1:] for row in TABLES], ids=[row[0] for row in TABLES])
def test_tables_that_cannot_be_fitted_are_named(tmp_path, monkeypatch, slayr, content, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_bytes(content)
    code, _, err = slayr("fit", "t.csv", "--target", "loss", "--method", "map")
    assert code == 2 and err.startswith("slayr: ") and re.search(words, err), err
