"""Stacking weights against a general optimiser."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from slayr_py.errors import DataError
from slayr_py.inference.stacking.weights import stacking_weights


@pytest.mark.parametrize(("n", "k", "spread"), [(20, 2, 1.0), (50, 5, 5.0), (3, 4, 0.1), (400, 10, 1.0), (5, 1, 1.0)])
def test_weights_are_those_of_a_general_optimiser(n, k, spread):
    elpd = np.random.default_rng(n + k).normal(scale=spread, size=(n, k))

    def loss(w):
        return -np.log(np.exp(elpd) @ w).sum()

    whole = {"type": "eq", "fun": lambda w: w.sum() - 1}
    options = {"ftol": 1e-14, "maxiter": 1000}
    other = minimize(loss, np.full(k, 1 / k), bounds=[(0, 1)] * k, constraints=whole, method="SLSQP", options=options)
    weights = stacking_weights(elpd)
    assert weights.sum() == pytest.approx(1, abs=1e-12) and weights.min() >= 0
    np.testing.assert_allclose(weights, other.x, atol=1e-6)
    assert loss(weights) <= other.fun + 1e-6
    # The first-order conditions of the maximum on the simplex.
    gain = np.mean(np.exp(elpd) / (np.exp(elpd) @ weights)[:, None], axis=0)
    assert gain.max() <= 1 + 1e-6 and gain[weights > 0] == pytest.approx(1, abs=1e-5)


def test_equal_models_share_their_weight_and_a_bad_one_gets_none():
    one = np.random.default_rng(1).normal(size=(20, 1))
    np.testing.assert_allclose(stacking_weights(np.hstack([one, one - 800, one])), [0.5, 0, 0.5], atol=1e-9)


@pytest.mark.parametrize("elpd", [np.zeros((0, 2)), np.zeros(3), [[0.0, np.nan]]])
def test_illegal_densities_are_rejected(elpd):
    with pytest.raises(DataError, match="leave-one-out densities must be finite"):
        stacking_weights(elpd)
