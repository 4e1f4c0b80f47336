"""Spaces, data and one fit that many tests look at."""

from __future__ import annotations

import os
from collections.abc import Callable

import matplotlib
import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from testing_spaces import SPACES, branin, mixed_space
from typer.testing import CliRunner

import slayr_py as sl
from slayr_py.cli.app import app
from slayr_py.space import Encoder

matplotlib.use("Agg")
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(params=sorted(SPACES))
def any_space(request: pytest.FixtureRequest) -> ConfigurationSpace:
    return SPACES[request.param]()


@pytest.fixture(scope="session")
def branin_data() -> tuple[ConfigurationSpace, list, np.ndarray]:
    """20 Sobol points of Branin on its usual domain."""
    space = ConfigurationSpace({"x1": (-5.0, 10.0), "x2": (0.0, 15.0)})
    configs = Encoder(space).sobol(20, 0)
    return space, configs, np.array([branin(c) for c in configs])


@pytest.fixture(scope="session")
def branin_posterior(branin_data) -> sl.Posterior:
    space, configs, y = branin_data
    return sl.GaussianProcess(space).fit(configs, y, chains=2, warmup=300, draws=300, seed=5)


@pytest.fixture(scope="session")
def mixed_posterior() -> sl.Posterior:
    """A small fit on a space with every kind of parameter."""
    space = mixed_space()
    configs = Encoder(space).sobol(12, 3)
    y = [np.log(c["lr"]) + c["layers"] + (c["act"] == "relu") + 0.1 * len(c["size"]) for c in configs]
    return sl.GaussianProcess(space).fit(configs, y, chains=2, warmup=150, draws=100, seed=2)


@pytest.fixture
def slayr() -> Callable[..., tuple[int, str, str]]:
    """Call the command line as a person does; exit code, standard output and standard error come back."""

    def call(*arguments: object) -> tuple[int, str, str]:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout, result.stderr

    return call
