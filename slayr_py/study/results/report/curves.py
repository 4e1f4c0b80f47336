"""Learning curves of the trials and the decisions to prune them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from optuna.trial import TrialState

from slayr_py.study.results.curves import curve_table, draw_curves, pruning_text
from slayr_py.study.results.report.blocks import Block, Drawings, Notice, Paragraph, Table
from slayr_py.study.results.report.figures import drawing, page_figure, scale
from slayr_py.study.results.report.palette import light
from slayr_py.study.results.report.reading import Reading

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def curves(reading: Reading) -> Iterator[Block]:
    """Return a figure of the curves and a table of the last decision about each trial."""
    table = curve_table(reading.study)
    if table.empty:
        yield Notice("No trial has reported values before its end: see sl.Prune.")
        return
    yield Paragraph(f"{pruning_text(reading.study)}.")
    for why in table["why"].dropna().unique():
        yield Notice(f"There was no decision: {why}.", "warning")
    names = ["number", "state", "steps", "decided", "probability", "best", "mean", "sd", "value"]
    numbers = Table.of("curve-table", "Last decisions", {name: table[name].tolist() for name in names})
    colours = {
        TrialState.COMPLETE: light("model"),
        TrialState.PRUNED: light("best"),
        TrialState.RUNNING: light("muted"),
    }

    def draw() -> Figure:
        figure, axes = page_figure(7.0, 3.4)
        draw_curves(reading.study, axes, colours)
        scale(axes.xaxis, log=False, integer=True)
        return figure

    text = "Reported values of each trial, and the predicted final values of pruned trials with a standard deviation."
    yield Drawings([drawing("curves", "Learning curves", text, draw, numbers)])
