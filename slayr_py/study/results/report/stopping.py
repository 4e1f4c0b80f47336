"""Estimates of the stopping rule of the study after each trial."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from slayr_py.study.results.report.blocks import Block, Drawing, Drawings, Notice, Paragraph, Table
from slayr_py.study.results.report.figures import drawing, page_figure, scale
from slayr_py.study.results.report.palette import light
from slayr_py.study.results.report.reading import Reading
from slayr_py.study.results.tables import last_regret, last_regret_about, regret_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NUMBERS = ["number", "observations", "epsilon", "target", "probability", "mean", "upper"]


def stopping(reading: Reading) -> Iterator[Block]:
    """Return figures of the posterior of the regret over the trials."""
    deciding = last_regret(reading.study)
    if deciding is None:
        yield Notice("The study has no stopping rule, or has not estimated its regret yet: see sl.Regret.")
        return
    table = regret_table(reading.study)
    table = table.assign(**{name: pd.to_numeric(table[name], errors="coerce") for name in _NUMBERS})
    last = pd.to_numeric(deciding[_NUMBERS], errors="coerce")
    about = last_regret_about(reading.study)
    what = "the hypervolume still to be gained, the regret," if reading.has_several else "the regret of the best trial"
    yield Paragraph(
        f"The rule stops the study when {what} is below {last['epsilon']:g} with probability "
        f"{last['target']:g}. After {last['observations']:.0f} observations the probability is "
        f"{last['probability']:.3f}; the mean regret is {last['mean']:.3g}, and with probability {last['target']:g} it "
        f"is below {last['upper']:.3g}." + (f" The estimate holds{about}." if about else "")
    )
    if deciding["stop"] is True or deciding["stop"] is np.True_:
        yield Notice("The rule holds: the study stopped, or may stop, here.")
    numbers = Table.of("regret-table", "Estimates of the regret", {name: table[name] for name in _NUMBERS})
    yield Drawings([_probability(table, numbers), _regret(table)])


def _probability(table: pd.DataFrame, numbers: Table) -> Drawing:
    last = table.iloc[-1]

    def draw() -> Figure:
        figure, axes = _over_trials("P(regret < epsilon)")
        axes.plot(table["number"], table["probability"], "o-", color=light("model"), ms=4, label="probability")
        axes.step(table["number"], table["target"], where="mid", color=light("best"), ls="--", label="wanted")
        axes.set_ylim(-0.03, 1.03)
        axes.legend(loc="best")
        return figure

    text = f"Probability that the regret is below epsilon after each trial: {last['probability']:.3f} at the end, "
    text += f"{last['target']:g} is wanted."
    return drawing("regret-probability", "Probability that the regret is small", text, draw, numbers)


def _regret(table: pd.DataFrame) -> Drawing:
    last = table.iloc[-1]
    values = table[["mean", "upper", "epsilon"]].to_numpy(dtype=np.float64)
    positive = values[np.isfinite(values) & (values > 0)]
    log = len(positive) > 0 and positive.max() > 30 * positive.min()

    def draw() -> Figure:
        figure, axes = _over_trials("regret")
        label = f"{last['target']:.0%} bound"
        axes.plot(table["number"], table["upper"], "-", color=light("model"), lw=1.2, label=label)
        axes.plot(table["number"], table["mean"], "o-", color=light("model"), ms=4, label="mean")
        axes.step(table["number"], table["epsilon"], where="mid", color=light("best"), ls="--", label="epsilon")
        if log:
            axes.set_ylim(positive.min() / 1.5, positive.max() * 1.5)
        scale(axes.yaxis, log)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, columnspacing=1)  # above the lines
        return figure

    text = f"Posterior of the regret after each trial: mean {last['mean']:.3g} and upper bound {last['upper']:.3g} at "
    return drawing("regret-size", "Regret", f"{text}the end; epsilon is {last['epsilon']:g}.", draw)


def _over_trials(quantity: str) -> tuple[Figure, Any]:
    """Return an empty figure of a quantity over the trials."""
    figure, axes = page_figure()
    axes.set_ylabel(quantity)
    axes.set_xlabel("trial")
    scale(axes.xaxis, log=False, integer=True)
    return figure, axes
