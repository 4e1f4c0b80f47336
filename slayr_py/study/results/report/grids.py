"""Configurations that differ from the centre of a report in one or two parameters, and the axes of their figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slayr_py.space import Dimension, Encoded, Encoder, FloatArray
from slayr_py.study.results.report.blocks import Block, Notice
from slayr_py.study.results.report.figures import levels, scale, short
from slayr_py.study.results.report.reading import Centre

_MOST_LEVELS = 40  # drawn; more cannot be read in a figure
_FEW_INTEGERS = 12  # so few values are drawn as levels instead of a line


class Coordinate(NamedTuple):
    """Values of a parameter along an axis of a figure."""

    position: int
    """Position of the parameter."""

    dimension: Dimension
    unit_values: FloatArray
    """(k,)"""

    @property
    def texts(self) -> list[str]:
        """The values with at most four digits."""
        values = self.dimension.values(self.dimension.numbers(self.unit_values))
        return [f"{value:.4g}" if isinstance(value, float) else str(value) for value in values]

    @property
    def is_discrete(self) -> bool:
        """Whether the values are levels, or a few integers."""
        few = self.dimension.kind == "integer" and len(self.unit_values) <= _FEW_INTEGERS
        return few or not self.dimension.is_real

    @property
    def places(self) -> FloatArray:
        """The values on the axis: numbers, or 0, 1, 2 for levels."""
        return self.place(self.unit_values)

    def place(self, unit_values: FloatArray) -> FloatArray:
        """Return unit values on the axis; levels that are not drawn lie between those that are."""
        if self.dimension.is_real:
            return self.dimension.numbers(unit_values)
        return np.interp(unit_values, self.unit_values, np.arange(len(self.unit_values)))

    def frame(self, axis: Any, margin: float) -> None:
        """Set the limits of an axis, with margins around all values, its ticks and its label."""
        d = self.dimension
        first, last = (d.lower, d.upper) if d.is_real else (0, len(self.unit_values) - 1)
        getattr(axis.axes, f"set_{axis.axis_name}lim")(first - margin, last + margin)
        if d.is_real:
            scale(axis, d.log, d.kind == "integer", d.shift)
        else:
            levels(axis, d.values(self.unit_values))
        axis.set_label_text(short(d.name))


class Grid(NamedTuple):
    """Configurations on a line or a rectangle through the centre."""

    centre: Centre
    coordinates: list[Coordinate]
    """One or two; a single one has existing values only."""

    encoded: Encoded
    """The configurations that exist, row after row; the first coordinate varies fastest."""

    exists: NDArray[np.bool_]
    """Whether the space has a configuration at each point, and the parameters are active there."""

    changing: list[str]
    """Other parameters whose activity differs from the centre at some points."""

    @property
    def nearest(self) -> int:
        """Position of the value of a line that is nearest to the centre."""
        (line,) = self.coordinates
        return int(np.argmin(np.abs(line.unit_values - self.centre.genotype[line.position])))


def grid_through(encoder: Encoder, centre: Centre, positions: Sequence[int], points: int) -> Grid:
    """Return the grid over these parameters with at most so many points along each."""
    axes = [_unit_values(encoder.dimensions[j], float(centre.genotype[j]), points) for j in positions]
    mesh = np.meshgrid(*axes)
    genotypes = np.repeat(centre.genotype[None], mesh[0].size, axis=0)
    for j, values in zip(positions, mesh, strict=True):
        genotypes[:, j] = values.ravel()
    encoded, allowed = encoder.unconstrained.resolve(genotypes)
    exists = allowed & encoded.active[:, list(positions)].all(axis=1)
    encoded = encoded[np.flatnonzero(exists)]
    if len(axes) == 1:
        axes = [encoded.unit_values[:, positions[0]]]
    changing = np.flatnonzero((encoded.active != centre.encoded.active[0]).any(axis=0))
    coordinates = [Coordinate(j, encoder.dimensions[j], values) for j, values in zip(positions, axes, strict=True)]
    return Grid(centre, coordinates, encoded, exists, [encoder.names[j] for j in changing])


def _unit_values(dimension: Dimension, centre: float, points: int) -> FloatArray:
    """Return unit values of a parameter over its range, the centre among them."""
    if not dimension.levels:
        return np.union1d(dimension.snap(np.linspace(0.0, 1.0, points)), [centre])
    count = len(dimension.levels)
    if count <= _MOST_LEVELS:
        return np.arange(count, dtype=np.float64)
    return np.union1d(np.linspace(0, count - 1, _MOST_LEVELS - 1).round(), [centre])


def line_notes(lines: Sequence[Grid]) -> Iterator[Block]:
    """Return notices of omitted points and of parameters whose activity changes along the lines."""
    for line in lines:
        dimension = line.coordinates[0].dimension
        along = f"Along {short(dimension.name, 60)}, "
        count = len(line.exists)
        if count < len(dimension.levels):
            total = len(dimension.levels)
            yield Notice(f"{along}{count} of {total} levels are drawn: evenly spaced ones and the level of the centre.")
        if missing := int((~line.exists).sum()):
            yield Notice(f"{along}{missing} of {count} points are left out because the space forbids them.")
        if line.changing:
            names = ", ".join(line.changing)
            yield Notice(f"{along}{names} is active at some values only; there it has the default of the space.")
