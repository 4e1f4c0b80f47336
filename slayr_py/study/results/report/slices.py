"""The model along each parameter, through the best configuration, and the probability of feasibility there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from slayr_py.acquisition import Feasibility
from slayr_py.inference import Posterior
from slayr_py.space import FloatArray
from slayr_py.study.results.latest_fits import has_warp
from slayr_py.study.results.report.blocks import Block, Drawing, Drawings, Notice, Paragraph, Table
from slayr_py.study.results.report.figures import QUANTILES, drawing, page_figure, short
from slayr_py.study.results.report.grids import Coordinate, Grid, grid_through, line_notes
from slayr_py.study.results.report.palette import light
from slayr_py.study.results.report.reading import Reading, once

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POINTS = 61  # along a line; smooth in a figure
_TABLE_ROWS = 13  # of the numbers of a figure
# Of lines: solid, dashed, dotted, dash-dotted; they differ without colours.
_STYLES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 2, 1, 2)))


class Slice(NamedTuple):
    """The posterior along a line."""

    line: Grid
    quantiles: FloatArray
    """(5, k): of the latent function, at probabilities 5%, 25%, 50%, 75%, 95%."""

    @property
    def spread(self) -> float:
        """Range of the median along the line."""
        return float(np.ptp(self.quantiles[2]))


@once
def lines_of(reading: Reading) -> list[Grid]:
    """Return a line through the centre for every active parameter along which there are configurations."""
    active = np.flatnonzero(reading.centre.encoded.active[0])
    every = [grid_through(reading.encoder, reading.centre, [int(j)], _POINTS) for j in active]
    return [line for line in every if line.exists.any()]


@once
def slices_of(reading: Reading) -> list[Slice]:
    """Predict along every line through the centre."""
    posterior = reading.unwarped
    reading.progress("predicting along the parameters")
    return [Slice(line, posterior.predict(line.encoded).quantile(QUANTILES)) for line in lines_of(reading)]


def model_drawn(reading: Reading) -> str:
    """Say whether the model is another one than that of the suggestions."""
    return " The model is that of the study without its warp." if has_warp(reading.posterior) else ""


def slices(reading: Reading) -> Iterator[Block]:
    """Return a figure for every active parameter."""
    along = slices_of(reading)
    centre = reading.centre
    yield Paragraph(
        f"The latent function, without the noise of observations, through {centre.what}: one parameter varies, the "
        "others stay. Median, and bands of 50% and 90% of the posterior. The dashed line is the value of the "
        "configuration; ticks at the bottom are the values of all trials of the fit. All figures have one vertical "
        f"scale.{model_drawn(reading)}"
    )
    low, high, clipped = _limits(along)
    yield Drawings([_draw_slice(reading, part, (low, high), k) for k, part in enumerate(along)])
    if clipped:
        yield Notice("The 90% bands leave the figures at some values; the tables of numbers have them whole.")
    inactive = [name for name, on in zip(reading.encoder.names, centre.encoded.active[0], strict=True) if not on]
    if inactive:
        yield Notice(f"Inactive in this configuration, and not drawn: {', '.join(inactive)}.")
    yield from line_notes([part.line for part in along])


def _limits(along: Sequence[Slice]) -> tuple[float, float, bool]:
    """Return one range for all slices, and whether some 90% bands exceed it."""
    inner = np.concatenate([part.quantiles[1:4].ravel() for part in along])
    outer = np.concatenate([part.quantiles.ravel() for part in along])
    span = float(np.ptp(inner)) or 1.0
    low = max(float(outer.min()), float(inner.min()) - 0.4 * span)
    high = min(float(outer.max()), float(inner.max()) + 0.4 * span)
    margin = 0.05 * (high - low) or 0.5
    return low - margin, high + margin, bool(outer.min() < low or outer.max() > high)


def _draw_slice(reading: Reading, part: Slice, limits: tuple[float, float], k: int) -> Drawing:
    line, q = part
    (coordinate,) = line.coordinates
    name = coordinate.dimension.name
    texts = coordinate.texts
    here = line.nearest
    best = int(np.argmax(q[2]) if reading.maximize else np.argmin(q[2]))
    text = (
        f"Posterior of the objective along {name}: median {q[2, here]:.4g} at {texts[here]}, the value of the "
        f"configuration; the best median {q[2, best]:.4g} at {texts[best]}; it varies by {part.spread:.3g}."
    )
    columns = {f"{p:.0%}": row for p, row in zip(QUANTILES, q, strict=True)}
    table = _table(f"slice-{k}", f"Quantiles along {name}", coordinate, columns)

    def draw() -> Figure:
        figure, axes = page_figure()
        _draw_bands(axes, coordinate, q)
        axes.set_ylim(*limits)
        _frame(reading, axes, line, "objective")
        return figure

    return drawing(f"slice-{k}", name, text, draw, table)


def _draw_bands(axes: Any, coordinate: Coordinate, q: FloatArray) -> None:
    """Draw the median with bands, or points with intervals for levels."""
    blue = light("model")
    x = coordinate.places
    if coordinate.is_discrete:
        axes.vlines(x, q[0], q[4], color=blue, lw=1.4)
        axes.vlines(x, q[1], q[3], color=blue, lw=4.5)
        axes.plot(x, q[2], "o", color=light("paper"), markeredgecolor=blue, markeredgewidth=1.6, markersize=6.5)
        return
    axes.fill_between(x, q[0], q[4], color=blue, alpha=0.16, lw=0)
    axes.fill_between(x, q[1], q[3], color=blue, alpha=0.3, lw=0)
    axes.plot(x, q[2], color=blue, lw=1.8)


def _frame(reading: Reading, axes: Any, line: Grid, quantity: str) -> None:
    """Mark the centre and the values of the trials, and label the axes."""
    (coordinate,) = line.coordinates
    axes.axvline(coordinate.places[line.nearest], color=light("best"), lw=1.2, ls=(0, (4, 3)))
    margin = 0.6
    if coordinate.dimension.is_real:
        margin = 0.5 if coordinate.is_discrete and coordinate.dimension.is_linear else 0.0
        train = reading.posterior.train
        tried = coordinate.place(train.unit_values[train.active[:, coordinate.position], coordinate.position])
        axes.plot(tried, np.zeros(len(tried)), "|", color=light("muted"), transform=axes.get_xaxis_transform(), ms=7)
    coordinate.frame(axes.xaxis, margin)
    axes.set_ylabel(quantity)


def _table(
    key: str, caption: str, coordinate: Coordinate, columns: Mapping[str, FloatArray], form: str = ".4g"
) -> Table:
    """Return the numbers of a figure: at all levels, or at most 13 values."""
    texts = np.array(coordinate.texts)
    rows = np.arange(len(texts))
    if coordinate.dimension.is_real and len(texts) > _TABLE_ROWS:
        rows = np.linspace(0, len(texts) - 1, _TABLE_ROWS).round().astype(int)
    values = {coordinate.dimension.name: texts, **columns}
    return Table.of(f"{key}-table", caption, {name: column[rows] for name, column in values.items()}, form)


def probability_slices(reading: Reading, models: Mapping[str, Posterior]) -> list[Drawing]:
    """Return a figure of the probabilities of feasibility by all models for every active parameter."""
    terms = {name: Feasibility.of(model, model.train[:0], model.n_draws) for name, model in models.items()}
    return [_draw_probabilities(reading, line, terms, k) for k, line in enumerate(lines_of(reading))]


def _draw_probabilities(reading: Reading, line: Grid, terms: Mapping[str, Feasibility], k: int) -> Drawing:
    (coordinate,) = line.coordinates
    name = coordinate.dimension.name
    probabilities = {model: np.exp(term.log_probability(line.encoded)) for model, term in terms.items()}
    joint = np.prod(list(probabilities.values()), axis=0)
    text = (
        f"Probability of feasibility along {name}: {joint[line.nearest]:.2f} at the configuration, between "
        f"{joint.min():.2f} and {joint.max():.2f} elsewhere."
    )
    columns = {**probabilities, "all": joint}
    table = _table(f"feasible-{k}", f"Probabilities along {name}", coordinate, columns, ".3f")

    def draw() -> Figure:
        figure, axes = page_figure(height=2.6)
        colours = [light(colour) for colour in ("model", "other", "good", "muted")]
        mark = "o" if coordinate.is_discrete else ""
        is_real = coordinate.dimension.is_real
        x = coordinate.places
        for i, (key, values) in enumerate(probabilities.items()):
            style = _STYLES[i % len(_STYLES)] if is_real else ""
            axes.plot(x, values, ls=style, marker=mark, color=colours[i % 4], label=short(key), ms=5)
        if len(probabilities) > 1:
            style = "-" if is_real else ""
            axes.plot(x, joint, ls=style, marker=mark and "D", color=light("ink"), lw=2, label="all", ms=5)
        axes.set_ylim(-0.03, 1.03)
        _frame(reading, axes, line, "probability")
        axes.legend(loc="best")
        return figure

    return drawing(f"feasible-{k}", name, text, draw, table)
