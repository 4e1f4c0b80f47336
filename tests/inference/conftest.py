"""Fits whose diagnostics always pass, posteriors of the same observations under two kernels, and ArviZ."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from testing_spaces import plain_space

import slayr_py as sl
from slayr_py.inference.diagnostics.arviz_bridge import arviz
from slayr_py.space import Encoder

FIT = {"chains": 2, "warmup": 250, "draws": 400}


@pytest.fixture(scope="module")
def accepted_fits() -> Iterator[None]:
    """Let every check pass, so that the record of a fit describes the method that was requested."""
    check = sl.Posterior.check
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sl.Posterior, "check", lambda posterior: replace(check(posterior), ok=True))
        yield


@pytest.fixture(scope="session")
def plane_data():
    """An encoder, twelve configurations and their values."""
    encoder = Encoder(plain_space())
    configs = encoder.sobol(12, 1)
    return encoder, configs, np.array([np.sin(3 * c["x"]) + 0.1 * c["z"] for c in configs])


@pytest.fixture(scope="session")
def two_posteriors(plane_data) -> list[sl.Posterior]:
    encoder, configs, y = plane_data
    kernels = ("matern", "SE * LIN")
    return [sl.GaussianProcess(encoder, kernel).fit(configs, y, seed=3, **FIT) for kernel in kernels]


@pytest.fixture(scope="session")
def stacked(two_posteriors) -> sl.Posterior:
    """A stack of the two with weights that are no multiples of one over the number of draws."""
    return sl.Posterior.stack(two_posteriors, [0.37, 0.63], seed=4)


@pytest.fixture
def az():
    """ArviZ without its deprecation warnings; figures are closed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield arviz()
    plt.close("all")
