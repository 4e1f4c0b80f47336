from __future__ import annotations

import re

import numpy as np
from matplotlib import rcParams

from slayr_py.study.results import colours
from slayr_py.study.results.report.blocks import Cell, Table
from slayr_py.study.results.report.figures import drawing, number, page_figure, scale, short
from slayr_py.study.results.report.palette import VARIABLES, light


def example(key="fig", label="$a_1$ <b>&"):
    def draw():
        figure, axes = page_figure()
        axes.plot([1, 1000], [0, 1], "o-", color=light("model"))
        axes.fill_between([1, 1000], 0, 1, color=light("best"), alpha=0.2)
        axes.set_xlabel(label)
        scale(axes.xaxis, log=True)
        return figure

    return drawing(key, "A title <i>", "A description &", draw)


def test_text_stays_text_and_dollars_start_no_formula():
    svg = str(example().svg)
    assert ">$a_1$ &lt;b&gt;&amp;</text>" in svg
    assert '<title id="fig-title">A title &lt;i&gt;</title><desc id="fig-desc">A description &amp;</desc>' in svg
    assert 'role="img"' in svg and 'aria-labelledby="fig-title fig-desc"' in svg


def test_colours_are_variables():
    svg = str(example().svg)
    assert "var(--model)" in svg and "var(--best)" in svg and "var(--ink)" in svg
    assert re.findall("#[0-9a-f]{6}", svg) == []


def test_identifiers_have_the_key_and_are_reproducible():
    one, again, other = (str(example(key).svg) for key in ("one", "one", "other"))
    assert one == again
    ids = set(re.findall(r'id="([^"]+)"', one))
    assert all(name.startswith("one-") for name in ids) and not ids & set(re.findall(r'id="([^"]+)"', other))
    used = set(re.findall(r'href="#([^"]+)"', one)) | set(re.findall(r"url\(#([^)]+)\)", one))
    assert used and used <= ids


def test_figures_do_not_change_the_settings_of_matplotlib():
    before = dict(rcParams)
    example()
    assert dict(rcParams) == before


def test_fonts_without_a_glyph_cause_no_warning():
    assert "温度" in str(example(label="温度").svg)


def test_ticks_are_plain_text():
    assert [number(x) for x in (1e-5, 0.001, 250.0, 3e7, -1e-6)] == ["10⁻⁵", "0.001", "250", "3·10⁷", "-1·10⁻⁶"]


def test_names_are_shortened_in_the_middle():
    assert short("a" * 20) == "a" * 20
    assert short("abc\n\x1b" + "d" * 40, 11) == "abc \\…ddddd" and len(short("x" * 99)) <= 28


def test_cells_sort_by_value():
    assert Cell.of(0.123456789) == Cell("0.123457", 0.123456789)
    assert Cell.of(float("nan")) == Cell("–") == Cell.of(None)
    assert Cell.of(True) == Cell("True") and Cell.of(10**400).key is None
    assert Cell.of(float("inf"), ".2f").text == "inf"


def test_tables_know_their_columns_of_numbers():
    table = Table.of("t", "caption", {"name": ["a", "b"], "value": np.array([1.0, 2.5])})
    assert table.numeric == [False, True] and table.rows[1][1] == Cell("2.5", 2.5)


def test_the_page_has_a_variable_for_every_colour_of_the_figures():
    used = {value for name, value in vars(colours).items() if name.isupper()}
    assert used and used <= VARIABLES.keys()
