"""Diagnostics of every fit, with what failed and what was done; kernel searches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from slayr_py.inference import INFLUENTIAL
from slayr_py.study.results.report.blocks import Block, Cell, Heading, Notice, Table
from slayr_py.study.results.report.reading import Reading
from slayr_py.study.results.fit_text import fit_notes, limits_text
from slayr_py.study.results.tables import search_table, suggestion_table
from slayr_py.study.storage.attributes import suggestion_record

_COLUMNS = {
    "number": ("trial", ""),
    "kernel": ("kernel", ""),
    "method": ("method", ""),
    "observations": ("n", ""),
    "rhat_max": ("R-hat", ".3f"),
    "ess_bulk_min": ("bulk ESS", ".0f"),
    "ess_tail_min": ("tail ESS", ".0f"),
    "divergences": ("divergences", ""),
    "max_treedepth_hits": ("tree depth hits", ""),
    "ebfmi_min": ("E-BFMI", ".2f"),
    "loo_pareto_k_max": ("k of loo", ".2f"),
    "pareto_k": ("Pareto k", ".2f"),
    "start": ("start", ""),
    "attempts": ("attempts", ""),
    "feasible": ("P(feasible)", ".2f"),
    "seconds_fit": ("fit [s]", ".1f"),
    "seconds_acquisition": ("search [s]", ".1f"),
}


def fits(reading: Reading) -> Iterator[Block]:
    """Return the table of fits, the limits of their diagnostics, and the kernel searches."""
    table = suggestion_table(reading.study)
    table = table[table["phase"].isin(["model", "random"])] if not table.empty else table
    if table.empty:
        yield Notice("No model has been fitted yet: no trial was suggested by one.")
        return
    records = {trial.number: suggestion_record(trial) for trial in reading.trials}
    shown = {name: column for name, column in _COLUMNS.items() if table[name].notna().any()}
    rows = []
    for row in table.astype(object).to_dict("records"):
        notes = "; ".join(fit_notes(records[row["number"]]))
        verdict = Cell("yes", mark="good") if row["trusted"] is True else Cell("no", mark="error")
        cells = [Cell.of(row[name], form) for name, (_, form) in shown.items()]
        rows.append([cells[0], verdict, Cell(notes or "–", mark="wide" if notes else ""), *cells[1:]])
    titles = [title for title, _ in shown.values()]
    columns = [titles[0], "trusted", "what failed, and what was done", *titles[1:]]
    doubtful = [row[0].text for row in rows if row[1].text == "no"]
    yield Table("fits-table", "The fit behind each suggestion.", columns, rows, interactive=True)
    if doubtful:
        yield Notice(
            f"Suggestions of trial {', '.join(doubtful)} do not come from a fit that passed its diagnostics: "
            "the third column says why.",
            "warning",
        )
    yield from _remarks(reading, [int(number) for number in table["number"]])
    yield from _searches(reading)


def _remarks(reading: Reading, numbers: list[int]) -> Iterator[Block]:
    known: dict[int, Mapping[str, Any]] = {}
    for trial in reading.trials:
        diagnostics = suggestion_record(trial).get("diagnostics")
        if trial.number in numbers and isinstance(diagnostics, Mapping):
            known[trial.number] = diagnostics
    limits = [(number, text) for number, one in known.items() if (text := limits_text(one))]
    if limits:
        yield Notice(f"Limits, as of trial {limits[-1][0]}: {limits[-1][1]}.")
    if known and (notes := known[max(known)].get("kernel_notes")):
        yield Notice(f"Kernel, as of trial {max(known)}: {'; '.join(map(str, notes))}.")
    if influential := [str(number) for number, one in known.items() if one.get("loo_influential")]:
        yield Notice(f"Influential observations in trial {', '.join(influential)}: {INFLUENTIAL}.")


def _searches(reading: Reading) -> Iterator[Block]:
    searches = search_table(reading.study)
    if searches.empty:
        return
    yield Heading("Kernel searches")
    columns = ["number", "due", "fits", "score", "best", "expressions", "error"]
    rows = [[Cell.of(row[name]) for name in columns] for row in searches.astype(object).to_dict("records")]
    titles = ["trial", "due at n", "fits", "score", "best score", "kernels used from then on", "error"]
    yield Table("searches-table", "Expressions are in order, the best first.", titles, rows)
