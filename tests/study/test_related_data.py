"""Studies that start with the initial design of a pre-training."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float

from slayr_py import maximize, svm
from slayr_py.space import Encoder
from slayr_py.study import config_of


@pytest.mark.stan
def test_a_study_starts_with_an_initial_design(quick):
    space = ConfigurationSpace()
    act = Categorical("act", ["relu", "tanh"])
    slope = Float("slope", (0.0, 1.0))
    space.add(Float("x", (0.0, 1.0)), Float("z", (1.0, 1000.0), log=True), act, slope)
    space.add(EqualsCondition(slope, act, "tanh"))
    encoder = Encoder(space, within=["x + 0.001 * z <= 1"])

    def value(config):
        return -((config["x"] - 0.3) ** 2) - (np.log10(config["z"]) - 2) ** 2 - config.get("slope", 0.5)

    configs = encoder.sobol(60, 3)
    trained = svm.pretrain(encoder, configs, [value(c) for c in configs], machine="ridge", C=1000.0, lengthscale=0.7)
    options = {"kernel": trained.kernel(layers=0), "within": ["x + 0.001 * z <= 1"], "seed": 1, "progress": False}
    design = trained.initial_configs(4, maximize=True)
    result = maximize(value, space, budget=5, initial_configs=design, **options, **quick)
    configurations = [config_of(trial) for trial in result.study.trials]
    assert configurations[:4] == [dict(c) for c in design] and configurations[4] not in configurations[:4]
    assert result.study.trials[0].value == max(t.value for t in result.study.trials[:4])
    fixed = {"act": "relu", "x": 0.6}
    design = trained.initial_configs(4, maximize=True, fixed=fixed)
    result = maximize(value, space, budget=5, initial_configs=design, fixed=fixed, **options, **quick)
    configurations = [config_of(trial) for trial in result.study.trials]
    assert configurations[:4] == [dict(c) for c in design]
    assert all(fixed.items() <= c.items() and encoder.inside(encoder.encode([c]))[0] for c in configurations)
    assert result.study.trials[0].value == max(t.value for t in result.study.trials[:4])
