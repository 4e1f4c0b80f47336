"""The tables of results on the first pages have the figures of the pages that they summarise."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.comparison import tables_in

TOP = Path(__file__).resolve().parents[2]
BENCHMARKS = TOP / "benchmarks"
NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d+(?:e-?\d+)?|(?<![\w.])\d+e-\d+")


def rows(page: Path) -> list[list[str]]:
    """Return the cells of the table of questions of a page."""
    found = tables_in(page.read_text(encoding="utf-8"))
    return next(table for table in found if "question" in table).to_numpy().tolist()


def section(page: Path, anchor: str) -> str:
    """Return the text of a section with its subsections."""
    found: list[str] = []
    depth = 0
    code = False
    for line in page.read_text(encoding="utf-8").splitlines():
        code ^= line.startswith("```")
        if (head := re.match(r"(#+) (.*)", line)) and not code:
            slug = re.sub(r"[^\w -]", "", head[2].lower()).replace(" ", "-")
            if not depth and slug == anchor:
                depth = len(head[1])
            elif depth and len(head[1]) <= depth:
                break
        if depth:
            found.append(line)
    return "\n".join(found)


def missing(figures: str, text: str) -> list[str]:
    """Return the figures that no number of the text has, rounded to as many digits."""
    values = [float(number) for number in NUMBER.findall(text)]
    absent = []
    for figure in NUMBER.findall(figures):
        mantissa, _, exponent = figure.partition("e")
        unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
        if not any(abs(abs(float(figure)) - abs(value)) <= 0.5001 * unit for value in values):
            absent.append(figure)
    return absent


INDEX = rows(BENCHMARKS / "README.md")


@pytest.mark.parametrize("row", INDEX, ids=lambda row: row[0][:50])
def test_the_figures_of_the_index_are_on_the_pages(row):
    question, own, others, command = row
    link = re.search(r"\((\S+?)#(\S+?)\)", command)
    assert link is not None, question
    text = section(BENCHMARKS / link[1], link[2])
    assert text, f"{link[1]} has no section {link[2]}"
    assert not missing(f"{own} {others}", text)


def test_the_figures_of_the_first_page_are_in_the_index():
    everything = "\n".join(" ".join(row) for row in INDEX)
    table = rows(TOP / "README.md")
    assert len(table) >= 9
    for question, _, *figures in table:
        assert not missing(" ".join(figures), everything), question


def test_a_figure_that_the_page_lacks_is_found():
    assert missing("1.08, 0.41 and 8e-8; 3.30", "1.08 ± 0.06, 0.407, 8.24e-08 and 3.3") == []
    assert missing("1.08, 0.42", "1.18, 0.407") == ["1.08", "0.42"]
