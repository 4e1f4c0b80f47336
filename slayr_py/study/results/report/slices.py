"""The model along each parameter, through the best configuration, and the probability of feasibility there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from slayr_py.acquisition import Feasibility
from slayr_py.inference import Posterior
from slayr_py.space import Dimension, Encoded, Encoder, FloatArray
from slayr_py.study.results.report.blocks import Block, Drawing, Drawings, Notice, Paragraph, Table
from slayr_py.study.results.report.figures import drawing, figure_and_axes, levels, scale, short
from slayr_py.study.results.report.palette import light
from slayr_py.study.results.report.reading import Centre, Reading, active_dimensions

_POINTS = 61
_MOST_LEVELS = 40
_TABLE_ROWS = 13
_PROBABILITIES = (0.05, 0.25, 0.5, 0.75, 0.95)


class Line(NamedTuple):
    """Configurations that differ from the centre in one parameter, and in what depends on it."""

    position: int
    """Position of the parameter."""

    dimension: Dimension
    encoded: Encoded
    """k configurations."""

    numbers: FloatArray
    """(k,): values of the parameter in the user's units, or indices of its levels."""

    notes: list[str]
    """What was left out or changes along the line."""

    @property
    def values(self) -> list[Any]:
        """The user's values of the parameter."""
        return self.dimension.values(self.numbers)

    @property
    def is_drawn_as_points(self) -> bool:
        """Whether the values are levels, or a few integers."""
        return not self.dimension.is_real or (self.dimension.kind == "integer" and len(self.numbers) <= 12)


class Slice(NamedTuple):
    """The posterior along a line."""

    line: Line
    quantiles: FloatArray
    """(5, k): of the latent function, at probabilities 5%, 25%, 50%, 75%, 95%."""

    @property
    def spread(self) -> float:
        """Range of the median along the line."""
        return float(np.ptp(self.quantiles[2]))


def lines(encoder: Encoder, centre: Centre) -> list[Line]:
    """Return a line through the centre for every active parameter."""
    return [_line(encoder, centre, int(j)) for j in active_dimensions(encoder, centre.encoded)]


def _line(encoder: Encoder, centre: Centre, j: int) -> Line:
    dimension = encoder.dimensions[j]
    notes = []
    grid, note = grid_of(dimension, float(centre.genotype[j]), _POINTS)
    notes += [note] if note else []
    genotypes = np.repeat(centre.genotype[None], len(grid), axis=0)
    genotypes[:, j] = grid
    encoded, allowed = encoder.resolve(genotypes)
    if not allowed.all():
        notes.append(f"{(~allowed).sum()} of {len(grid)} points are left out: they are forbidden by the space")
    encoded = encoded[np.flatnonzero(allowed)]
    changes = np.flatnonzero((encoded.active != centre.encoded.active[0]).any(axis=0))
    if len(changes):
        names = ", ".join(encoder.names[c] for c in changes)
        notes.append(f"{names} is active at some values only, and has the default of the space there")
    return Line(j, dimension, encoded, dimension.numbers(encoded.unit_values[:, j]), notes)


def grid_of(dimension: Dimension, centre: float, points: int) -> tuple[FloatArray, str]:
    """Return unit values of a parameter over its range, the centre among them, and a note on what is left out."""
    if dimension.levels:
        count = len(dimension.levels)
        if count <= _MOST_LEVELS:
            return np.arange(count, dtype=np.float64), ""
        kept = np.union1d(np.linspace(0, count - 1, _MOST_LEVELS - 1).round(), [centre])
        return kept, f"{len(kept)} of {count} levels are drawn, evenly spaced, and that of the centre"
    grid = np.union1d(dimension.snap(np.linspace(0.0, 1.0, points)), [centre])
    return grid, ""


def slices_of(reading: Reading) -> list[Slice]:
    """Predict along every line through the centre, once."""
    return reading.once("slices", lambda: _predicted(reading))


def _predicted(reading: Reading) -> list[Slice]:
    posterior = reading.posterior
    reading.progress("predicting along the parameters")
    return [
        Slice(line, posterior.predict(line.encoded).quantile(_PROBABILITIES))
        for line in lines(reading.encoder, reading.centre)
        if len(line.numbers)
    ]


