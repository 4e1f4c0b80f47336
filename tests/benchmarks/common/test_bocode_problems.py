from __future__ import annotations

import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.common import bocode_problems
from benchmarks.common.objectives_problems import NearestRow, _rows
from slayr_py.space import Encoder


class Opened:
    """A stand-in for a problem of the optional package: two constraints, and a parameter with one value."""

    bounds = ((5.0, -5.0), (0.4, 3.6), (10.0, 30.0), (2.0, 2.0))
    num_constraints = 2
    optimum = np.array([-7.5])
    candidates = SimpleNamespace(numpy=lambda: np.array([[0.0, 1, 10, 2.5], [0.5, 3, 20, 2], [0.5, 3, 30, 2]]))
    values = SimpleNamespace(numpy=lambda: np.array([7.0, 8.0, 9.0]))

    def resolved_variable_types(self):
        return ["continuous", "integer", [30.0, 10.0, 20.0], [2.0]]

    def evaluate(self, rows):
        return np.sum(rows, axis=1, keepdims=True), np.array([[-1.0, rows[0][2]]])


@pytest.fixture
def package(monkeypatch):
    grids = type("Grids", (Opened,), {"__module__": "bocode.engineering"})
    categories = type("Levels", (Opened,), {"__module__": "bocode.synthetic_mixed", "num_constraints": 0})
    known = {"Beam": grids, "Mixed": categories}
    monkeypatch.setitem(sys.modules, "bocode", SimpleNamespace(get_problem=known.__getitem__))
    torch = SimpleNamespace(tensor=lambda rows, dtype: np.array(rows), float64=None)
    monkeypatch.setitem(sys.modules, "torch", torch)
    for cached in (bocode_problems._open, _rows):
        cached.cache_clear()
    yield
    for cached in (bocode_problems._open, _rows):
        cached.cache_clear()


def test_lists_are_grids_in_designs_and_categories_in_synthetic_problems(package):
    problems = bocode_problems.designs(["Beam", "Mixed"])
    kinds = [{d.name: d.kind for d in Encoder(p.space).dimensions} for p in problems.values()]
    assert kinds == [
        {"x1": "float", "x2": "integer", "x3": "integer"},
        {"x1": "float", "x2": "integer", "x3": "categorical"},
    ]
    space = problems["Beam"].space
    assert (space["x1"].lower, space["x1"].upper, space["x2"].lower, space["x2"].upper) == (-5.0, 5.0, 1, 3)


def test_values_have_the_other_sign_and_constraints_their_own(package):
    problem = bocode_problems.designs(["Beam"])["Beam"]
    config = {"x1": 0.5, "x2": 3, "x3": 1}
    assert problem.objective(config) == -25.5
    assert problem.constraints(config) == {"c1": -1.0, "c2": 20.0}
    assert problem.minimum == -7.5
    assert bocode_problems.designs(["Mixed"])["Mixed"].constraints is None
    assert pickle.loads(pickle.dumps(problem.constraints))(config) == problem.constraints(config)


def test_the_nearest_row_of_a_table_is_found_by_values_and_not_by_places_in_a_grid(package):
    table = NearestRow("Beam", lambda inputs: inputs[:, 2])
    assert table({"x1": 0.5, "x2": 3, "x3": 1}) == (-8.0, 20.0)
    assert table({"x1": 0.5, "x2": 3, "x3": 2}) == (-9.0, 30.0)
    assert table.tradeoff().reference == (-8.0, 20.0)
