from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import ConfigurationSpace

import slayr_py as sl
from slayr_py.space import Encoder, TimeScale, has_dates, is_date

COLUMNS = [
    (["2024-03-01", "2024-03-04", None], [0, 3, np.nan], "days since 2024-03-01"),
    (["2024-03-01 12:00", "2024-03-01T15:30:00"], [0, 3.5], "hours since 2024-03-01 12:00:00"),
    (["2024-03-01T12:00:00Z", "2024-03-01T15:30:00+01:00"], [0, 2.5], "hours since 2024-03-01 12:00:00 UTC"),
    (["2024-03-01 12:05:00", "2024-03-01 12:00:00.5"], [4 + 59.5 / 60, 0], "minutes since 2024-03-01 12:00:00.500000"),
    (["2024-03-01", "2024-03-01"], [0, 0], "seconds since 2024-03-01"),
    ([datetime.date(2024, 3, 1), datetime.date(2024, 3, 8)], [0, 7], "days since 2024-03-01"),
    (pd.to_datetime(["2024-03-01", "2024-03-03"]).tz_localize("Europe/Berlin"), [0, 2], "days since 2024-02-29 23:00"),
]


@pytest.mark.parametrize(("cells", "expected", "text"), COLUMNS, ids=[row[2] for row in COLUMNS])
def test_columns_of_dates(cells, expected, text):
    column = pd.Series(cells)
    scale = TimeScale.of("t", column)
    np.testing.assert_allclose(scale.numbers("t", column), expected)
    assert str(scale).startswith(text)


@pytest.mark.parametrize("cells", [["a", "2024-03-01"], [1.0, 2.0], [None, None], ["01/02/2024"], ["12:30"], [True]])
def test_other_columns(cells):
    assert not has_dates(pd.Series(cells)) and TimeScale.of("t", pd.Series(cells)) is None


def test_illegal_dates():
    with pytest.raises(sl.DataError, match="'t' has a date that does not exist: "):
        TimeScale.of("t", pd.Series(["2024-13-01"]))
    with pytest.raises(sl.DataError, match="some dates of column 't' have a time zone and others have none"):
        TimeScale.of("t", pd.Series(["2024-03-01", "2024-03-01 12:00Z"]))
    scale = TimeScale.of("t", pd.Series(["2024-03-01"]))
    with pytest.raises(sl.DataError, match="differ from the data of the fit in having a time zone"):
        scale.numbers("t", pd.Series(["2024-03-01 12:00Z"]))


@pytest.mark.parametrize("value", ["2024-03-01", pd.Timestamp("2024-03-01"), datetime.date(2024, 3, 1)])
def test_a_declared_parameter_takes_no_date(value):
    """The bounds of the space have a unit and an origin, which a table does not tell."""
    assert is_date(value)
    encoder = Encoder(ConfigurationSpace({"day": (0.0, 100.0)}))
    with pytest.raises(sl.SpaceError, match="give a number from 0.0 to 100.0: write a date as the time since a day of"):
        encoder.encode(pd.DataFrame({"day": [value]}))


def test_a_history_takes_no_date(tmp_path):
    (tmp_path / "past.csv").write_text("day,value\n2024-03-01,1\n")
    encoder = Encoder(ConfigurationSpace({"day": (0.0, 100.0)}))
    with pytest.raises(
        sl.DataError, match="row 1, column 'day': '2024-03-01' is not a number: write a date as the time"
    ):
        sl.study.read_experiments(tmp_path / "past.csv", encoder)