def slices(reading: Reading) -> Iterator[Block]:
    """Return a figure for every active parameter."""
    found = slices_of(reading)
    centre = reading.centre
    encoder = reading.encoder
    yield Paragraph(
        f"The latent function, without the noise of observations, through {centre.what}: one parameter varies, the "
        "others stay. Median, and bands of 50% and 90% of the posterior. The dashed line is the value of the "
        "configuration; ticks at the bottom are the values of all finished trials. All figures have one vertical scale."
    )
    low, high, clipped = _limits(found)
    drawings = [_draw_slice(reading, one, (low, high), k) for k, one in enumerate(found)]
    yield Drawings(drawings)
    if clipped:
        yield Notice("The 90% bands leave the figures at some values; the tables of numbers have them whole.")
    inactive = [name for name, on in zip(encoder.names, centre.encoded.active[0], strict=True) if not on]
    if inactive:
        yield Notice(f"Inactive in this configuration, and not drawn: {', '.join(inactive)}.")
    yield from line_notes([one.line for one in found])


def line_notes(found: Sequence[Line]) -> Iterator[Block]:
    """Return a notice for every note on a line."""
    for line in found:
        for note in line.notes:
            yield Notice(f"Along {short(line.dimension.name, 60)}, {note}.")


def _limits(found: Sequence[Slice]) -> tuple[float, float, bool]:
    """Return one range for all slices, and whether some 90% bands exceed it."""
    inner = np.concatenate([one.quantiles[1:4].ravel() for one in found])
    outer = np.concatenate([one.quantiles.ravel() for one in found])
    span = float(np.ptp(inner)) or 1.0
    low = max(float(outer.min()), float(inner.min()) - 0.4 * span)
    high = min(float(outer.max()), float(inner.max()) + 0.4 * span)
    margin = 0.05 * (high - low) or 0.5
    return low - margin, high + margin, bool(outer.min() < low or outer.max() > high)


def _draw_slice(reading: Reading, one: Slice, limits: tuple[float, float], k: int) -> Drawing:
    line = one.line
    q = one.quantiles
    name = line.dimension.name
    at = int(np.argmin(np.abs(line.encoded.unit_values[:, line.position] - reading.centre.genotype[line.position])))
    best = int(np.argmax(q[2]) if reading.maximize else np.argmin(q[2]))
    here = value_text(line.values[at])
    there = value_text(line.values[best])
    text = (
        f"Posterior of the objective along {name}: median {q[2, at]:.4g} at {here}, the value of the configuration; "
        f"the best median {q[2, best]:.4g} at {there}; it varies by {one.spread:.3g}."
    )
    columns: dict[str, Any] = {name: [value_text(line.values[i]) for i in _rows(line)]}
    columns |= {f"{p:.0%}": q[j][_rows(line)] for j, p in enumerate(_PROBABILITIES)}

    def draw() -> Figure:
        figure, axes = figure_and_axes()
        draw_bands(axes, line, q)
        axes.set_ylim(*limits)
        _frame(reading, axes, line, at)
        axes.set_ylabel("objective")
        return figure

    table = Table.of(f"slice-{k}-table", f"Quantiles along {name}", columns)
    return drawing(f"slice-{k}", name, text, draw, table)


def draw_bands(axes: Any, line: Line, q: FloatArray) -> None:
    """Draw the median with bands, or points with intervals for levels."""
    blue = light("model")
    x = _place(line)
    if line.is_drawn_as_points:
        axes.vlines(x, q[0], q[4], color=blue, lw=1.4)
        axes.vlines(x, q[1], q[3], color=blue, lw=4.5)
        axes.plot(x, q[2], "o", color=light("paper"), markeredgecolor=blue, markeredgewidth=1.6, markersize=6.5)
        return
    axes.fill_between(x, q[0], q[4], color=blue, alpha=0.16, lw=0)
    axes.fill_between(x, q[1], q[3], color=blue, alpha=0.3, lw=0)
    axes.plot(x, q[2], color=blue, lw=1.8)


