from __future__ import annotations

import html

import numpy as np
import optuna
import pytest

from slayr_py.study import ask, create_study, suggestion_table, tell
from slayr_py.study.results.result import Result
from slayr_py.study.results.tables import found_kernels, last_regret, last_regret_about, stopping_text, trials_table
from slayr_py.study.storage.attributes import REGRET_KEY, SEARCH_KEY, SUGGESTION_KEY


def test_suggestion_table_has_a_row_for_every_trial(small_study):
    table = suggestion_table(small_study)
    assert table["number"].tolist() == [0, 1, 2, 3]
    assert table["phase"].tolist()[:3] == ["initial"] * 3 and table["phase"][3] in ("random", "model")


def test_tables_of_a_study_of_another_sampler():
    study = optuna.create_study()
    study.optimize(lambda trial: trial.suggest_float("z", 0, 1), n_trials=2)
    assert suggestion_table(study)["phase"].isna().all()
    assert trials_table(study).columns.tolist() == ["number", "value", "state", "params_z"]


def test_suggestion_table_marks_trusted_fits(plane):
    study = create_study(plane, n_initial=1, seed=1)
    warm = {"start": "warm", "abandoned": []}
    cold = {"start": "cold", "abandoned": [{"start": "warm", "why": ["bulk ESS 31 < 50"]}]}
    for record in (
        {"phase": "initial"},
        {"phase": "model", "fit": warm, "diagnostics": {"ok": True, "loo_pareto_k_max": 0.4, "pareto_k": None}},
        {"phase": "model", "fit": cold, "diagnostics": {"ok": False}},
        {"phase": "model", "fit": {"abandoned": "?"}, "diagnostics": {"ok": "yes"}},
        {"phase": "random", "error": "Stan died"},
        {"phase": "enqueued"},
    ):
        study.add_trial(optuna.trial.create_trial(value=1.0, user_attrs={SUGGESTION_KEY: {"config": {}, **record}}))
    table = suggestion_table(study)
    assert table["trusted"].tolist() == [None, True, False, False, False, None]
    assert table["attempts"].tolist()[1:4] == [1, 2, 1] and table["attempts"].isna().tolist()[4:] == [True, True]
    assert table["start"].tolist()[1:3] == ["warm", "cold"] and table["loo_pareto_k_max"][1] == 0.4


def test_trials_table_with_known_errors_is_a_history(plane):
    study = create_study(plane, n_initial=4, seed=1)
    for value, sd in ((3.0, 0.5), (2.0, None)):
        tell(study, ask(study), value, sd=sd)
    study.add_trial(optuna.trial.create_trial(value=1.0, user_attrs={"y_sd": "wide"}))
    table = trials_table(study)
    assert table.columns.tolist()[:4] == ["number", "value", "y_sd", "state"]
    np.testing.assert_array_equal(table["y_sd"], [0.5, np.nan, np.nan])
    again = create_study(plane, history=table[:2])
    assert [trial.user_attrs.get("y_sd") for trial in again.trials] == [0.5, None]


def test_the_last_regret_is_the_estimate_by_which_its_rule_has_stopped(plane):
    study = create_study(plane, n_initial=1, seed=1)
    assert last_regret(study) is None and stopping_text(study) == ""
    loose = {"epsilon": 1.0, "target": 0.9, "about": {}}
    for n, estimate in ((3, loose | {"stop": True}), (4, loose | {"stop": False})):
        study.set_user_attr(f"{REGRET_KEY}:{n}:{n}", {"observations": n, "probability": 0.9375, **estimate})
    assert last_regret(study)["number"] == 3
    text = "stopping rule: P(regret < 1) = 0.94 >= 0.9 after 3 observations"
    result = Result(study, plane)
    assert repr(result).endswith(f", {text})") and html.escape(text) in result._repr_html_()
    study.set_user_attr(f"{REGRET_KEY}:5:5", {"observations": 5, **loose, "epsilon": 0.1, "stop": False})
    assert last_regret(study)["number"] == 5 and stopping_text(study) == ""
    study.set_user_attr(f"{REGRET_KEY}:6:6", {**loose, "epsilon": 0.1, "stop": True})  # of another program
    assert stopping_text(study) == "P(regret < 0.1) = - >= 0.9 after - observations"


@pytest.mark.parametrize(
    ("about", "text"),
    [
        ({"fixed": {}, "reference_point": [0.6, 0.0]}, " within the reference point (0.6, 0)"),
        ({"fixed": {"x": 1}, "reference_point": None}, " within the default reference point with the fixed values x=1"),
        ({"reference_point": ["<b>"]}, " within the reference point (<b>)"),
        (None, ""),
    ],
)
def test_it_is_told_what_the_last_regret_is_about(plane, about, text):
    study = create_study(plane, directions=["minimize", "minimize"], n_initial=1, seed=1)
    assert last_regret_about(study) == ""
    study.set_user_attr(f"{REGRET_KEY}:3:3", {"observations": 3, "about": about})
    assert last_regret_about(study) == text


def test_the_kernels_of_the_last_stack_are_described_after_a_search(plane):
    study = create_study(plane, n_initial=1, seed=1)
    for parts in ([("M52", 1.0)], [("M52", 0.25), ("RBF + LIN", 0.75)]):
        stack = {"parts": [{"kernel": name, "weight": weight} for name, weight in parts]}
        attributes = {SUGGESTION_KEY: {"phase": "model", "stack": stack}}
        study.add_trial(optuna.trial.create_trial(value=1.0, user_attrs=attributes))
    assert found_kernels(study) is None
    attributes = {SEARCH_KEY: {"due": 2, "expressions": ["RBF + LIN"]}}
    study.add_trial(optuna.trial.create_trial(value=1.0, user_attrs=attributes))
    assert found_kernels(study) == "0.75 RBF + LIN, 0.25 M52"
