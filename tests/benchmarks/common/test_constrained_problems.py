from __future__ import annotations

import numpy as np
import pytest

from benchmarks.common.constrained_problems import CONSTRAINED

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
