from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from slayr_py.cli.checks import ConfigError
from slayr_py.cli.columns import parameter_columns
from slayr_py.errors import DataError

SOURCE = Path("runs.csv")
X = [0.5, 0.1, 0.9, 0.3]

LEFT_OUT = [
    ("from 0 in order", "step", [0, 1, 2, 3], "row numbers, 0 to 3"),
    ("from 1 in order", "step", [1, 2, 3, 4], "row numbers, 1 to 4"),
    ("from 1 as floats", "step", [1.0, 2.0, 3.0, 4.0], "row numbers, 1 to 4"),
    ("an index", "index", [7, 5, 9, 1], "numbers or names of the rows"),
    ("a number", "Number", [11, 12, 13, 17], "numbers or names of the rows"),
    ("a run", "run", [17, 18, 19, 20], "numbers or names of the rows"),
    ("a trial's number", "trial_number", [4, 3, 2, 0], "numbers or names of the rows"),
    ("names of runs", "Run ID", ["a7", "c1", "d8", "e0"], "numbers or names of the rows"),
    ("an index without a name", "Unnamed: 0", [3, 5, 8, 9], "numbers or names of the rows"),
    ("dates", "day", ["2024-01-31", "2024-02-01", "2024-02-01", "2024-02-02"], "dates or times"),
    ("German dates", "day", ["31.1.2024", "1.2.2024", "1.2.24", "2.2.2024"], "dates or times"),
    (
        "times of Optuna",
        "datetime_start",
        ["2024-01-31 10:00:00.125", "2024-01-31 10:00:01", "2024-01-31T10:00:02Z", "2024-01-31 10:00:03+01:00"],
        "dates or times",
    ),
    ("durations", "duration", ["0 days 00:00:01.5", "0 days 00:01:00", "1 days 02:00:00", "0:01"], "dates or times"),
    ("an empty date", "day", ["2024-01-31", None, "2024-02-01", "2024-02-02"], "dates or times"),
    ("seconds since 1970", "timestamp", [1.7e9, 1.8e9, 1.9e9, 1.9e9], "dates or times"),
]


@pytest.mark.parametrize(("name", "values", "why"), [row[1:] for row in LEFT_OUT], ids=[row[0] for row in LEFT_OUT])
def test_row_numbers_and_dates_are_left_out_with_a_note(name, values, why):
    table = pd.DataFrame({name: values, "x": X})
    names, (note,) = parameter_columns(table, SOURCE)
    assert names == ["x"] and f"column {name!r} has {why}; include it with --parameter" in note
    assert parameter_columns(table, SOURCE, included=[name]) == ([name, "x"], [])
    assert parameter_columns(table, SOURCE, ignored=[name]) == (["x"], [])


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("n", [0, 1, 0, 1]),
        ("n", [2, 3, 4, 5]),
        ("n", [0.0, 1.0, 2.0, np.nan]),
        ("flag", [False, True, True, False]),
        ("version", ["1.2", "1.3", "2.0", "1.2"]),
        ("month", ["May", "June", "May", "July"]),
        ("time", [10.0, 20.0, 30.0, 20.0]),
        ("width", [1, 2, 3, 5]),
        ("run", [1, 1, 1, 1]),  # reported later: it does not vary
    ],
)
def test_other_columns_are_parameters(name, values):
    assert parameter_columns(pd.DataFrame({name: values, "x": X}), SOURCE) == ([name, "x"], [])


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("n", [3, 1, 4, 2], "'n' has each number from 1 to 4 once, out of order"),
        ("number of trees", [3, 0, 1, 2], "'number of trees' has each number from 0 to 3 .* --parameter 'number of"),
        ("run", [1, 1, 2, 2], "'run' has the name of a row number, but repeats values"),
    ],
)
def test_undecided_columns_raise_and_the_options_decide(name, values, words):
    table = pd.DataFrame({name: values, "x": X})
    with pytest.raises(DataError, match=f"{words}.*--ignore"):
        parameter_columns(table, SOURCE)
    assert parameter_columns(table, SOURCE, included=[name])[0] == [name, "x"]
    assert parameter_columns(table, SOURCE, ignored=[name])[0] == ["x"]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"included": ["xx"]}, ConfigError, "--parameter: runs.csv has no parameter column 'xx'; did you mean 'x'"),
        ({"ignored": ["loss"]}, ConfigError, "--ignore: runs.csv has no parameter column 'loss'; known: step, x"),
        ({"ignored": ["x"], "included": ["x"]}, ConfigError, "both name 'x'"),
        ({"ignored": ["x"]}, DataError, "no parameter: left out: column 'step' has row numbers, 0 to 3; include it"),
        ({"ignored": ["x", "step"]}, DataError, "no parameter: all columns are ignored"),
    ],
)
def test_wrong_choices_raise(options, error, words):
    with pytest.raises(error, match=words):
        parameter_columns(pd.DataFrame({"step": range(4), "x": X}), SOURCE, **options)
