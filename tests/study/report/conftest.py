"""A study of hostile names, with a model."""

from __future__ import annotations

import pytest
from testing_reports import SCRIPT, filled, hostile_space, without_stan

from slayr_py.study.report.reading import Reading


@pytest.fixture
def hostile() -> Reading:
    """A noisy study of hostile names, with a model."""
    space = hostile_space()
    study = filled(space, 26, name=f"{SCRIPT} $net$", noisy=True)
    return Reading(study, fit=without_stan(study, space))
