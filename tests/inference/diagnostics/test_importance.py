"""Importance resampling."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from slayr_py.inference.diagnostics.importance import smoothed_resample


def test_resampling_follows_the_weights():
    rng = np.random.default_rng(0)
    draws = rng.normal(0.5, 1.2, 20_000)
    log_ratio = norm(0, 1).logpdf(draws) - norm(0.5, 1.2).logpdf(draws)
    rows, pareto_k, _ = smoothed_resample(log_ratio, 20_000, rng)
    assert pareto_k < 0.7
    assert draws[rows].mean() == pytest.approx(0, abs=0.04)
    assert draws[rows].std() == pytest.approx(1, abs=0.04)
    bad = np.where(np.arange(20_000) < 10, np.inf, log_ratio)
    assert smoothed_resample(bad, 100, rng)[0].min() >= 10
    with pytest.raises(ValueError, match="only 2"):
        smoothed_resample(np.array([0.0, 0.0, np.nan, -np.inf]), 4, rng)


def test_resampling_keeps_expected_counts():
    log_ratio = np.log([0.5, 0.25, 0.125, 0.0625, 0.0625, 1e-300])
    log_ratio[-1] = np.nan
    kept = smoothed_resample(log_ratio, 1600, np.random.default_rng(0))
    assert 5 not in kept.rows and 1 < kept.ess <= 5
    assert np.all(np.diff(np.bincount(kept.rows, minlength=5)) <= 1)