def _place(line: Line) -> FloatArray:
    """Return the places of the values on the axis: their numbers, or 0, 1, 2 for levels."""
    return np.arange(len(line.numbers), dtype=np.float64) if line.dimension.levels else line.numbers


def _frame(reading: Reading, axes: Any, line: Line, at: int) -> None:
    """Mark the centre and the values of the trials, and label the axis of the parameter."""
    x = _place(line)
    dimension = line.dimension
    axes.axvline(x[at], color=light("best"), lw=1.2, ls=(0, (4, 3)))
    train = reading.posterior.train
    tried = dimension.numbers(train.unit_values[train.active[:, line.position], line.position])
    if not dimension.levels:
        axes.plot(tried, np.zeros(len(tried)), "|", color=light("muted"), transform=axes.get_xaxis_transform(), ms=7)
        margin = 0.5 if line.is_drawn_as_points and not dimension.log else 0.0
        axes.set_xlim(dimension.lower - margin, dimension.upper + margin)
        scale(axes.xaxis, dimension.log, dimension.kind == "integer")
    else:
        levels(axes.xaxis, line.values)
        axes.set_xlim(-0.6, len(x) - 0.4)
    axes.set_xlabel(short(dimension.name))


def _rows(line: Line) -> list[int]:
    """Return the positions of the rows of a table: all levels, or at most 13 values."""
    count = len(line.numbers)
    if line.dimension.levels or count <= _TABLE_ROWS:
        return list(range(count))
    return [int(i) for i in np.linspace(0, count - 1, _TABLE_ROWS).round()]


def value_text(value: Any) -> str:
    """Return a value of a parameter with at most four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def probabilities(conditions: dict[str, Posterior], encoded: Encoded) -> dict[str, FloatArray]:
    """Return the probability (k,) of every condition at k configurations."""
    found = {}
    for name, posterior in conditions.items():
        model = Feasibility.of(posterior, posterior.train[:0], posterior.n_draws)
        found[name] = np.exp(model.log_probability(encoded))
    return found


def probability_slices(reading: Reading, conditions: dict[str, Posterior]) -> list[Drawing]:
    """Return a figure of the probabilities of all conditions for every active parameter."""
    return [
        _draw_probabilities(reading, line, probabilities(conditions, line.encoded), k)
        for k, line in enumerate(lines(reading.encoder, reading.centre))
        if len(line.numbers)
    ]


_STYLES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 2, 1, 2)))


def _draw_probabilities(reading: Reading, line: Line, found: dict[str, FloatArray], k: int) -> Drawing:
    name = line.dimension.name
    joint = np.prod(list(found.values()), axis=0)
    at = int(np.argmin(np.abs(line.encoded.unit_values[:, line.position] - reading.centre.genotype[line.position])))
    columns: dict[str, Any] = {name: [value_text(line.values[i]) for i in _rows(line)]}
    columns |= {key: value[_rows(line)] for key, value in (*found.items(), ("all", joint))}
    text = f"Probability that all conditions hold along {name}: {joint[at]:.2f} at the configuration, between "
    text += f"{joint.min():.2f} and {joint.max():.2f} elsewhere."

    def draw() -> Figure:
        figure, axes = figure_and_axes(height=2.6)
        colours = [light(colour) for colour in ("model", "other", "good", "muted")]
        mark = "o" if line.is_drawn_as_points else ""
        for i, (key, values) in enumerate(found.items()):
            style = "" if line.dimension.levels else _STYLES[i % len(_STYLES)]
            axes.plot(_place(line), values, ls=style, marker=mark, color=colours[i % 4], label=short(key), ms=5)
        if len(found) > 1:
            style = "" if line.dimension.levels else "-"
            axes.plot(_place(line), joint, ls=style, marker=mark and "D", color=light("ink"), lw=2, label="all", ms=5)
        axes.set_ylim(-0.03, 1.03)
        _frame(reading, axes, line, at)
        axes.set_ylabel("probability")
        axes.legend(loc="best")
        return figure

    table = Table.of(f"feasible-{k}-table", f"Probabilities along {name}", columns, ".3f")
    return drawing(f"feasible-{k}", name, text, draw, table)
