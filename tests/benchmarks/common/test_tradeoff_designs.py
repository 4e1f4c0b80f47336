from __future__ import annotations

import numpy as np
import pytest

from benchmarks.common.objectives_problems import Tradeoff, box
from benchmarks.common.tradeoff_designs import DESIGNS, front_rows, largest


def at(*values):
    return {f"x{i}": value for i, value in enumerate(values, start=1)}


@pytest.mark.parametrize(
    ("problem", "values", "expected"),
    [
        # Ends of fronts, or values by hand.
        ("kursawe", [0, 0, 0], [-20, 0]),
        ("fonseca-fleming", [0.5] * 4, [0, 1 - np.exp(-4)]),
        ("poloni", [1, 2], [1, 25]),
        ("binh-korn", [5, 3], [136, 4]),
        ("srinivas", [2, 1], [2, 18]),
        ("osyczka-kundu", [5, 1, 5, 0, 5, 0], [-(25 * 9 + 1 + 16 + 16 + 16), 76]),
        ("truss", [1, np.sqrt(2), np.sqrt(2), 1], [200 * (5 + np.sqrt(np.sqrt(2))), 0.04]),
        ("hatch-cover", [4, 50], [6004, 0]),
        ("rocket-injector", [0, 0, 0, 0], [0.692, 0.153, 0.370]),
    ],
)
def test_problems_have_known_values(problem, values, expected):
    np.testing.assert_allclose(DESIGNS[problem].objective(at(*values)), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("problem", "feasible", "infeasible"),
    [
        ("binh-korn", [5, 3], [0, 3]),
        ("srinivas", [-2.5, 2.6], [2, 1]),
        ("tanaka", [1, 1], [0.5, 0.5]),
        ("osyczka-kundu", [5, 1, 5, 0, 5, 0], [0, 0, 1, 0, 1, 0]),
        ("disc-brake", [55, 80, 2500, 20], [80, 81, 1000, 11]),
    ],
)
def test_constraints_separate_known_configurations(problem, feasible, infeasible):
    constraints = DESIGNS[problem].constraints
    assert max(constraints(at(*feasible)).values()) <= 0 < max(constraints(at(*infeasible)).values())


def test_every_problem_can_be_evaluated_everywhere_and_knows_a_front():
    for name, problem in DESIGNS.items():
        problem.space.seed(0)
        values = np.array([problem.objective(config) for config in problem.space.sample_configuration(20)])
        assert values.shape == (20, len(problem.reference)) and np.isfinite(values).all(), name
        assert problem.largest > 0, name


def test_non_dominated_rows_of_two_and_three_objectives():
    two = np.array([[2, 2], [1, 3], [1, 4], [2, 2], [3, 1], [3, 3]])
    np.testing.assert_array_equal(np.sort(front_rows(two, 10)), [0, 1, 4])
    three = np.array([[1, 2, 3], [1, 2, 4], [3, 2, 1], [2, 2, 2]])
    np.testing.assert_array_equal(np.sort(front_rows(three, 10)), [0, 2, 3])
    assert len(front_rows(three, 2)) == 2


def test_the_front_of_a_parabola_is_found():
    problem = Tradeoff(box((0, 1), (0, 1)), lambda x: (x["x1"], (1 - x["x1"]) ** 2 + x["x2"]), (1.0, 1.0), np.nan)
    assert largest(problem, rounds=10, each=300, most=500) == pytest.approx(2 / 3, abs=0.01)
