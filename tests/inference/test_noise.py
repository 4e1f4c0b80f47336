"""The default priors find the noise of designed data."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace

import slayr_py as sl

SPACE = ConfigurationSpace(dict.fromkeys("abc", (0.0, 1.0)))
FITS = 4


@pytest.mark.stan
@pytest.mark.parametrize("n", [20, 40])
def test_noise_on_a_sobol_design_is_not_fitted_by_the_function(n):
    """A space-filling design has no neighbours whose difference shows the noise: the priors decide how much there is.

    The noise has half the standard deviation of the function. A 90% interval that holds the truth in fewer than 3 of 4
    fits has a probability of 5% if the interval is right. About 5 degrees of freedom of the data describe the function,
    so the logarithm of an estimate has the standard error 1 / sqrt(2 (n - 5)); the mean of four has half of it.
    """
    gp = sl.GaussianProcess(SPACE)
    held = 0
    ratios = []
    for seed in range(FITS):
        design = gp.encoder.sobol(n, seed)
        f = np.array([np.sin(5 * x["a"]) + x["b"] ** 2 - x["c"] * x["a"] / 2 for x in design])
        noise = f.std() / 2
        y = f + np.random.default_rng(seed).normal(0, noise, n)
        posterior = gp.fit(design, y, method="nuts", chains=2, warmup=150, draws=150, seed=seed, pointwise=False)
        low, median, high = np.quantile(posterior.draws["sigma_n"] * posterior.y_sd, [0.05, 0.5, 0.95])
        held += low <= noise <= high
        ratios.append(median / noise)
    assert held >= 3
    error = 1 / np.sqrt(2 * (n - 5) * FITS)
    assert abs(np.log(ratios).mean()) < 3 * error, ratios
