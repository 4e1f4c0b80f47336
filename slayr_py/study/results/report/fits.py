"""Diagnostics and discarded attempts of every fit; kernel searches."""

from __future__ import annotations

from collections.abc import Iterator

from slayr_py.errors import SlayrError
from slayr_py.study.results.fit_text import fit_notes, fits_remarks
from slayr_py.study.results.report.blocks import Block, Cell, Heading, Notice, Table, sentence
from slayr_py.study.results.report.reading import Reading
from slayr_py.study.results.tables import FIT_COLUMNS, fit_table, search_table
from slayr_py.study.storage.attributes import suggestion_record
from slayr_py.study.storage.objectives import goals_of
from slayr_py.study.storage.trials import far_values_text, observations_of_all

_LEFT_OUT = ("number", "phase", "since_cold", "ok")  # the first column has the number, and "trusted" replaces "ok"


def fits(reading: Reading) -> Iterator[Block]:
    """Return the table of fits, the limits of their diagnostics, and the kernel searches."""
    table = fit_table(reading.study)
    if table.empty:
        yield Notice("No model has been fitted yet: no trial was suggested by one.")
        return
    known = {trial.number: suggestion_record(trial) for trial in reading.trials}
    records = {number: known[number] for number in table["number"]}
    shown = [name for name in FIT_COLUMNS if name not in _LEFT_OUT and table[name].notna().any()]
    rows = []
    for row in table.astype(object).to_dict("records"):
        notes = "; ".join(fit_notes(records[row["number"]]))
        verdict = Cell("yes", mark="good") if row["trusted"] is True else Cell("no", mark="error")
        cells = [Cell.of(row["number"]), verdict, Cell(notes or "–", mark="wide" if notes else "")]
        rows.append([*cells, *(Cell.of(row[name], FIT_COLUMNS[name][1]) for name in shown)])
    columns = ["trial", "trusted", "what failed, and what was done", *(FIT_COLUMNS[name][0] for name in shown)]
    yield Table("fits-table", "The fit behind each suggestion.", columns, rows, interactive=True)
    if doubtful := [row[0].text for row in rows if row[1].text == "no"]:
        yield Notice(
            f"Suggestions of trial {', '.join(doubtful)} do not come from a fit that passed its diagnostics: "
            "the third column has the reasons.",
            "warning",
        )
    yield from _far_values(reading)
    for remark in fits_remarks(records):
        yield Notice(sentence(remark))
    yield from _searches(reading)


def _far_values(reading: Reading) -> Iterator[Block]:
    if reading.space is None:
        return
    try:
        seen = observations_of_all(reading.study, reading.space)
    except SlayrError as error:
        yield Notice(str(error), "warning")
        return
    for goal, observed in zip(goals_of(reading.study), seen, strict=True):
        if text := far_values_text(goal, observed):
            yield Notice(f"{text}.", "warning")


def _searches(reading: Reading) -> Iterator[Block]:
    searches = search_table(reading.study)
    if searches.empty:
        return
    yield Heading("Kernel searches")
    columns = ["number", "due", "fits", "score", "best", "expressions", "error"]
    rows = [[Cell.of(row[name]) for name in columns] for row in searches.astype(object).to_dict("records")]
    titles = ["trial", "due at n", "fits", "score", "best score", "kernels used from then on", "error"]
    yield Table("searches-table", "Expressions are in order, the best first.", titles, rows)
