"""Maps of the posterior median over pairs of parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from slayr_py.errors import SlayrError
from slayr_py.space import Dimension, FloatArray
from slayr_py.study.results.report.blocks import Block, Drawing, Drawings, Notice, Paragraph, Table
from slayr_py.study.results.report.figures import drawing, figure_and_axes, levels, number, scale, short
from slayr_py.study.results.report.importances import importance_of
from slayr_py.study.results.report.palette import light
from slayr_py.study.results.report.reading import Reading, active_dimensions
from slayr_py.study.results.report.slices import Slice, grid_of, slices_of, value_text

_PARAMETERS = 4  # most important ones, all pairs of which are drawn
_POINTS = 22
_COLOURS = 12  # steps of the scale: fewer paths than a smooth one


class _Map(NamedTuple):
    """The posterior median over a grid of two parameters; NaN where the space forbids a point."""

    dimensions: tuple[Dimension, Dimension]
    positions: tuple[int, int]
    numbers: tuple[FloatArray, FloatArray]
    median: FloatArray
    """(k, l): rows for the second parameter."""

    others: list[str]
    """Parameters whose activity depends on the two."""


def maps(reading: Reading) -> Iterator[Block]:
    """Return a map for every pair of the parameters along which the median varies most."""
    found, measure = _ranked(reading)
    if len(found) < 2:
        yield Notice("A map needs two active parameters; this configuration has fewer.")
        return
    chosen = found[:_PARAMETERS]
    rest = found[_PARAMETERS:]
    yield Paragraph(
        f"The posterior median of the objective over pairs of parameters, the others as in {reading.centre.what}, "
        "which the diamond marks. Dots: finished trials, projected on the pair. All pairs of "
        f"{', '.join(one.line.dimension.name for one in chosen)}, the parameters with the largest {measure}."
    )
    reading.progress("predicting over pairs of parameters")
    pairs = list(combinations([one.line.position for one in chosen], 2))
    made = [_map(reading, *pair) for pair in pairs]
    yield Drawings([_draw(reading, one, k) for k, one in enumerate(made)])
    if others := sorted({name for one in made for name in one.others}):
        yield Notice(f"Active in parts of some maps only, and there at the default of the space: {', '.join(others)}.")
    if rest:
        names = ", ".join(one.line.dimension.name for one in rest)
        left = len(found) * (len(found) - 1) // 2 - len(pairs)
        yield Notice(f"Left out: the {left} pairs with {names}, whose {measure} is smaller.")
    count = len(reading.encoder.names) - len(active_dimensions(reading.encoder, reading.centre.encoded))
    if count:
        yield Notice(f"Parameters that are inactive in this configuration have no map: {count}.")


def _ranked(reading: Reading) -> tuple[list[Slice], str]:
    """Return the slices in the order of the importance of their parameters, and the measure of the latter."""
    found = slices_of(reading)
    try:
        total = importance_of(reading)["total"]
    except SlayrError:  # its own section has the reason
        return sorted(found, key=lambda one: -one.spread), "range of the median in the slices"
    return sorted(found, key=lambda one: -total[one.line.dimension.name]), "total Sobol index"


def _map(reading: Reading, i: int, j: int) -> _Map:
    encoder = reading.encoder
    centre = reading.centre
    grids = [grid_of(encoder.dimensions[p], float(centre.genotype[p]), _POINTS)[0] for p in (i, j)]
    x, y = np.meshgrid(*grids)
    genotypes = np.repeat(centre.genotype[None], x.size, axis=0)
    genotypes[:, i] = x.ravel()
    genotypes[:, j] = y.ravel()
    encoded, allowed = encoder.resolve(genotypes)
    # Both parameters must stay active: the value of one may switch the other off.
    drawn = allowed & encoded.active[:, i] & encoded.active[:, j]
    median = np.full(x.size, np.nan)
    if drawn.any():
        median[drawn] = reading.posterior.predict(encoded[np.flatnonzero(drawn)]).quantile(0.5)
    changing = np.flatnonzero((encoded.active[drawn] != centre.encoded.active[0]).any(axis=0))
    first = encoder.dimensions[i]
    second = encoder.dimensions[j]
    numbers = (first.numbers(grids[0]), second.numbers(grids[1]))
    others = [encoder.names[c] for c in changing]
    return _Map((first, second), (i, j), numbers, median.reshape(x.shape), others)


def _draw(reading: Reading, one: _Map, k: int) -> Drawing:
    names = [d.name for d in one.dimensions]
    places = [_places(d, n) for d, n in zip(one.dimensions, one.numbers, strict=True)]
    known = one.median[np.isfinite(one.median)]
    title = f"{names[0]} and {names[1]}"
    text = f"Posterior median over {title}"
    if len(known):
        best = np.nanargmax(one.median) if reading.maximize else np.nanargmin(one.median)
        row, column = np.unravel_index(best, one.median.shape)
        values = [d.values(n[[p]])[0] for d, n, p in zip(one.dimensions, one.numbers, (column, row), strict=True)]
        text += f": from {known.min():.4g} to {known.max():.4g}, best at {names[0]} = {value_text(values[0])}"
        text += f", {names[1]} = {value_text(values[1])}"
    text += (
        "." if len(known) == one.median.size else f"; {one.median.size - len(known)} points do not exist in the space."
    )

    def draw() -> Figure:
        figure, axes = figure_and_axes(4.0, 3.2)
        if len(known):
            _fill(figure, axes, one, places)
        _overlay(reading, axes, one)
        return figure

    return drawing(f"map-{k}", title, text, draw, _table(one, k))


def _fill(figure: Figure, axes: Any, one: _Map, places: Sequence[FloatArray]) -> None:
    low = float(np.nanmin(one.median))
    high = float(np.nanmax(one.median))
    steps = np.linspace(low, high, _COLOURS + 1) if high > low else np.array([low - 0.5, low + 0.5])
    if all(d.is_real for d in one.dimensions):
        filled = axes.contourf(*places, one.median, levels=steps, cmap="viridis", extend="neither")
        axes.contour(*places, one.median, levels=steps, colors="#fffffe", linewidths=0.4, alpha=0.5)
    else:
        edges = [_edges(d, p) for d, p in zip(one.dimensions, places, strict=True)]
        filled = axes.pcolormesh(*edges, one.median, cmap="viridis", vmin=low, vmax=high, rasterized=True)
    bar = figure.colorbar(filled, ax=axes, pad=0.02, aspect=26)
    ticks = np.linspace(low, high, 5) if high > low else np.array([low])
    bar.set_ticks(ticks.tolist(), labels=[number(float(f"{tick:.3g}")) for tick in ticks])
    bar.outline.set_visible(False)


def _overlay(reading: Reading, axes: Any, one: _Map) -> None:
    """Draw trials and the centre, and label both axes."""
    train = reading.posterior.train
    centre = reading.centre
    on = train.active[:, list(one.positions)].all(axis=1)
    style = {"markeredgecolor": "#1b212a", "markeredgewidth": 0.7, "ls": "none", "clip_on": False}
    coordinates = [_numbers(d, train.unit_values[on, p]) for d, p in zip(one.dimensions, one.positions, strict=True)]
    axes.plot(*coordinates, "o", color="#fffffe", ms=3.4, **style)
    coordinates = [_numbers(d, centre.genotype[[p]]) for d, p in zip(one.dimensions, one.positions, strict=True)]
    axes.plot(*coordinates, "D", color=light("best"), ms=7, **style)
    on_cells = not all(d.is_real for d in one.dimensions)
    for axis, d, count in zip((axes.xaxis, axes.yaxis), one.dimensions, one.median.shape[::-1], strict=True):
        if d.is_real:
            margin = 0.5 if on_cells and _is_counted(d, count) else 0.0
            getattr(axes, f"set_{axis.axis_name}lim")(d.lower - margin, d.upper + margin)
            scale(axis, d.log, d.kind == "integer")
        else:
            levels(axis, list(d.levels))
        axis.set_label_text(short(d.name))
    axes.grid(False)


def _is_counted(d: Dimension, count: int) -> bool:
    """Whether the places of a parameter are all of its integers, one after another."""
    return d.kind == "integer" and not d.log and count == d.upper - d.lower + 1


def _numbers(d: Dimension, unit_values: FloatArray) -> FloatArray:
    return d.numbers(np.asarray(unit_values))


def _places(d: Dimension, numbers: FloatArray) -> FloatArray:
    return numbers if d.is_real else np.arange(len(numbers), dtype=np.float64)


def _edges(d: Dimension, places: FloatArray) -> FloatArray:
    """Return the bounds of the cells around the places."""
    if not d.is_real:
        return np.arange(len(places) + 1, dtype=np.float64) - 0.5
    if _is_counted(d, len(places)):
        return np.asarray(np.append(places, places[-1] + 1) - 0.5, dtype=np.float64)
    values = np.log(places) if d.log else places
    middle = (values[1:] + values[:-1]) / 2
    edges = np.concatenate([values[:1], middle, values[-1:]])
    return np.asarray(np.exp(edges) if d.log else edges, dtype=np.float64)


def _table(one: _Map, k: int) -> Table:
    """Return the medians on at most six values of each parameter."""
    columns, rows = (np.unique(np.linspace(0, len(n) - 1, min(6, len(n))).round().astype(int)) for n in one.numbers)
    first, second = one.dimensions
    values: dict[str, Any] = {f"{second.name} \\ {first.name}": []}
    values[next(iter(values))] = [value_text(second.values(one.numbers[1][[r]])[0]) for r in rows]
    for c in columns:
        values[value_text(first.values(one.numbers[0][[c]])[0])] = one.median[rows, c]
    return Table.of(f"map-{k}-table", "Posterior medians", values)
