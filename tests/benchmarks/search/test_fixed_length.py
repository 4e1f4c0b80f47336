"""The generative strategy with expressions of one length."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace

from benchmarks.search.kernel_searches import kernel_search

SPACE = ConfigurationSpace({"a": (0.0, 1.0), "b": (0.0, 1.0)})


@pytest.mark.parametrize("length", [2, 4])
def test_no_expression_is_longer_and_some_have_the_length(length):
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(12, 2))
    configs = [{"a": a, "b": b} for a, b in x.tolist()]
    search = kernel_search(SPACE, f"fixed-{length}", seed=1, budget=8, base=["SE", "RQ", "PER", "LIN"], single=False)
    found = search.run(configs, np.sin(6 * x[:, 0]) + x[:, 1], progress=False)
    factors = found.unique["expression"].str.count(r"[+*]") + 1
    assert factors.max() == length
