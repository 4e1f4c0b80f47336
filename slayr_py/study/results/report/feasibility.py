"""Failures and constraints: counts, reasons, and the models' probabilities along the parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from slayr_py.study.model.feasibility import SUCCESS
from slayr_py.study.results.report.blocks import Block, Cell, Drawings, Heading, Notice, Paragraph, Table
from slayr_py.study.results.report.grids import line_notes
from slayr_py.study.results.report.reading import Reading
from slayr_py.study.results.report.slices import lines_of, probability_slices
from slayr_py.study.storage.attributes import FAILURE_KEY
from slayr_py.study.storage.trials import trials_text


def feasibility(reading: Reading) -> Iterator[Block]:
    """Return the counts of failures and violated constraints, and figures of the models of both."""
    failed = [trial for trial in reading.trials if trial.state.name == "FAIL"]
    constraints = sorted({name for trial in reading.trials for name in trial.constraints})
    penalties = reading.penalties
    if not failed and not constraints and not penalties:
        yield Notice("No trial failed, and no trial reported a constraint.")
        return
    too = f", and the values of {trials_text(penalties)} count as failures" if penalties else ""
    yield Paragraph(f"{len(failed)} of {len(reading.trials)} trials failed{too}.")
    if failed:
        reasons = Counter(" ".join(str(trial.user_attrs.get(FAILURE_KEY, "not recorded")).split()) for trial in failed)
        rows = [[Cell(reason), Cell.of(count)] for reason, count in reasons.most_common()]
        yield Table("failures-table", "Reasons for failures.", ["reason", "trials"], rows)
    if constraints:
        yield Table(
            "constraints-table", "Constraints; a value of at most 0 is feasible.", *_counts(reading, constraints)
        )
    models = reading.feasibility
    if not models:
        yield Notice("No model of failures or constraints was fitted, so none is drawn.")
        return
    if reading.has_several:
        yield Notice(f"Models given all finished trials: {', '.join(models)}. They are drawn for one objective only.")
        return
    reading.progress("predicting the probability of feasibility")
    names = ", ".join("success of the evaluation" if name == SUCCESS else name for name in models)
    yield Heading("Probability along the parameters")
    yield Paragraph(
        f"Models given all finished trials: {names}. Probabilities through {reading.centre.what}, as in the slices."
    )
    for name, posterior in models.items():
        if not (checks := posterior.check()).ok:
            yield Notice(f"The model of {name} failed its diagnostics: {'; '.join(checks.messages)}", "warning")
    yield Drawings(probability_slices(reading, models))
    yield from line_notes(lines_of(reading))


def _counts(reading: Reading, constraints: list[str]) -> tuple[list[str], list[list[Cell]]]:
    rows = []
    for name in constraints:
        values = [trial.constraints[name] for trial in reading.trials if name in trial.constraints]
        violated = sum(not value <= 0 for value in values)
        row = [Cell(name), Cell.of(len(values) - violated), Cell.of(violated)]
        rows.append([*row, Cell.of(min(values)), Cell.of(max(values))])
    return ["constraint", "feasible", "violated", "smallest value", "largest value"], rows
