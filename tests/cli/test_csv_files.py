"""Tables of past experiments: what spreadsheets write, and messages that name the cell."""

from __future__ import annotations

import optuna
import pandas as pd
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float

import slayr_py as sl
from slayr_py.cli.csv_files import read_parameters, read_table
from slayr_py.space import Encoder
from slayr_py.study import has_only_proposals, read_experiments
from slayr_py.study.run.history import read_history


def lab() -> Encoder:
    return Encoder(ConfigurationSpace({"t": (0.0, 100.0), "n": (1, 9), "solvent": ["a", "b"]}))


def test_levels_that_look_like_numbers_or_missing_values_are_read_as_texts(tmp_path):
    space = ConfigurationSpace(
        [Categorical("k", ["1", "None", "NA"]), Categorical("n", [1, 2]), Float("x", (0.0, 1.0))]
    )
    encoder = Encoder(space)
    (tmp_path / "runs.csv").write_text("params_k,n,x,value\n1,1,0.5,3\nNone,2,0.25,\nNA,2,1,nan\n")
    table, _ = read_experiments(tmp_path / "runs.csv", encoder)
    assert table.index.tolist() == [1, 2, 3] and table["k"].tolist() == ["1", "None", "NA"]
    experiments = read_history(table, encoder)
    assert [experiment.values for experiment in experiments] == [(3.0,), None, None]
    assert experiments[0].params == {"k": "1", "n": 1, "x": 0.5}


def test_a_table_of_trials_is_read_back(tmp_path):
    space = ConfigurationSpace({"x": (0.0, 1.0), "flag": [True, False]})
    columns = {"number": [0, 1], "value": [1.5, None], "state": ["COMPLETE", "FAIL"]}
    trials = pd.DataFrame({**columns, "params_x": [0.1, 0.2], "params_flag": [True, False]})
    trials.to_csv(tmp_path / "trials.csv")
    with pytest.warns(UserWarning, match="row 2 of trials.csv: failed|not among|an empty result"):
        experiments = read_history(str(tmp_path / "trials.csv"), Encoder(space))
    assert [e.params for e in experiments] == [{"x": 0.1, "flag": True}, {"x": 0.2, "flag": False}]


def test_the_costs_of_past_experiments_are_read(tmp_path):
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    (tmp_path / "runs.csv").write_text("x;value;euros\n0,1;2;3,5\n0,2;3;\n")
    with pytest.warns(UserWarning, match="decimal commas"):
        study = sl.study.create_study(space, history=tmp_path / "runs.csv", cost="euros")
    assert [trial.user_attrs.get("euros") for trial in study.trials] == [3.5, None]
    (tmp_path / "trials.csv").write_text("number,value,state,params_x,user_attrs_euros\n0,2,COMPLETE,0.1,four\n")
    with pytest.raises(sl.DataError, match="row 1, column 'user_attrs_euros': 'four' is not a number"):
        sl.study.create_study(space, history=tmp_path / "trials.csv", cost="euros")


def test_a_parameter_may_have_the_name_of_a_column_of_trials(tmp_path):
    space = ConfigurationSpace({"state": ["COMPLETE", "PRUNED"], "number": (0.0, 1.0)})
    (tmp_path / "a.csv").write_text("state,number,value\nPRUNED,0.5,3\n")
    (tmp_path / "b.csv").write_text("number,state,value,params_state,params_number\n4,COMPLETE,3,PRUNED,0.5\n")
    for path in ("a.csv", "b.csv"):
        (experiment,) = read_history(tmp_path / path, Encoder(space))
        assert experiment.params == {"state": "PRUNED", "number": 0.5} and experiment.values == (3.0,)


def test_the_states_of_trials_count_beside_the_status_of_rows_that_were_added(tmp_path):
    trials = "0,1.5,COMPLETE,0.1,\n1,2.5,PRUNED,0.2,\n2,3.5,RUNNING,0.3,\n3,4,FAIL,0.4,\n"
    added = ",,,0.5,planned\n,7,,0.6,done\n,,,0.7,failed\n"
    (tmp_path / "runs.csv").write_text(f"number,value,state,params_x,status\n{trials}{added}")
    table, _ = read_experiments(tmp_path / "runs.csv", Encoder(ConfigurationSpace({"x": (0.0, 1.0)})))
    assert table["state"].to_dict() == {1: "COMPLETE", 4: "FAIL", 5: "PENDING", 6: "COMPLETE", 7: "FAIL"}


