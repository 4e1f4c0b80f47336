"""Every claim of the sources has a result, a command that exists and a verdict."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from benchmarks.common.results import read, standard_error
from benchmarks.correctness.regression import COLUMNS, PAPER

TOP = Path(__file__).resolve().parents[2]
PAGE = (TOP / "docs" / "sources.md").read_text(encoding="utf-8")
TABLES = [block.splitlines() for block in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE)]
VERDICTS = ("reproduced", "better", "not reproduced", "not measurable")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_no_cell_is_empty_and_every_claim_has_a_verdict():
    assert len(TABLES) > 10
    for head, _, *rows in TABLES:
        for row in map(cells, rows):
            assert len(row) == len(cells(head)) and all(row), row
            if cells(head)[-1] == "verdict":
                assert row[-1].startswith(VERDICTS), row


def test_commands_and_tests_exist():
    commands = set(re.findall(r"`((?:optimisation|search|speed|correctness)\.\w+)", PAGE))
    assert len(commands) >= 8
    for command in commands:
        assert find_spec(f"benchmarks.{command}"), command
    tests = set(re.findall(r'`pytest (\S+?)(?: -k (?:"([^"]+)"|(\w+)))?`', PAGE))
    assert len(tests) >= 15
    for path, *words in tests:
        files = [TOP / path] if path.endswith(".py") else list((TOP / path).glob("test_*.py"))
        names = re.findall(
            r"^def (test_\w+)", "\n".join(file.read_text(encoding="utf-8") for file in files), re.MULTILINE
        )
        for word in filter(None, " ".join(words).replace(" or ", " ").split()):
            assert any(word in name for name in names), (path, word)


def test_figures_of_regression_are_the_printed_and_the_stored_ones():
    stored = read(TOP / "benchmarks" / "correctness" / "results" / "regression.csv", COLUMNS)
    (table,) = (table for table in TABLES if "printed NLL" in table[0])
    for data, method, *printed_and_measured, command, _ in map(cells, table[2:]):
        nll, nll_error, rmse, rmse_error = PAPER[data][method]
        wanted = [f"{nll:.4f} ± {nll_error:.4f}", f"{rmse:.4f} ± {rmse_error:.4f}", *["not measured"] * 2]
        label = f"{re.search(r'--kernels ([-a-z]+)', command)[1]}, {'map' if '--method map' in command else 'nuts'}"
        own = stored[(stored["data"] == data) & stored["model"].str.startswith(label)]
        if len(own) == 20:
            measures = (own["nll_without_noise"], own["rmse"])
            wanted[2:] = [f"{values.mean():.3f} ± {standard_error(values):.3f}" for values in measures]
        assert printed_and_measured == wanted, (data, method)
