"""Costs of evaluations: what is measured and reported, and the budget."""

from __future__ import annotations

import math
import time

import numpy as np
import optuna
import pandas as pd
import pytest
from optuna.trial import TrialState
from typer.testing import CliRunner

import slayr_py as sl
from slayr_py.cli.app import app
from slayr_py.study import ask, cost_figure, cost_model_of, create_study, suggestion_record, tell
from slayr_py.study.run.objective import Evaluation, Expected, evaluate
from slayr_py.study.run.outcomes import TrialOutcomes
from slayr_py.study.storage.attributes import FAILURE_KEY, VALUE_KEY
from slayr_py.study.storage.costs import costs_of_trials, log_costs, spent, without_cost

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def bowl(config):
    return (config["x"] - 0.3) ** 2 + (config["y"] - 0.6) ** 2


def price(config):
    return math.exp(3 * config["x"])


def paid(config):
    return bowl(config), {"euros": price(config)}


def run(objective, budget, **options):
    given = {"cost": "euros", "seed": 1, "progress": False, "method": "map"} | options
    return sl.minimize(objective, SPACE, budget, **given)


@pytest.mark.stan
def test_a_budget_of_costs_ends_a_study_that_another_process_resumes(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    run(paid, 7, storage=url, study_name="net")
    result = run(paid, 50, storage=url, study_name="net", max_cost=40)
    again = run(paid, 50, max_cost=40)
    assert [trial.params for trial in again.study.trials] == [trial.params for trial in result.study.trials]
    table = result.trials
    assert list(table["euros"]) == pytest.approx([price(trial.params) for trial in result.study.trials], abs=0)
    assert table["euros"].sum() >= 40 > table["euros"][:-1].sum()

    trial = result.study.trials[-1]
    record = suggestion_record(trial)["cost"]
    assert record["name"] == "euros" and record["observations"] == len(table) - 1
    assert record["expected"] == pytest.approx(price(trial.params), rel=0.1)
    prediction = cost_model_of(result.study, trial.number).predict([trial.params])
    expected = np.exp(prediction.draw_mean + 0.5 * prediction.draw_sd**2).item()
    assert record["expected"] == pytest.approx(expected, rel=1e-9)

    spent = f"{table['euros'].sum():.6g} euros in {len(table)} trials"
    assert f"cost: {spent}" in CliRunner().invoke(app, ["inspect", url]).output
    assert list(cost_figure(result.study).axes[0].lines[1].get_xdata()) == pytest.approx(np.cumsum(table["euros"]))
    page = result.report(tmp_path / "report.html").read_text()
    assert "Best value by cost" in page and spent in page
    assert len(run(paid, 50, storage=url, study_name="net", max_cost=25).trials) == len(table)


@pytest.mark.parametrize(
    ("reported", "cost", "wrong"),
    [
        ({"euros": 2}, 2.0, None),
        ({"euros": np.float32(0.5)}, 0.5, None),
        ({}, None, None),
        ({"euros": 0.0}, None, "the cost 'euros' is 0.0, which is not a finite number above 0"),
        ({"euros": -1}, None, "is -1,"),
        ({"euros": float("nan")}, None, "is nan,"),
        ({"euros": "3"}, None, "is '3',"),
        ({"euros": np.timedelta64(3, "s")}, None, "is np.timedelta64(3,'s'),"),
    ],
)
def test_a_bad_cost_does_not_touch_the_value(reported, cost, wrong):
    evaluation = evaluate(lambda config: (1.5, reported), {}, None, Expected(cost="euros"))
    assert evaluation.values == (1.5,) and evaluation.failure is None and evaluation.constraints == {}
    assert evaluation.cost == cost
    assert wrong is None if evaluation.cost_error is None else wrong in str(evaluation.cost_error)


def test_missing_costs_are_named_and_stop_the_study_in_the_end():
    with pytest.warns(RuntimeWarning, match=r"trial [01] has its value, but the objective reported no cost 'euros'"):
        with pytest.raises(sl.ObjectiveError, match="2 trials in a row failed.* reported no cost 'euros': return it"):
            run(bowl, 5, n_initial=5, max_consecutive_failures=2, study_name="none", storage=(store := memory()))
    study = optuna.load_study(study_name="none", storage=store)
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * 2
    with pytest.raises(sl.DataError, match="no trial of study 'none' has returned the cost 'euros': return it beside"):
        cost_figure(study)
    with pytest.raises(sl.DataError, match="has no cost: use cost="):
        cost_figure(create_study({"x": (0.0, 1.0)}))


def memory():
    return optuna.storages.InMemoryStorage()


def test_failed_and_pruned_evaluations_cost_what_they_took():
    def objective(config, trial):
        time.sleep(0.002)
        if trial.number == 0:
            raise ValueError
        if trial.number == 1:
            raise optuna.TrialPruned
        return float("nan") if trial.number == 2 else bowl(config)

    result = run(objective, 4, cost="seconds", n_initial=4)
    seconds = [trial.user_attrs["seconds"] for trial in result.study.trials]
    assert [trial.state.name for trial in result.study.trials] == ["FAIL", "PRUNED", "FAIL", "COMPLETE"]
    assert all(0.002 <= each < 10 for each in seconds)
    assert list(result.trials["seconds"]) == seconds


def test_costs_count_as_constraints_only_by_name_and_evaluations_side_by_side_may_exceed_the_budget():
    def objective(config):
        return bowl(config), {"euros": 3.0, "heat": -1.0}

    options = {"n_initial": 20, "n_parallel": 2, "max_cost": 10}
    result = run(objective, 20, constraints=["heat <= 0", "euros <= 5"], **options)
    assert 4 <= len(result.trials) <= 5
    assert result.study.trials[0].constraints == {"heat": -1.0, "euros": -2.0}
    assert run(objective, 20, **options).study.trials[0].constraints == {"heat": -1.0}


def test_costs_are_told_and_read_from_tables():
    table = pd.DataFrame({"x": [0.1, 0.2], "y": [0.5, 0.5], "value": [1.0, 2.0], "euros": [3.0, None]})
    study = create_study(SPACE, cost="euros", history=table)
    assert [trial.user_attrs.get("euros") for trial in study.trials] == [3.0, None]
    trial = ask(study)
    with pytest.raises(sl.DataError, match="the cost 'euros' is -2; give a finite number above 0"):
        tell(study, trial, 1.0, cost=-2)
    assert tell(study, trial, 1.0, cost=2).user_attrs["euros"] == 2.0
    plain = create_study(SPACE)
    with pytest.raises(sl.DataError, match="the study's sampler has no cost"):
        tell(plain, ask(plain), 1.0, cost=2)


def test_only_finished_trials_of_the_study_itself_have_cost_something():
    study = create_study(SPACE, cost="euros", n_initial=9, history=[({"x": 0.1, "y": 0.5}, 1.0)])
    tell(study, ask(study), 1.0, cost=2)
    tell(study, ask(study), 1.0)
    ask(study)
    assert costs_of_trials(study, "euros") == pytest.approx({1: 2.0, 2: math.nan}, nan_ok=True)
    assert without_cost(study, "euros") == [2]
    assert spent(study, "euros").describe("euros") == "2 euros in 1 trials; unknown for 1 trials"


def test_a_value_is_written_after_its_constraints_and_its_cost(monkeypatch):
    """A process that is killed between them leaves no value that counts as feasible, or as one without a cost."""
    study = create_study(SPACE, cost="euros", n_initial=9)
    trial = ask(study)
    written = []
    monkeypatch.setattr(optuna.Trial, "set_constraint", lambda trial, name, excess: written.append(name))
    monkeypatch.setattr(optuna.Trial, "set_user_attr", lambda trial, name, value: written.append(name))
    TrialOutcomes(study, "euros").write(trial, Evaluation((1.0,), {"heat": -1.0, "memory": 2.0}, cost=3.0))
    assert set(written[:-1]) == {"heat", "memory", "euros"} and written[-1] == VALUE_KEY


def test_a_model_of_costs_learns_from_whole_evaluations():
    study = create_study(SPACE, cost="euros", n_initial=9)
    interrupted = {FAILURE_KEY: "KeyboardInterrupt"}
    states = [TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED, TrialState.FAIL]
    for state, attributes in zip(states, [{}, {}, {}, interrupted], strict=True):
        trial = ask(study)
        for key, value in {"euros": math.e, **attributes}.items():
            trial.set_user_attr(key, value)
        study.tell(trial, 1.0 if state == TrialState.COMPLETE else None, state)
    space = study.sampler.strategy.space
    known = log_costs(study, space, "euros")
    assert known.numbers == [0, 1] and known.values.tolist() == [1.0, 1.0]
    assert log_costs(study, space, "euros", {1, 2}).numbers == [1]


def test_trials_of_a_study_with_a_cost_are_a_history_of_one_without():
    first = run(lambda config: (bowl(config), {"euros": 2.0}), 2, n_initial=2, cost="euros")
    with pytest.warns(UserWarning, match="the column 'euros' of the history, a cost of its study; cost='euros' reads"):
        study = create_study(SPACE, history=first.trials)
    assert [trial.value for trial in study.trials] == first.trials["value"].tolist()
    assert create_study(SPACE, cost="euros", history=first.trials).trials[0].user_attrs["euros"] == 2.0
    with pytest.warns(UserWarning, match="^left out: 'extra' of the history, not among"):
        create_study(SPACE, cost="euros", history=first.trials.assign(extra=1.0))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cost": "x"}, "cost 'x' is a parameter"),
        ({"cost": 3}, "cost is 3; give 'seconds' for the measured duration"),
        ({"cost": "y_sd"}, "is the name of another attribute"),
        ({"cost": "state"}, "cost 'state' is the name of a column of result.trials; return .* another name"),
        ({"cost": "params_z"}, "cost 'params_z' is the name of a column"),
        ({"cost": "seconds", "acquisition": "lcb"}, "'lcb' is not supported with cost=.*; use acquisition='ei'"),
        ({"max_cost": 3.0}, "no cost=; add cost='seconds'"),
        ({"cost": "seconds", "max_cost": -1}, "max_cost must be positive"),
    ],
)
def test_illegal_options_are_named(options, words):
    with pytest.raises(sl.DataError, match=words):
        sl.minimize(bowl, SPACE, 2, progress=False, **options)
