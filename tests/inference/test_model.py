"""Kernel and priors of a model."""

from __future__ import annotations

import numpy as np
import pytest
from testing_fits import QUICK
from testing_spaces import plain_space

import slayr_py as sl
from slayr_py.space import Encoder


@pytest.mark.stan
def test_priors_change_the_posterior_without_compiling():
    y = [1.0, 3.0, 2.0, 5.0]
    configs = Encoder(plain_space()).sobol(4, 1)
    tight = {"lengthscale": sl.LogNormal([-2.0, 3.0], 0.01), "sigma_n": sl.LogNormal(-6, 0.01)}
    posterior = sl.GaussianProcess(plain_space(), priors=tight).fit(configs, y, **QUICK)
    np.testing.assert_allclose(np.log(posterior.draws["lengthscale"]).mean(axis=0), [-2, 3], atol=0.02)


def test_an_unknown_kernel():
    with pytest.raises(sl.DataError, match="unknown kernel 'rbf'"):
        sl.GaussianProcess(plain_space(), kernel="rbf")
