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


@pytest.fixture
def study(mixed, quick):
    """A study of a conditional space with failures, a constraint and a running trial."""

    def objective(config):
        if config["size"] == "m":
            raise MemoryError
        return config["rate"] + config.get("degree", 0), {"left": config["rate"] - 0.1}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of each failure
        study = sl.minimize(objective, mixed, budget=9, n_initial=8, seed=1, progress=False, **quick).study
    assert {trial.state for trial in study.trials} == {TrialState.COMPLETE, TrialState.FAIL}
    assert len({frozenset(trial.params) for trial in study.trials}) > 1
    ask(study)
    return study


def test_optuna_draws(study):
    pytest.importorskip("plotly")
    for name in ("optimization_history", "param_importances", "slice"):
        figure = getattr(optuna.visualization, f"plot_{name}")(study)
        assert figure.data and figure.to_json()
