"""The front of several objectives: its trials, a figure, and the hypervolume."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from slayr_py.errors import SlayrError
from slayr_py.space import FloatArray
from slayr_py.study.results.figures import front_figure, hypervolume_figure
from slayr_py.study.results.front import (
    beliefs_at_front,
    front_band,
    front_probabilities,
    front_table,
    hypervolume_of,
    reference_of,
    users_reference_of,
    with_probabilities,
)
from slayr_py.study.results.noise import is_exact
from slayr_py.study.results.report.blocks import Block, Cell, Drawings, Notice, Paragraph, Table
from slayr_py.study.results.report.figures import drawing
from slayr_py.study.results.report.reading import Absent, Reading
from slayr_py.study.storage.columns import PARAMETER
from slayr_py.study.storage.objectives import goals_of

_BAND = 0.9  # probability that the front is in the band
_DEFAULT = (
    " The reference point is the default one: worse than the worst values of the front by its range, or by a spread of "
    "all values if that is larger."
)
_FUNCTIONS = 256  # drawn functions; the standard error of a probability of 1/2 is about 0.03


def front(reading: Reading) -> Iterator[Block]:
    """Return the hypervolume, figures of the front and of the hypervolume, and a table of the front."""
    study = reading.study
    reference = reference_of(study)
    if reference is None:
        yield Notice("No trial is complete, finite and feasible, so there is no front.")
        return
    table = front_table(study, reading.space)
    shown = ", ".join(f"{goal.name} {value:.5g}" for goal, value in zip(goals_of(study), reference, strict=True))
    yield Paragraph(
        f"The front has {len(table)} trials: no other feasible trial is at least as good in all objectives and better "
        f"in one. Within the reference point {shown} they dominate a volume of "
        f"{hypervolume_of(study, reference.tolist()):.6g}." + (_DEFAULT if users_reference_of(study) is None else "")
    )
    band: pd.DataFrame | None = None
    beliefs: tuple[FloatArray, FloatArray] | None = None
    try:
        posteriors = reading.posteriors
        beliefs = beliefs_at_front(study, posteriors)
        if not is_exact(study):
            table, others = with_probabilities(
                table, front_probabilities(study, posteriors, reading.feasibility, _FUNCTIONS, 1)
            )
            if others:
                yield Paragraph(f"Other trials are probably on the front of the objectives without noise: {others}.")
        if len(posteriors) == 2:
            band = front_band(study, posteriors, reading.feasibility, _BAND, 80, 1)
        yield Paragraph(
            "An ellipse has two posterior standard deviations of the objectives around the means at a trial of the "
            "front. "
            + (
                f"In the band, the best attainable second value lies with probability {_BAND:g}."
                if band is not None
                else ""
            )
        )
    except Absent:  # without a model the figure has the trials
        pass
    except SlayrError as error:
        yield Notice(f"The figure has no posterior. {type(error).__name__}: {error}", "error")
    text = f"Values of the objectives, each pair in a panel, and the front of {len(table)} trials; the table has them."
    growth = "Hypervolume after each feasible trial, within the reference point of the last one."
    yield Drawings(
        [
            drawing("front-figure", "Front", text, lambda: front_figure(study, band, beliefs)),
            drawing("hypervolume-figure", "Hypervolume", growth, lambda: hypervolume_figure(study)),
        ]
    )
    rows = []
    for row in table.astype(object).to_dict("records"):
        rows.append([Cell.of(value.item() if isinstance(value, np.generic) else value) for value in row.values()])
    titles = ["trial", *(goal.name for goal in goals_of(study)), *table.columns[1 + len(study.directions) :]]
    titles = [title.removeprefix(PARAMETER) for title in titles]
    caption = "The front, sorted by the first objective."
    if "probability" in table:
        caption += " The probability is that of being on the front of the objectives without noise."
    yield Table("front-table", caption, titles, rows, interactive=True)
