"""The report of a study of hostile names, with a model."""

from __future__ import annotations

import pytest
from testing_reports import SCRIPT, filled, hostile_space, without_stan

from slayr_py.study.model.feasibility import FeasibilityModels
from slayr_py.study.results.report.page import render
from slayr_py.study.results.report.reading import Reading


def _no_data(*arguments) -> dict:
    """Return nothing to fit: like the models of the objective, those of feasibility would need Stan."""
    return {}


@pytest.fixture(autouse=True)
def without_models_of_feasibility(monkeypatch):
    monkeypatch.setattr(FeasibilityModels, "data", _no_data)


@pytest.fixture(scope="session")
def hostile_page() -> str:
    """The page of a noisy study with 26 trials."""
    space = hostile_space()
    study = filled(space, 26, name=f"{SCRIPT} $net$", noisy=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FeasibilityModels, "data", _no_data)
        return render(Reading(study, fit=without_stan(study, space, draws=20)))
