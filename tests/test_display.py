"""Tables as text and as HTML."""

from __future__ import annotations

import pandas as pd

from slayr_py.display import Summary

HOSTILE = "<script>alert('x')</script>\x1b[2J"


def test_no_string_of_the_user_is_inserted_unescaped():
    summary = Summary(f"a & b {HOSTILE}", pd.DataFrame({HOSTILE: [HOSTILE, 1.23456789], "y": [None, float("nan")]}))
    html = summary.html()
    assert "<script" not in html and "\x1b" not in html and html.count("&lt;script&gt;") == 3
    assert "<td>1.23457</td><td>-</td>" in html and "a &amp; b" in html
    assert "\x1b" not in summary.text() and "<script>" in summary.text()


def test_only_the_first_rows_are_shown():
    table = pd.DataFrame({"x": range(7)})
    for rows, last in [(5, "... 2 more rows"), (6, "... 1 more row"), (7, None)]:
        summary = Summary("seven", table, rows)
        assert summary.html().count("<td>") == rows
        lines = summary.text().splitlines()
        assert len(lines) == 2 + rows + (last is not None)
        assert last is None or (lines[-1].strip() == last and summary.html().endswith(f"<div>{last}</div>"))
