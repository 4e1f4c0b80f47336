from __future__ import annotations

import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace

from benchmarks.common import bbob_problems
from slayr_py.space import Encoder


@pytest.fixture
def coco(monkeypatch):
    """A stand-in for the optional package: two integer variables, then floats."""

    class Opened:
        number_of_integer_variables = 2
        lower_bounds = np.array([0.0, 0.0, -5.0])
        upper_bounds = np.array([1.0, 3.0, 5.0])

        def __init__(self, *identity):
            self.identity = identity

        def __call__(self, x):
            return x.sum() + self.identity[0]

    suite = SimpleNamespace(get_problem_by_function_dimension_instance=Opened)
    bare = lambda *identity: SimpleNamespace(best_value=lambda: -7.5)  # noqa: E731
    module = SimpleNamespace(Suite=lambda *options: suite, BareProblem=bare)
    monkeypatch.setitem(sys.modules, "cocoex", module)
    for cached in (bbob_problems._suite, bbob_problems._open):
        cached.cache_clear()
    yield
    for cached in (bbob_problems._suite, bbob_problems._open):
        cached.cache_clear()


def test_integer_variables_come_first_and_the_minimum_is_that_of_the_suite(coco):
    problems = bbob_problems.bbob("bbob-mixint", [3], [2])
    assert list(problems)[:2] == ["f1 d3 i2", "f2 d3 i2"] and len(problems) == 24
    problem = problems["f10 d3 i2"]
    assert [d.kind for d in Encoder(problem.space).dimensions] == ["integer", "integer", "float"]
    assert problem.objective({"x3": 0.5, "x1": 1, "x2": 3}) == 14.5
    assert np.isnan(problem.minimum)
    assert bbob_problems.bbob("bbob", [3], [1])["f3 d3 i1"].minimum == -7.5


def test_an_opened_function_can_be_sent_to_another_process(coco):
    function = bbob_problems.Function("bbob", 4, 3, 1)
    function({"x1": 0, "x2": 0, "x3": 0.0})
    assert pickle.loads(pickle.dumps(function)) == function


def test_bounds_through_the_minimum_leave_ranges_of_two(coco, monkeypatch):
    location = np.array([0.5, 2.5, 4.0])
    box = ConfigurationSpace({f"x{i}": (-5.0, 5.0) for i in (1, 2, 3)})
    monkeypatch.setattr(bbob_problems.Function, "location", lambda self: location)
    monkeypatch.setattr(bbob_problems.Function, "space", lambda self: box)
    problems = bbob_problems.bbob("bbob", [3], [1, 2, 3])
    boxes = bbob_problems.at_bounds(problems)
    assert boxes == bbob_problems.at_bounds(problems)
    found = []
    for name, problem in boxes.items():
        own = [(h.lower, h.upper) for h in problem.space.values()]
        former = [(h.lower, h.upper) for h in problems[name].space.values()]
        for best, box, whole in zip(location, own, former, strict=True):
            assert whole[0] <= box[0] <= best <= box[1] <= whole[1]
            assert box == whole or box[1] - box[0] >= bbob_problems.SMALLEST_RANGE
            found.append(best in box)
    assert 0.4 < np.mean(found) < 0.6
