"""Short fits used by several test files."""

from __future__ import annotations

from testing_spaces import plain_space

import slayr_py as sl
from slayr_py.space import Encoder

QUICK = {"chains": 2, "warmup": 100, "draws": 50}


def quick_fit(y, space=None, configs=None, **options) -> sl.Posterior:
    """Fit to Sobol points or the given configurations."""
    space = space or plain_space()
    configs = configs if configs is not None else Encoder(space).sobol(len(y), 1)
    return sl.GaussianProcess(space).fit(configs, y, **QUICK | options)


def recorded_fit(method="nuts", **options) -> sl.Posterior:
    """Fit to five values; the tests of records use it."""
    return quick_fit([1.0, 3.0, 2.0, 5.0, 4.0], method=method, **{"warmup": 60, "draws": 30} | options)
