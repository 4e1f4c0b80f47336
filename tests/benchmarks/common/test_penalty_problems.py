from __future__ import annotations

import numpy as np
import pytest

from benchmarks.common.penalty_problems import PENALTIES
from slayr_py.space import Encoder


@pytest.mark.parametrize("name", PENALTIES)
def test_a_part_of_the_space_has_a_penalty_that_is_far_from_all_other_values(name):
    problem = PENALTIES[name]
    configs = Encoder(problem.space).sobol(512, 1)
    values = np.sort([problem.objective(config) for config in configs])
    gaps = np.diff(values) / np.maximum(values[:-1] - values[0], 1e-3)
    largest = int(np.argmax(gaps))
    assert 0.1 < 1 - (largest + 1) / len(values) < 0.9
    assert gaps[largest] > 30
    assert not values[0] < problem.minimum  # which may be unknown
