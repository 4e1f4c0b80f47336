"""Optuna's figures accept studies of this package: conditional spaces, failures, constraints, running trials."""

from __future__ import annotations

import warnings

import optuna
import pytest
from optuna.trial import TrialState

import slayr_py as sl
from slayr_py.study import StanGPSampler, ask

pytestmark = [
    pytest.mark.stan,
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),
]

FIGURES = (
    "contour",
    "edf",
    "intermediate_values",
    "optimization_history",
    "parallel_coordinate",
    "param_importances",
    "rank",
    "slice",
    "terminator_improvement",
    "timeline",
)


@pytest.fixture(scope="module")
def studies():
    return {}


@pytest.fixture(params=["plane", "conditional", "pruned"])
def study(request, studies, plane, mixed, quick):
    """A study with failures and constraints, one on a conditional space, and one with intermediate values."""
    if request.param not in studies:
        studies[request.param] = {"plane": failing, "conditional": conditional, "pruned": pruned}[request.param](
            mixed if request.param == "conditional" else plane, quick
        )
    return studies[request.param]


def failing(space, quick):
    def objective(config):
        if config["x"] > 7:
            raise MemoryError
        return config["x"] ** 2 + config["y"], {"left": config["x"] - 5}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of each failure
        study = sl.minimize(objective, space, budget=12, n_initial=8, seed=1, progress=False, **quick).study
    assert {trial.state for trial in study.trials} == {TrialState.COMPLETE, TrialState.FAIL}
    return study


def conditional(space, quick):
    def objective(config):
        return config["rate"] + config.get("degree", 0) + len(config["kernel"])

    study = sl.minimize(objective, space, budget=12, n_initial=8, seed=1, progress=False, **quick).study
    assert len({frozenset(trial.params) for trial in study.trials}) > 1
    ask(study)  # still running
    return study


def pruned(space, quick):
    def objective(trial):
        x = trial.suggest_float("x", -5.0, 10.0)
        y = trial.suggest_float("y", 0.0, 15.0)
        for step in range(3):
            trial.report(x**2 + y / (step + 1), step)
        if x > 5:
            raise optuna.TrialPruned
        return x**2 + y

    study = optuna.create_study(sampler=StanGPSampler(space, n_initial=6, seed=1, **quick))
    study.optimize(objective, n_trials=9)
    return study


@pytest.mark.parametrize("name", FIGURES)
def test_optuna_draws(study, name):
    pytest.importorskip("plotly")
    if name == "terminator_improvement":
        pytest.importorskip("torch", reason="Optuna's own Gaussian process needs torch")
    figure = getattr(optuna.visualization, f"plot_{name}")(study)
    has_values = any(trial.intermediate_values for trial in study.trials)
    assert bool(figure.data) == (name != "intermediate_values" or has_values)
    assert figure.to_json()


def test_no_figure_is_left_out():
    every = {name.removeprefix("plot_") for name in dir(optuna.visualization) if name.startswith("plot_")}
    assert every - set(FIGURES) == {"hypervolume_history", "pareto_front"}  # of several objectives
