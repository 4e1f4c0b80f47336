from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.common.noisy_problems import FUNCTIONS, noisy_problems
from benchmarks.optimisation.noise import COLUMNS, table


def test_no_configuration_is_better_than_the_minimum():
    rng = np.random.RandomState(0)
    for problem in FUNCTIONS.values():
        problem.space.seed(int(rng.randint(1000)))
        values = [problem.objective(dict(config)) for config in problem.space.sample_configuration(300)]
        assert min(values) >= problem.minimum - 1e-9


def test_minima_are_reached():
    known = {"sphere": [0.3, -0.7, 1.1, -0.2], "camel": [0.0898420131, -0.7126564030], "many minima": [0.4] * 3}
    for name, x in known.items():
        config = {f"x{i}": value for i, value in enumerate(x, 1)}
        assert FUNCTIONS[name].objective(config) == pytest.approx(FUNCTIONS[name].minimum, abs=1e-8)
    assert FUNCTIONS["valley"].objective({"x1": 1.0, "x2": 1.0}) == 0.0
    assert FUNCTIONS["recipe"].objective({"material": "c", "share": 0.7, "steps": 4, "rate": 0.01}) == 0.0


def test_noise_is_a_share_of_the_deviation_of_the_function():
    problems = noisy_problems()
    assert len(problems) == 24
    assert problems["branin, 50%"].noise == pytest.approx(10 * problems["branin, 5%"].noise)
    assert 45 < problems["branin, 50%"].noise / 0.5 < 58  # 51.3 over the space


def test_differences_are_paired():
    regrets = {"one": [0.1, 0.2, 1e-9], "two": [0.2, 0.4, 2e-4]}
    rows = [
        ("branin, 5%", sampler, seed, evaluations, 0.0, 0.0, regret, 1.0)
        for sampler, values in regrets.items()
        for seed, regret in enumerate(values)
        for evaluations in (25, 50)
    ]
    rows.append(("branin, 5%", "two", 3, 25, 0.0, 0.0, 9.0, 1.0))  # without a run of the other
    text = table(pd.DataFrame(rows, columns=COLUMNS), ["one", "two"])
    # A regret below 1e-4 counts as 1e-4, so that all three are doubled.
    geometric = np.exp(np.mean(np.log([0.1, 0.2, 1e-4])))
    assert f"| 25 | 5% | 3 | {geometric:.3f} | {2 * geometric:.3f} (+0.69 ± 0.00) |" in text
