"""Maps of the posterior median over pairs of parameters."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from slayr_py.errors import SlayrError
from slayr_py.space import FloatArray
from slayr_py.study.results.report.blocks import Block, Drawing, Drawings, Notice, Paragraph, Table
from slayr_py.study.results.report.figures import drawing, number, page_figure
from slayr_py.study.results.report.grids import Coordinate, Grid, grid_through
from slayr_py.study.results.report.importances import importance_of
from slayr_py.study.results.report.palette import light
from slayr_py.study.results.report.reading import Reading
from slayr_py.study.results.report.slices import Slice, model_drawn, slices_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PARAMETERS = 4  # most important ones, all pairs of which are drawn
_POINTS = 22  # per axis: 484 predictions of each map
_COLOURS = 12  # steps of the scale: fewer paths than a smooth one


class _Map(NamedTuple):
    """The posterior median over a grid of two parameters."""

    grid: Grid
    median: FloatArray
    """(l, k): rows for the second parameter; NaN where the space forbids a point."""

    @property
    def has_cells(self) -> bool:
        """Whether it is drawn as cells, since a parameter has levels."""
        return not all(axis.dimension.is_real for axis in self.grid.coordinates)


def maps(reading: Reading) -> Iterator[Block]:
    """Return a map for every pair of the parameters along which the median varies most."""
    ranked, measure = _rank(reading)
    if len(ranked) < 2:
        yield Notice("A map needs two active parameters; this configuration has fewer.")
        return
    names = [part.line.coordinates[0].dimension.name for part in ranked]
    yield Paragraph(
        f"The posterior median of the objective over pairs of parameters, the others as in {reading.centre.what}, "
        f"which the diamond marks.{model_drawn(reading)} Dots: trials of the fit, projected on the pair. All pairs of "
        f"{', '.join(names[:_PARAMETERS])}, the parameters with the largest {measure}."
    )
    reading.progress("predicting over pairs of parameters")
    pairs = combinations([part.line.coordinates[0].position for part in ranked[:_PARAMETERS]], 2)
    predicted = [_predict(reading, pair) for pair in pairs]
    yield Drawings([_draw(reading, median, k) for k, median in enumerate(predicted)])
    if others := sorted({name for median in predicted for name in median.grid.changing}):
        yield Notice(f"Active in parts of some maps only, and there at the default of the space: {', '.join(others)}.")
    if rest := names[_PARAMETERS:]:
        left = len(names) * (len(names) - 1) // 2 - len(predicted)
        yield Notice(f"Left out: the {left} pairs with {', '.join(rest)}, whose {measure} is smaller.")
    if count := int((~reading.centre.encoded.active[0]).sum()):
        yield Notice(f"Parameters that are inactive in this configuration have no map: {count}.")


def _rank(reading: Reading) -> tuple[list[Slice], str]:
    """Return the slices in the order of the importance of their parameters, and the measure of importance."""
    along = slices_of(reading)
    try:
        total = importance_of(reading)["total"]
    except SlayrError:  # its own section has the reason
        return sorted(along, key=lambda part: -part.spread), "range of the median in the slices"
    return sorted(along, key=lambda part: -total[part.line.coordinates[0].dimension.name]), "total Sobol index"


def _predict(reading: Reading, positions: tuple[int, int]) -> _Map:
    grid = grid_through(reading.encoder, reading.centre, positions, _POINTS)
    median = np.full(len(grid.exists), np.nan)
    if grid.exists.any():
        median[grid.exists] = reading.unwarped.predict(grid.encoded).quantile(0.5)
    x, y = grid.coordinates
    return _Map(grid, median.reshape(len(y.unit_values), len(x.unit_values)))


def _draw(reading: Reading, predicted: _Map, k: int) -> Drawing:
    x, y = predicted.grid.coordinates
    names = [x.dimension.name, y.dimension.name]
    median = predicted.median
    known = median[np.isfinite(median)]
    title = " and ".join(names)
    text = f"Posterior median over {title}"
    if len(known):
        best = np.nanargmax(median) if reading.maximize else np.nanargmin(median)
        row, column = np.unravel_index(best, median.shape)
        text += f": from {known.min():.4g} to {known.max():.4g}, best at {names[0]} = {x.texts[column]}"
        text += f", {names[1]} = {y.texts[row]}"
    missing = median.size - len(known)
    text += f"; {missing} points do not exist in the space." if missing else "."

    def draw() -> Figure:
        figure, axes = page_figure(4.0, 3.2)
        if len(known):
            _fill(figure, axes, predicted)
        _overlay(reading, axes, predicted)
        return figure

    return drawing(f"map-{k}", title, text, draw, _table(predicted, k))


def _fill(figure: Figure, axes: Any, predicted: _Map) -> None:
    median = predicted.median
    low = float(np.nanmin(median))
    high = float(np.nanmax(median))
    if predicted.has_cells:
        edges = [_edges(axis) for axis in predicted.grid.coordinates]
        filled = axes.pcolormesh(*edges, median, cmap="viridis", vmin=low, vmax=high, rasterized=True)
    else:
        steps = np.linspace(low, high, _COLOURS + 1) if high > low else np.array([low - 0.5, low + 0.5])
        places = [axis.places for axis in predicted.grid.coordinates]
        filled = axes.contourf(*places, median, levels=steps, cmap="viridis", extend="neither")
        axes.contour(*places, median, levels=steps, colors="#fffffe", linewidths=0.4, alpha=0.5)
    bar = figure.colorbar(filled, ax=axes, pad=0.02, aspect=26)
    ticks = np.linspace(low, high, 5) if high > low else np.array([low])
    bar.set_ticks(ticks.tolist(), labels=[number(float(f"{tick:.3g}")) for tick in ticks])
    bar.outline.set_visible(False)


def _overlay(reading: Reading, axes: Any, predicted: _Map) -> None:
    """Draw trials and the centre, and label both axes."""
    train = reading.posterior.train
    on = train.active[:, [axis.position for axis in predicted.grid.coordinates]].all(axis=1)
    style = {"markeredgecolor": "#1b212a", "markeredgewidth": 0.7, "ls": "none", "clip_on": False}
    trials = [axis.place(train.unit_values[on, axis.position]) for axis in predicted.grid.coordinates]
    axes.plot(*trials, "o", color="#fffffe", ms=3.4, **style)
    centre = [axis.place(reading.centre.genotype[[axis.position]]) for axis in predicted.grid.coordinates]
    axes.plot(*centre, "D", color=light("best"), ms=7, **style)
    for axis, coordinate in zip((axes.xaxis, axes.yaxis), predicted.grid.coordinates, strict=True):
        coordinate.frame(axis, 0.5 if predicted.has_cells and _has_unit_steps(coordinate) else 0.0)
    axes.grid(False)


def _has_unit_steps(axis: Coordinate) -> bool:
    """Whether the places of a parameter are levels, or all of its integers, one after another."""
    d = axis.dimension
    all_integers = d.kind == "integer" and d.is_linear and len(axis.unit_values) == d.upper - d.lower + 1
    return all_integers or not d.is_real


def _edges(axis: Coordinate) -> FloatArray:
    """Return the bounds of the cells around the places."""
    places = axis.places
    if _has_unit_steps(axis):
        return np.asarray(np.append(places, places[-1] + 1) - 0.5, dtype=np.float64)
    values = np.log(places) if axis.dimension.log else places
    middle = (values[1:] + values[:-1]) / 2
    edges = np.concatenate([values[:1], middle, values[-1:]])
    return np.asarray(np.exp(edges) if axis.dimension.log else edges, dtype=np.float64)


def _table(predicted: _Map, k: int) -> Table:
    """Return the medians on at most six values of each parameter."""
    x, y = predicted.grid.coordinates
    columns, rows = (
        np.unique(np.linspace(0, n - 1, min(6, n)).round().astype(int)) for n in predicted.median.shape[::-1]
    )
    values: dict[str, Any] = {f"{y.dimension.name} \\ {x.dimension.name}": [y.texts[row] for row in rows]}
    values |= {x.texts[column]: predicted.median[rows, column] for column in columns}
    return Table.of(f"map-{k}-table", "Posterior medians", values)
