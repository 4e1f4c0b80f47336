"""Optuna's figures accept studies of this package: conditional spaces, failures, constraints, running trials."""

from __future__ import annotations

import warnings

import optuna
import pytest
from optuna.trial import TrialState

import slayr_py as sl
from slayr_py.study import ask

pytestmark = [
    pytest.mark.stan,
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),
]

FIGURES = ("optimization_history", "param_importances", "slice")


@pytest.fixture(scope="module")
def studies():
    return {}


@pytest.fixture(params=["plane", "conditional"])
def study(request, studies, plane, mixed, quick):
    """A study with failures and constraints, and one on a conditional space."""
    if request.param not in studies:
        studies[request.param] = conditional(mixed, quick) if request.param == "conditional" else failing(plane, quick)
    return studies[request.param]


def failing(space, quick):
    def objective(config):
        if config["x"] > 7:
            raise MemoryError
        return config["x"] ** 2 + config["y"], {"left": config["x"] - 5}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of each failure
        study = sl.minimize(objective, space, budget=10, n_initial=8, seed=1, progress=False, **quick).study
    assert {trial.state for trial in study.trials} == {TrialState.COMPLETE, TrialState.FAIL}
    return study


def conditional(space, quick):
    def objective(config):
        return config["rate"] + config.get("degree", 0) + len(config["kernel"])

    study = sl.minimize(objective, space, budget=10, n_initial=8, seed=1, progress=False, **quick).study
    assert len({frozenset(trial.params) for trial in study.trials}) > 1
    ask(study)  # still running
    return study


@pytest.mark.parametrize("name", FIGURES)
def test_optuna_draws(study, name):
    pytest.importorskip("plotly")
    figure = getattr(optuna.visualization, f"plot_{name}")(study)
    assert figure.data and figure.to_json()
