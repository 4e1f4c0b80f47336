"""Importance of the parameters: Sobol indices with posterior intervals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd

from slayr_py.inference import importance
from slayr_py.study.results.figures import importance_figure
from slayr_py.study.results.report.blocks import Block, Notice, Paragraph, Table, sentence
from slayr_py.study.results.report.figures import drawing, short
from slayr_py.study.results.report.reading import Reading, once

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = {
    "first": "first-order",
    "first_low": "5%",
    "first_high": "95%",
    "total": "total",
    "total_low": "5% of total",
    "total_high": "95% of total",
}


@once
def importance_of(reading: Reading) -> pd.DataFrame:
    """Return the Sobol indices of the posterior."""
    posterior = reading.unwarped
    reading.progress("computing the importance of the parameters")
    return importance(posterior)


def importances(reading: Reading) -> Iterator[Block]:
    """Return the figure and the table of Sobol indices, if there are any, and what limits them."""
    table = importance_of(reading)
    limits = [Notice(sentence(note)) for note in table.attrs.get("notes", [])]
    if table["total"].isna().all():
        yield from limits
        return
    names = [str(name) for name in table.index]
    yield Paragraph(
        "Shares of the variance of the latent function over the whole space (Sobol indices): first-order, by the "
        "parameter alone, and total, with all its interactions. Points are posterior means, lines 90% intervals."
    )
    first = table.iloc[0]
    text = f"Sobol indices of {len(table)} parameters; {names[0]} has the largest total index, "
    text += f"{first['total']:.2f} (90% interval {first['total_low']:.2f} to {first['total_high']:.2f})."
    columns: dict[str, Any] = {"parameter": names} | {title: table[name] for name, title in _COLUMNS.items()}

    def draw() -> Figure:
        figure = importance_figure(table)
        figure.set_size_inches(5.2, figure.get_figheight())
        (axes,) = figure.axes
        axes.set_yticks(axes.get_yticks(), [short(name, 24) for name in table.index])
        axes.set_xlabel("share of the variance")
        axes.grid(axis="y", visible=False)
        return figure

    numbers = Table.of("importance-table", "Sobol indices", columns, ".3f")
    yield drawing("importance-figure", "Importance of parameters", text, draw, numbers)
    yield from limits
