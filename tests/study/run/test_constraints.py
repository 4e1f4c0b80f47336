from __future__ import annotations

import warnings

import numpy as np
import optuna
import pandas as pd
import pytest
from ConfigSpace import ConfigurationSpace

import slayr_py as sl
from slayr_py.errors import NotFiniteError, ObjectiveError
from slayr_py.space import Encoder
from slayr_py.study.run.constraints import constraint_values, parse_constraints
from slayr_py.study.run.history import read_history
from slayr_py.study.run.past_trials import add_history
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


@pytest.mark.parametrize("texts", [["2 <= top speed<8"], ["8 > top speed >= 2"], ["top speed<=8", " top speed >= 2"]])
def test_a_range_is_two_bounds_on_one_value(texts):
    bounds = parse_constraints(texts)
    assert [str(bound) for bound in bounds] == ["top speed >= 2", "top speed <= 8"]
    assert parse_constraints(map(str, bounds)) == bounds
    assert constraint_values({"top speed": 9.5}, bounds) == {"top speed >=": -7.5, "top speed <=": 1.5}


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ("memory <= 8", "a list of texts"),
        (["m <= 8", "m <= 7"], "several bounds on the same side of 'm'"),
        (["1 <= m <= 8", "m >= 2"], "several bounds on the same side of 'm'"),
        (["8 <= m <= 2"], "'m' cannot be both 'm >= 8' and 'm <= 2'"),
        (["m >= 2", "m <= 2"], "the lower bound has to be smaller"),
        (["1 <= m >= 2"], "is not a constraint; write a name"),
        (["1 <= m <= inf"], "is not a constraint; write a name"),
    ],
)
def test_texts_that_are_no_bounds_are_refused(texts, words):
    with pytest.raises(sl.DataError, match=words):
        parse_constraints(texts)