def test_an_inactive_parameter_whose_name_starts_with_value_is_no_missing_result(tmp_path):
    space = ConfigurationSpace()
    critic, rate = Categorical("critic", ["shared", "own"]), Float("value_lr", (0.0, 1.0))
    space.add(critic, Float("lr", (0.0, 1.0)), rate, EqualsCondition(rate, critic, "own"))
    (tmp_path / "runs.csv").write_text("critic,value_lr,lr,value\nshared,,0.2,5.0\nown,0.3,0.4,7.0\n")
    study = sl.study.create_study(space, history=tmp_path / "runs.csv")
    assert [(trial.state.name, trial.value) for trial in study.trials] == [("COMPLETE", 5.0), ("COMPLETE", 7.0)]


SPREADSHEETS = {
    "a line for Excel": ("sep=;\nt;n;solvent;value\n1;2;a;3\n", ["t.csv has semicolons between cells"]),
    "empty rows and columns": (
        "t,n,solvent,value,status,,\n,,,,,,\n1,2,a,3,done,,\n,,,,,,\n",
        ["left out: rows 1, 3 of t.csv, empty"],
    ),
    "a capital status": ("t,n,solvent,value, Status \n1,2,a,3,\n", []),
    "line ends of Windows": ("t,n,solvent,value\r\n1,2,a,3\r\n", []),
}


@pytest.mark.parametrize("text, expected", SPREADSHEETS.values(), ids=SPREADSHEETS)
def test_additions_of_spreadsheets_are_left_out(tmp_path, text, expected):
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8", newline="")
    notes = []
    table, _ = read_experiments(path, lab(), note=notes.append)
    assert table[["t", "n", "solvent", "value", "state"]].values.tolist() == [[1.0, 2, "a", 3.0, "COMPLETE"]]
    assert notes == expected


def test_spreadsheets_with_semicolons_decimal_commas_and_a_status_are_read(tmp_path):
    path = tmp_path / "runs.csv"
    text = (
        "﻿day;t;n;solvent;yield;status\nMon;1,5;2;a;12,25;\nTue;2;3;b;;planned\nWed;3;4;a;;Failed\nThu;4;5;b;9;planned\n"
    )
    path.write_text(text, encoding="utf-8")
    notes = []
    table, form = read_experiments(path, lab(), ["yield"], note=notes.append)
    assert (form.separator, form.decimal) == (";", ",")
    assert table["t"].tolist() == [1.5, 2.0, 3.0, 4.0] and table["value"].tolist()[0] == 12.25
    assert table["state"].tolist() == ["COMPLETE", "PENDING", "FAIL", "COMPLETE"]
    assert notes == [
        "runs.csv has semicolons between cells and decimal commas",
        "row 2 of runs.csv: no result yet, counted as running",
        "row 3 of runs.csv: failed",
        "left out: 'day' of runs.csv, not among the parameters",
    ]


def test_one_column_of_errors_for_several_objectives_is_left_out_with_a_note(tmp_path):
    (tmp_path / "runs.csv").write_text("t,n,solvent,p,q,y_sd\n1,2,a,3,4,0.1\n")
    notes = []
    table, _ = read_experiments(tmp_path / "runs.csv", lab(), ["p", "q"], note=notes.append)
    assert len(notes) == 1 and "left out: 'y_sd'" in notes[0]
    assert "y_sd" not in table


def test_decimal_commas_are_recognised_in_the_errors_of_several_objectives(tmp_path):
    (tmp_path / "runs.csv").write_text("t;n;solvent;loss;speed;y_sd_speed\n1;2;a;3;4;0,5\n")
    table, form = read_experiments(tmp_path / "runs.csv", lab(), ["loss", "speed"])
    assert table["y_sd_speed"].tolist() == [0.5] and form.decimal == ","


def test_failed_as_the_result_of_an_experiment_that_is_done_means_that_it_failed(tmp_path):
    (tmp_path / "runs.csv").write_text(f"{HEADER},status\n1,2,a,failed,done\n1,2,a,3,done\n")
    table, _ = read_experiments(tmp_path / "runs.csv", lab())
    assert table["state"].tolist() == ["FAIL", "COMPLETE"]
    assert [experiment.values for experiment in read_history(table, lab())] == [None, (3.0,)]


