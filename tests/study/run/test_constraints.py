from __future__ import annotations

import numpy as np
import optuna
import pytest
from ConfigSpace import ConfigurationSpace

import slayr_py as sl
from slayr_py.errors import NotFiniteError, ObjectiveError
from slayr_py.study.run.constraints import constraint_values, parse_constraints
from slayr_py.study.storage.trials import constraint_results, observations

SPACE = ConfigurationSpace({"x": (0.0, 1.0)})


def test_bounds_become_excesses():
    bounds = parse_constraints(["memory <= 8", "top-1 accuracy>=0.9", "a < -1e-3"])
    assert [bound.name for bound in bounds] == ["memory", "top-1 accuracy", "a"]
    values = constraint_values({"memory": 9.5, "top-1 accuracy": 0.95, "a": 0}, bounds)
    assert values == pytest.approx({"memory": 1.5, "top-1 accuracy": -0.05, "a": 0.001})
    assert constraint_values({"free": -2}, None) == {"free": -2.0}


@pytest.mark.parametrize("text", ["memory", "<= 8", "memory <= big", "memory <= inf", "a <= b <= 3", 3, ""])
def test_other_forms_are_refused(text):
    with pytest.raises(sl.DataError, match="is not a constraint; write"):
        parse_constraints([text])


def test_a_text_or_two_bounds_on_a_name_are_refused():
    with pytest.raises(sl.DataError, match="a list of texts"):
        parse_constraints("memory <= 8")
    with pytest.raises(sl.DataError, match="two constraints on 'm'"):
        parse_constraints(["m <= 8", "m >= 2"])


@pytest.mark.parametrize(
    ("reported", "error", "words"),
    [
        ({"memry": 1.0}, ObjectiveError, "reported 'memry', which is not a constraint; did you mean 'memory'"),
        ({}, ObjectiveError, "no value of the constraint 'memory'"),
        ({1: 0.2}, ObjectiveError, r"the name 1 of a constraint is not text; return \{'1': 0.2\}"),
        ({"memory": "much"}, ObjectiveError, "is 'much', not a number"),
        ({"memory": float("nan")}, NotFiniteError, "is nan, not a finite number"),
        ({"memory": np.ma.masked}, NotFiniteError, "is nan, not a finite number"),
        ({"memory": np.timedelta64(5, "ns")}, ObjectiveError, "is np.timedelta64.*, not a number"),
    ],
)
def test_wrong_reports_fail_the_trial(reported, error, words):
    with pytest.raises(error, match=words):
        constraint_values(reported, parse_constraints(["memory <= 8"]))


def test_a_known_error_is_no_constraint():
    with pytest.raises(ObjectiveError, match=r"call trial.set_user_attr\('y_sd', 0.1\)"):
        constraint_values({"y_sd": 0.1}, None)
    assert constraint_values({"y_sd": 0.1}, parse_constraints(["y_sd <= 0.2"]))["y_sd"] < 0


def test_wrong_reports_keep_the_value_and_the_study_continues():
    reports = iter([{1: 0.2}, {"a": "much"}, {"a": float("nan")}, {"a": 1.0}])
    result = sl.minimize(lambda config: (7.5, next(reports)), SPACE, budget=4, n_initial=4, seed=1, progress=False)
    assert result.trials["state"].tolist() == ["FAIL"] * 3 + ["COMPLETE"]
    for trial in result.study.trials[:3]:
        assert "The value 7.5 was returned: correct the objective and" in trial.user_attrs["slayr:failure"]


def test_the_best_configuration_violates_no_constraint():
    def objective(config):
        return config["x"], {"memory": 10 * config["x"]}

    result = sl.minimize(objective, SPACE, budget=4, n_initial=4, seed=1, progress=False, constraints=["memory >= 4"])
    stored = [trial.constraints["memory"] for trial in result.study.trials]
    assert stored == pytest.approx([4 - 10 * trial.params["x"] for trial in result.study.trials])
    feasible = [trial.params["x"] for trial in result.study.trials if trial.params["x"] >= 0.4]
    assert result.best_value == min(feasible) and result.best_config["x"] == min(feasible)
    observed = observations(result.study, SPACE)
    assert observed.feasible.tolist() == [value <= 0 for value in stored] and observed.best == min(feasible)
    assert constraint_results(result.study, SPACE)["memory"].values.tolist() == stored


def test_trials_without_a_constraint_are_never_the_best_and_reported():
    def objective(config):
        return config["x"], {"mem": config["x"]}

    words = "^2 trials have no value of constraint 'mem': the model learns from their values, but they are never the "
    options = {"budget": 3, "n_initial": 5, "seed": 1, "progress": False, "constraints": ["mem <= 8"]}
    with pytest.warns(UserWarning, match=words) as warned:
        result = sl.minimize(objective, SPACE, history=[({"x": 0.0}, -1.0), ({"x": 0.5}, 2.0)], **options)
    assert len(warned) == 1 and result.best_value == min(trial.value for trial in result.study.trials[2:])


def test_without_a_feasible_trial_there_is_no_best_configuration():
    result = sl.minimize(lambda c: (c["x"], {"c": 1.0}), SPACE, budget=2, n_initial=2, seed=1, progress=False)
    with pytest.raises(sl.DataError, match="no feasible trial"):
        _ = result.best_config
    assert "no feasible trial" in repr(result)


@pytest.mark.stan
@pytest.mark.parametrize(("margin", "stored"), [(float("inf"), 1.0), (-float("inf"), -1.0)])
def test_a_constraint_without_a_finite_value_is_learned_by_its_sign(margin, stored):
    def objective(trial):
        trial.set_constraint("margin", margin)
        return trial.suggest_float("x", 0, 1)

    study = optuna.create_study(sampler=sl.study.StanGPSampler(SPACE, n_initial=3, seed=1, method="map"))
    study.optimize(objective, n_trials=4)
    assert study.trials[3].user_attrs["slayr:suggestion"]["phase"] == "model"
    assert constraint_results(study, SPACE)["margin"].values.tolist() == [stored] * 4
    assert constraint_results(study, SPACE, {1, 2})["margin"].numbers == [1, 2]


@pytest.mark.stan
def test_suggestions_keep_the_constraints_of_an_optuna_study():
    """Optuna's own way to report constraints; the optimum without them is at x = 0."""

    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        trial.set_constraint("right", 0.6 - x)
        return x**2

    sampler = sl.study.StanGPSampler(SPACE, n_initial=4, seed=1, method="map")
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=12)
    suggested = [trial for trial in study.trials[4:]]
    # Without the constraint all of them would be at x = 0.
    assert sum(trial.params["x"] >= 0.55 for trial in suggested) >= 6
    assert study.best_trial.params["x"] == pytest.approx(0.6, abs=0.02)
    record = suggested[-1].user_attrs["slayr:suggestion"]
    assert set(record["conditions"]) == {"constraint right"} and 0 < record["feasible"] <= 1
