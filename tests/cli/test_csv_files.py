from __future__ import annotations

import pandas as pd
from ConfigSpace import Categorical, ConfigurationSpace, Float

from slayr_py.cli.csv_files import read_past_experiments
from slayr_py.space import Encoder
from slayr_py.study.run.history import read_history


def test_levels_that_look_like_numbers_or_missing_values_are_read_as_texts(tmp_path):
    space = ConfigurationSpace(
        [Categorical("k", ["1", "None", "NA"]), Categorical("n", [1, 2]), Float("x", (0.0, 1.0))]
    )
    encoder = Encoder(space)
    (tmp_path / "runs.csv").write_text("params_k,n,x,value\n1,1,0.5,3\nNone,2,0.25,\nNA,2,1,nan\n")
    table = read_past_experiments(tmp_path / "runs.csv", encoder)
    assert table.index.tolist() == [1, 2, 3] and table["params_k"].tolist() == ["1", "None", "NA"]
    experiments = read_history(table, encoder)
    assert [experiment.values for experiment in experiments] == [(3.0,), None, None]
    assert experiments[0].params == {"k": "1", "n": 1, "x": 0.5}


def test_a_table_of_trials_is_read_back(tmp_path):
    space = ConfigurationSpace({"x": (0.0, 1.0), "flag": [True, False]})
    columns = {"number": [0, 1], "value": [1.5, None], "state": ["COMPLETE", "FAIL"]}
    trials = pd.DataFrame({**columns, "params_x": [0.1, 0.2], "params_flag": [True, False]})
    trials.to_csv(tmp_path / "trials.csv")
    table = read_past_experiments(tmp_path / "trials.csv", Encoder(space))
    assert [e.params for e in read_history(table, Encoder(space))] == [
        {"x": 0.1, "flag": True},
        {"x": 0.2, "flag": False},
    ]