def test_a_table_to_fit_may_have_semicolons_and_decimal_commas(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("x;kind;loss\n0,5;a;1\n1,25;b;2,5\n", encoding="utf-8-sig")
    assert read_table(path).to_dict("list") == {"x": [0.5, 1.25], "kind": ["a", "b"], "loss": [1.0, 2.5]}
    assert capsys.readouterr().err == "note: t.csv has semicolons between cells and decimal commas\n"


@pytest.mark.parametrize("read", [read_table, lambda path: read_experiments(path, lab())], ids=["fit", "suggest"])
def test_rows_longer_than_the_header_and_open_quotation_marks_are_errors(tmp_path, read):
    path = tmp_path / "t.csv"
    path.write_text("t,n,solvent,value\n0,8,3,a,11\n0,7,4,b,12\n")
    with pytest.raises(sl.DataError, match="t.csv has 5 cells in row 1 and 4 columns; if numbers have decimal commas"):
        read(path)
    for rows in (1, 50_000):
        path.write_text('t,n,solvent,value\n1,2,a,3\n1,2,"a,3\n' + "1,2,a,3\n" * rows)
        with pytest.raises(sl.DataError, match=r"t.csv cannot be read as a table: .* in row 2; a quotation mark may"):
            read(path)


def test_lines_of_blanks_are_left_out(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,2\n  \n\n3,4\n \n")
    assert read_table(tmp_path / "t.csv").to_dict("list") == {"x": [1, 3], "y": [2, 4]}


HEADER = "t,n,solvent,value"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{HEADER}\n1,2,a,3\n1,2,a,n.d.\n", "row 2, column 'value': 'n.d.' is not a number; leave the cell"),
        (f"{HEADER}\nhot,2,a,3\n", "row 1, column 't': 'hot' is not a number"),
        (f"{HEADER}\n1,2,c,3\n", "row 1, column 'solvent': 'c' is not a level of the parameter"),
        (f"{HEADER}\n1,5,2,a,3\n", "5 cells in row 1 and 4 columns; if numbers have decimal commas, separate"),
        (f"{HEADER},status\n1,2,a,3,maybe\n", "row 1, column 'status': 'maybe' is not a status; write one of done"),
        (f"{HEADER},status\n1,2,a,,done\n", "row 1 is 'done' but has no result"),
        ("t,n,value\n1,2,3\n", "no column for the parameter 'solvent'"),
        ("t,n,solvent,yield\n1,2,a,3\n", "no column 'value' of results"),
        ("t,t,n,solvent,value\n1,1,2,a,3\n", "two columns 't'"),
        ("", "is empty; the first line must have the names"),
    ],
)
def test_an_illegal_table_is_an_error_that_names_the_cell(tmp_path, text, message):
    path = tmp_path / "runs.csv"
    path.write_text(text)
    with pytest.raises(sl.DataError, match=message):
        read_experiments(path, lab())


PROPOSALS = {
    "": True,
    "x;value\n": True,
    "x;value\n1;\n": False,  # without a column of the status it has failed
    "x;value;status\n1;2;\n": False,
    "x;loss;status\n1;;planned\n": False,
    "x;value;status\n1;;Planned\n2;;\n": True,
    "x;value;status\n1;;planned\n2;;failed\n": False,
    "x;value;status\n1;;running\n": False,
    "params_x;value;state;status\n1;;;planned\n": True,
    "params_x;value;state;status\n1;;FAIL;planned\n": False,
}


@pytest.mark.parametrize("separator", [None, "|"])
@pytest.mark.parametrize("text, expected", PROPOSALS.items())
def test_only_proposals_without_results_may_be_replaced(tmp_path, text, expected, separator):
    path = tmp_path / "next.csv"
    path.write_text(text if separator is None else text.replace(";", separator))
    encoder = Encoder(ConfigurationSpace({"x": (0.0, 9.0)}))
    assert has_only_proposals(path, encoder, ["value"], separator) == expected


def test_proposals_for_several_objectives_in_the_form_of_trials_may_be_replaced(tmp_path):
    encoder = Encoder(ConfigurationSpace({"x": (0.0, 9.0)}))
    for result, expected in (("", True), ("3", False)):
        (tmp_path / "next.csv").write_text(f"number,values_yield,values_cost,params_x,status\n,,{result},1,planned\n")
        assert has_only_proposals(tmp_path / "next.csv", encoder, ["yield", "cost"]) == expected


def test_a_result_completes_the_experiment_that_was_planned(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(f"{HEADER},status\n1,2,a,3,\n2,2,b,,planned\n")
    stored = {"storage": optuna.storages.InMemoryStorage(), "study_name": "lab", "seed": 1}
    with pytest.warns(UserWarning, match="no result yet"):
        sl.study.create_study(lab(), history=path, **stored)
    path.write_text(f"{HEADER},status\n1,2,a,3,\n2,2,b,7,\n")
    study = sl.study.create_study(lab(), history=path, **stored)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "COMPLETE"]
    assert [trial.value for trial in study.trials] == [3.0, 7.0]


def test_empty_rows_are_left_out_and_rows_keep_their_numbers(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("x,n,y\n0.5,1,1\n,,\n0.7,2,2\n,,\n")
    table = read_table(tmp_path / "t.csv")
    assert table.to_dict("list") == {"x": [0.5, 0.7], "n": [1, 2], "y": [1, 2]} and table.index.tolist() == [0, 2]
    assert "t.csv has 2 empty rows, left out" in capsys.readouterr().err
    related = read_parameters(tmp_path / "t.csv", Encoder(ConfigurationSpace({"x": (0.0, 1.0)})))
    assert related.index.tolist() == [1, 3]
