from __future__ import annotations

import numpy as np
import pytest

from benchmarks.common.constrained_problems import CONSTRAINED
from benchmarks.common.within_problems import WITHIN
from benchmarks.optimisation.inside_peers import RandomInside, linear_constraints

SOLUTIONS = {
    "gardner1": {"x": 1.5 * np.pi, "y": 0.0},
    "gardner2": {"x": 1.5 * np.pi, "y": np.arcsin(0.95)},
    # Cagnina et al. (2008), table 2, with more digits.
    "welded beam": {"h": 0.205729640, "l": 3.470488666, "t": 9.036623910, "b": 0.205729640},
}


@pytest.mark.parametrize("name", CONSTRAINED)
def test_minima(name):
    problem = CONSTRAINED[name]
    space = problem.space
    solution = SOLUTIONS[name]
    assert set(solution) == set(space) and all(space[k].lower <= v <= space[k].upper for k, v in solution.items())
    assert problem.objective(solution) == pytest.approx(problem.minimum, abs=1e-6)
    assert max(problem.constraints(solution).values()) <= 1e-6


@pytest.mark.parametrize("name", CONSTRAINED)
def test_no_feasible_configuration_is_better_than_the_minimum(name):
    problem = CONSTRAINED[name]
    space = problem.space
    space.seed(0)
    configs = [dict(config) for config in space.sample_configuration(2000)]
    feasible = [problem.objective(config) for config in configs if max(problem.constraints(config).values()) <= 0]
    assert 0 < len(feasible) < len(configs) and min(feasible) > problem.minimum


INSIDE = {
    "flare": [0.08, 0.52320928, 0.2299109, 0.16687982],  # in the alphabetical order of the space
    "hs62": [0.61781269, 0.32820222, 0.05398509],
    "hs44": [0.0, 3.0, 0.0, 4.0],
    "hartmann6, sum": [0.10851374, 0.03795727, 0.20577108, 0.24803683, 0.28334212, 0.61637897],
}


@pytest.mark.parametrize("name", WITHIN)
def test_minima_within_constraints_on_inputs(name):
    problem = WITHIN[name]
    solution = dict(zip(problem.space, INSIDE[name], strict=True))
    assert problem.objective(solution) == pytest.approx(problem.minimum, rel=1e-6)
    constraints = linear_constraints(problem)
    assert len(constraints) == len(problem.within) and max(c.excess(solution) for c in constraints) < 1e-7
    sampler = RandomInside(problem, 0)
    for _ in range(5):
        params = sampler.ask()
        assert max(constraint.excess(params) for constraint in constraints) <= 1e-9
        value = problem.objective(params)
        assert value > problem.minimum
        sampler.tell(params, value)


def test_coefficients_of_linear_constraints():
    first, *_, last = linear_constraints(WITHIN["hs44"])
    assert first.coefficients == {"x1": 1.0, "x2": 2.0} and first.limit == 8.0 and not first.is_equality
    assert last.excess({"x3": 4.0, "x4": 2.5}) == 1.5 and last.excess({"x3": 1.0, "x4": 2.5}) == 0.0
    (total,) = linear_constraints(WITHIN["hs62"])
    assert total.is_equality and total.excess({"x1": 0.5, "x2": 0.5, "x3": 0.25}) == 0.25