@pytest.mark.parametrize(
    ("reported", "error", "words"),
    [
        ({"memry": 1.0}, ObjectiveError, "reported 'memry', which is not a constraint; did you mean 'memory'"),
        ({}, ObjectiveError, "no value of the constraint 'memory'"),
        ({1: 0.2}, ObjectiveError, r"the name 1 of a constraint is not text; return \{'1': 0.2\}"),
        ({"memory": "much"}, ObjectiveError, "is 'much', not a number"),
        ({"memory": "0.5"}, ObjectiveError, "is '0.5', not a number"),
        ({"memory": True}, ObjectiveError, "is True, not a number; return a number that is at most 0 where the"),
        ({"memory": np.bool_(False)}, ObjectiveError, "is np.False_, not a number; return a number that is at most 0"),
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
    assert observed.feasible.tolist() == [value <= 0 for value in stored]
    assert constraint_results(result.study, SPACE)["memory"].values.tolist() == stored


def _memory(config):
    return (config["x"] - 0.9) ** 2, {"memory": 10 * config["x"]}


def _run(url, budget, constraints, objective=_memory, **options):
    given = {"n_initial": 6, "seed": 1, "progress": False, "storage": url, "study_name": "s", **options}
    return sl.minimize(objective, SPACE, budget=budget, constraints=constraints, **given)


def test_a_resumed_study_refuses_another_bound(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    assert _run(url, 2, ["memory <= 8"]).study.user_attrs["slayr:bounds"] == ["memory <= 8"]
    words = "'s' was started with the constraint 'memory <= 8', not 'memory {}.*Resume it with 'memory <= 8' in const"
    for other in ("<= 4", ">= 8"):
        with pytest.raises(sl.DataError, match=words.format(other)):
            _run(url, 4, [f"memory {other}"], history=[({"x": 0.5}, 1.0)])
    # The default bound is another one, too: it would make all trials infeasible.
    default = words.format("<= 0', the bound without constraints=") + r".*constraints=\[\]"
    with pytest.raises(sl.DataError, match=default):
        _run(url, 4, None)
    study = _run(url, 4, ["memory < 8.0"]).study
    assert len(study.trials) == 4 and study.user_attrs["slayr:bounds"] == ["memory <= 8"]


@pytest.mark.parametrize("form", ["excess", "number", "file of excesses", "file of numbers"])
def test_past_experiments_have_their_constraints(tmp_path, form):
    first = _run(None, 6, ["memory <= 8"])
    table = first.trials
    bounded = {trial.number: trial.constraints["memory"] for trial in first.study.trials}
    if "number" in form:
        table = table.rename(columns={"constraints_memory": "memory"}).assign(memory=lambda t: t["memory"] + 8)
    table.to_csv(tmp_path / "trials.csv", index=False)
    url = f"sqlite:///{tmp_path}/study.db"
    history = tmp_path / "trials.csv" if "file" in form else table
    again = _run(url, 1, ["memory <= 8"], history=history, n_initial=20).study
    assert {t.number: t.constraints["memory"] for t in again.trials[:6]} == pytest.approx(bounded, abs=1e-14)
    assert sl.study.Result(again, SPACE).trials["constraints_memory"].notna().all()
    # Resumed, the history is there already; another excess is not stored, with a warning.
    assert len(_run(url, 2, ["memory <= 8"], history=history, n_initial=20).study.trials) == 8
    if form == "excess":
        with pytest.warns(UserWarning, match="trials 0, 1, 2, .* keep the stored constraint 'memory', which"):
            _run(url, 2, ["memory <= 8"], history=table.assign(constraints_memory=1.0), n_initial=20)
        with pytest.raises(sl.DataError, match="the columns 'memory' and 'constraints_memory'; drop one of them"):
            _run(url, 2, ["memory <= 8"], history=table.assign(memory=1.0))
        table.assign(memory=1.0).to_csv(tmp_path / "both.csv", index=False)
        with pytest.raises(sl.DataError, match="two columns for 'constraints_memory', one of them 'memory'"):
            _run(url, 2, ["memory <= 8"], history=tmp_path / "both.csv")
        with pytest.raises(sl.DataError, match="history row 0: constraints_memory must be finite, got 'much'"):
            _run(url, 2, ["memory <= 8"], history=table.assign(constraints_memory="much"))


@pytest.mark.parametrize("form", ["excesses", "numbers", "file of excesses", "file of numbers"])
def test_a_range_is_stored_resumed_and_told(tmp_path, form):
    url = f"sqlite:///{tmp_path}/study.db"
    first = _run(url, 6, ["2 <= memory <= 8"], n_initial=20)
    assert first.study.user_attrs["slayr:bounds"] == ["memory >= 2", "memory <= 8"]
    table = first.trials
    stored = [trial.constraints for trial in first.study.trials]
    numbers = [10 * trial.params["x"] for trial in first.study.trials]
    assert stored == [{"memory >=": pytest.approx(2 - m), "memory <=": pytest.approx(m - 8)} for m in numbers]
    assert {2 <= m <= 8 for m in numbers} == {True, False}
    assert 2 <= 10 * first.best_config["x"] <= 8
    for others, now in (
        (["memory <= 8"], "memory <= 8"),
        (["3 < memory < 8"], "3 <= memory <= 8"),
        (None, "memory <= 0"),
    ):
        words = f"with the constraint '2 <= memory <= 8', not '{now}'.*'constraints_memory >=', 'constraints_memory <='"
        with pytest.raises(sl.DataError, match=words):
            _run(url, 7, others, n_initial=20)
    assert len(_run(url, 7, ["memory <= 8", "memory >= 2"], n_initial=20).study.trials) == 7
    if "numbers" in form:
        table = table.drop(columns=["constraints_memory >=", "constraints_memory <="]).assign(memory=numbers)
    table.to_csv(tmp_path / "trials.csv", index=False)
    history = tmp_path / "trials.csv" if "file" in form else table
    again = _run(None, 1, ["2 <= memory <= 8"], history=history, n_initial=20).study
    assert [t.constraints for t in again.trials[:6]] == [pytest.approx(each, abs=1e-14) for each in stored]


def test_a_study_is_not_resumed_with_a_range_for_a_bound(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    _run(url, 2, ["memory <= 8"])
    with pytest.raises(sl.DataError, match="with the constraint 'memory <= 8', not '2 <= memory <= 8'"):
        _run(url, 3, ["2 <= memory <= 8"])


@pytest.mark.filterwarnings("ignore:left out:UserWarning")
def test_the_table_of_optuna_has_constraints(tmp_path):
    study = optuna.create_study()
    for x in (0.2, 0.7):
        study.enqueue_trial({"x": x})
    study.optimize(lambda t: t.set_constraint("heat", (x := t.suggest_float("x", 0, 1)) - 0.5) or x, n_trials=2)
    table = study.trials_dataframe()
    table.to_csv(tmp_path / "trials.csv")
    for history in (table, tmp_path / "trials.csv"):
        past = sl.study.create_study(SPACE, history=history, n_initial=9, seed=1)
        assert [trial.constraints for trial in past.trials] == [{"heat": pytest.approx(x)} for x in (-0.3, 0.2)]


@pytest.mark.stan
def test_a_number_beside_the_value_that_is_always_positive_is_told_to_be_a_constraint():
    def run(constraints):
        sl.minimize(
            lambda c: (c["x"] ** 2, {"sem": 0.1}), SPACE, budget=11, n_initial=10, seed=1, constraints=constraints
        )

    with pytest.warns(UserWarning, match="no trial satisfies the constraint 'sem' so far: its smallest excess is 0.1,"):
        run(None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(["sem <= 0"])  # the user's own bound


def test_a_planned_experiment_gets_its_constraints_with_its_result():
    study = sl.study.create_study(SPACE, n_initial=4, seed=1)
    trial = sl.study.ask(study)
    told = pd.DataFrame({"x": [trial.params["x"]], "value": [2.0], "constraints_heat": [-0.5]})
    add_history(study, read_history(told, Encoder(SPACE)), Encoder(SPACE))
    assert len(study.trials) == 1 and study.trials[0].constraints == {"heat": -0.5}


def test_a_resumed_study_keeps_the_default_bound(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    assert _run(url, 1, None).study.user_attrs["slayr:bounds"] == []
    with pytest.raises(sl.DataError, match="started with the constraint 'memory <= 0', not 'memory <= 8'"):
        _run(url, 2, ["memory <= 8"])
    assert len(_run(url, 2, ["memory <= 0"]).study.trials) == 2
    assert len(_run(url, 3, None).study.trials) == 3


def test_a_resumed_study_may_have_more_or_fewer_constraints(tmp_path):
    def both(config):
        value, constraints = _memory(config)
        return value, {**constraints, "time": 1.0}

    url = f"sqlite:///{tmp_path}/study.db"
    _run(url, 2, ["memory <= 8"])
    words = "no value of constraint {}: the model learns from their values, but they are never the best"
    with pytest.warns(UserWarning, match=words.format("'time'")):
        study = _run(url, 3, ["memory <= 8", "time <= 2"], both).study
    assert study.user_attrs["slayr:bounds"] == ["memory <= 8", "time <= 2"]
    assert [sorted(trial.constraints) for trial in study.trials] == [["memory"]] * 2 + [["memory", "time"]]
    with pytest.warns(UserWarning, match=words.format("'time'")):
        study = _run(url, 4, ["memory <= 8"]).study
    assert study.user_attrs["slayr:bounds"] == ["memory <= 8", "time <= 2"]
    with pytest.raises(sl.DataError, match="'time <= 2', not 'time <= 3'"):
        _run(url, 5, ["time <= 3"])
    with pytest.warns(UserWarning, match=words.format("'time'")):
        study = _run(url, 5, [], lambda config: config["x"]).study
    assert len(study.trials) == 5 and study.user_attrs["slayr:bounds"] == ["memory <= 8", "time <= 2"]


def _interrupted(config):
    raise KeyboardInterrupt


def _fragile(config):
    raise ValueError("no value")


@pytest.mark.parametrize(("objective", "error"), [(_interrupted, KeyboardInterrupt), (_fragile, ObjectiveError)])
@pytest.mark.parametrize("other", [["memory <= 8"], None])
def test_a_bound_that_no_trial_has_used_is_replaced(tmp_path, objective, error, other):
    url = f"sqlite:///{tmp_path}/study.db"
    with pytest.raises(error):
        _run(url, 2, ["memory <= 80"], objective, max_consecutive_failures=1)
    study = _run(url, 2, other).study
    assert study.user_attrs["slayr:bounds"] == (other or [])
    limit = 8 if other else 0
    stored = [trial.constraints["memory"] + limit for trial in study.trials if trial.constraints]
    assert stored == [10 * trial.params["x"] for trial in study.trials if trial.constraints] and stored
    with pytest.raises(sl.DataError, match=f"constraint 'memory <= {limit}', not 'memory <= 80'"):
        _run(url, 4, ["memory <= 80"])


def test_the_bound_of_a_running_trial_is_kept(tmp_path):
    """It stores by how much it exceeds this bound."""
    url = f"sqlite:///{tmp_path}/study.db"

    def during(config):
        with pytest.raises(sl.DataError, match="constraint 'memory <= 8', not 'memory <= 4'"):
            _run(url, 4, ["memory <= 4"])
        return _memory(config)

    assert len(_run(url, 1, ["memory <= 8"], during).study.trials[0].constraints) == 1


def test_a_study_whose_trials_all_lack_a_constraint_has_no_best_configuration(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    _run(url, 2, ["memory <= 8"])
    words = (
        "^3 trials have no value of constraint 'memory' or 'time': .* no trial has all constraints, there is no best"
    )
    with pytest.warns(UserWarning, match=words):
        result = _run(url, 3, ["time <= 2"], lambda config: (config["x"], {"time": 1.0}))
    with pytest.raises(sl.DataError, match="no feasible trial"):
        _ = result.best_config


@pytest.mark.parametrize("constraints", [["memory <= 4"], None])
def test_a_study_without_a_record_of_its_bounds_is_resumed(tmp_path, constraints):
    """As an earlier version or ask and tell have left it: the bounds of its trials are unknown."""
    url = f"sqlite:///{tmp_path}/study.db"
    study = sl.study.create_study(SPACE, storage=url, study_name="s", n_initial=6, seed=1)
    trial = sl.study.ask(study)
    trial.set_constraint("memory", 10 * trial.params["x"] - 8)
    sl.study.tell(study, trial, 1.0)
    resumed = _run(url, 2, constraints).study
    assert resumed.user_attrs.get("slayr:bounds") == constraints and len(resumed.trials) == 2
    assert len(_run(url, 3, ["memory <= 4"]).study.trials) == 3


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
