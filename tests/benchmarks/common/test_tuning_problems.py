from __future__ import annotations

import numpy as np
import pytest

from benchmarks.common.tuning_problems import LARGEST_LOSS, TUNING
from slayr_py.space import Encoder
from slayr_py.study.storage.distributions import to_params


@pytest.mark.parametrize("name", TUNING)
def test_an_evaluation_is_finite_and_repeatable(name):
    problem = TUNING[name]
    params = to_params(Encoder(problem.space).sobol(1, 4)[0])
    value = problem.objective(params)
    assert np.isfinite(value) and value == problem.objective(params)


def test_a_model_that_diverges_has_the_largest_loss():
    config = {"alpha": 1e-6, "l1_ratio": 0.5, "eta0": 10.0, "power_t": 0.0}
    assert TUNING["descent"].objective(config) <= LARGEST_LOSS
