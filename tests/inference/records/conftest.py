"""A fit whose record several test files read."""

from __future__ import annotations

import pytest
from testing_fits import recorded_fit

import slayr_py as sl


@pytest.fixture(scope="session")
def rounds() -> sl.Posterior:
    """A fit of more than one round; fits with cold chains are returned even if their diagnostics fail."""
    return recorded_fit(seed=1, ess=150)
