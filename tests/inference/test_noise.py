"""The default priors find the noise of designed data."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace

import slayr_py as sl

SPACE = ConfigurationSpace(dict.fromkeys("abc", (0.0, 1.0)))
FITS = 3


@pytest.mark.stan
@pytest.mark.parametrize("n", [20, 40])
def test_noise_on_a_sobol_design_is_not_fitted_by_the_function(n):
    """Distant points have no neighbours whose values show the noise, so the priors decide how much of it there is.

    The errors are scaled to their standard deviation, half that of the function, so that they have no sampling error.
    The truth is then within the spread of the posterior: its standardised distances from the draws have mean 0, up to
    3 standard errors, and 90% intervals hold it in at least 2 of 3 fits, with a probability of 97%.
    """
    gp = sl.GaussianProcess(SPACE)
    held = 0
    distances = []
    for seed in range(FITS):
        design = gp.encoder.sobol(n, seed)
        f = np.array([np.sin(5 * x["a"]) + x["b"] ** 2 - x["c"] * x["a"] / 2 for x in design])
        errors = np.random.default_rng(seed).normal(size=n)
        noise = f.std() / 2
        y = f + noise * errors / errors.std(ddof=1)
        posterior = gp.fit(design, y, method="nuts", chains=2, warmup=150, draws=150, seed=seed, pointwise=False)
        ratios = np.log(posterior.draws["sigma_n"] * posterior.y_sd / noise)
        low, high = np.quantile(ratios, [0.05, 0.95])
        held += low <= 0 <= high
        distances.append(ratios.mean() / ratios.std())
    assert held >= 2
    assert abs(np.mean(distances)) < 3 / np.sqrt(FITS), distances
