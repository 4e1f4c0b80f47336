"""Figure of the importance of parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SERIES = (("first", "first-order: alone", "#4c72b0", 0.15), ("total", "total: with interactions", "#c44e52", -0.15))


def importance_figure(table: pd.DataFrame) -> Figure:
    """Draw Sobol indices: a point at each posterior mean, and a line over its 90% interval.

    Parameters
    ----------
    table : DataFrame
        From `Result.importance` or `slayr_py.inference.importance`; its first row is drawn at the top.

    Returns
    -------
    matplotlib.figure.Figure
        Drawn without pyplot; a notebook shows it.
    """
    from slayr_py.study.results.shown_figure import ShownFigure

    figure = ShownFigure(figsize=(7.0, 1.2 + 0.4 * len(table)), layout="constrained")
    axes = figure.add_subplot()
    rows = np.arange(len(table))[::-1]
    for name, label, colour, shift in _SERIES:
        means, low, high = (table[column].to_numpy() for column in (name, f"{name}_low", f"{name}_high"))
        axes.hlines(rows + shift, low, high, color=colour, lw=2.5, alpha=0.6)
        axes.plot(means, rows + shift, "o", color=colour, markersize=5, label=label)
    # Names are data: a dollar sign starts no formula.
    axes.set_yticks(rows, [str(name).replace("$", r"\$") for name in table.index])
    axes.set_xlim(min(0.0, axes.get_xlim()[0]), max(1.0, axes.get_xlim()[1]))
    axes.set_xlabel("Sobol index: share of the variance of the function, with 90% intervals")
    axes.legend(frameon=False, loc="lower right")
    return figure
