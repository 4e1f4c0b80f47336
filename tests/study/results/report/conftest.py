"""The report of a study of hostile names, with a model."""

from __future__ import annotations

import pytest
from testing_reports import SCRIPT, filled, hostile_space, without_stan

from slayr_py.study.results.report.page import render
from slayr_py.study.results.report.reading import Reading


@pytest.fixture(scope="session")
def hostile_page() -> str:
    """The page of a noisy study with 26 trials."""
    space = hostile_space()
    study = filled(space, 26, name=f"{SCRIPT} $net$", noisy=True)
    with pytest.MonkeyPatch.context() as patch:  # the constraints have no models either
        patch.setattr("slayr_py.study.results.recommendation._present_feasibility", lambda *arguments: {})
        return render(Reading(study, fit=without_stan(study, space, draws=20)))
