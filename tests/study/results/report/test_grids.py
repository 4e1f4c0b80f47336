from __future__ import annotations

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace, Float, ForbiddenGreaterThanRelation

from slayr_py.space import Encoder
from slayr_py.study.results.report.figures import page_figure
from slayr_py.study.results.report.grids import grid_through, line_notes
from slayr_py.study.results.report.reading import Centre, with_defaults


def centre_of(space, config):
    encoder = Encoder(space)
    encoded = encoder.encode([config])
    return encoder, Centre(encoded, with_defaults(encoder, encoded), "the best configuration (trial 0)")


def test_axes_of_many_levels_are_labelled_with_those_that_are_drawn():
    encoder, centre = centre_of(ConfigurationSpace({"k": [f"k{i}" for i in range(90)]}), {"k": "k7"})
    line = grid_through(encoder, centre, [0], 61)
    (coordinate,) = line.coordinates
    assert coordinate.texts[line.nearest] == "k7" and len(coordinate.texts) <= 41
    assert coordinate.places.tolist() == list(range(len(coordinate.texts)))
    _, axes = page_figure()
    coordinate.frame(axes.xaxis, 0.5)
    assert [label.get_text() for label in axes.get_xticklabels()] == coordinate.texts
    assert "of 90 levels are drawn" in next(line_notes([line])).text


def test_grids_leave_out_forbidden_points():
    space = ConfigurationSpace()
    a = Float("a", (0.0, 1.0), default=0.2)
    b = Float("b", (0.0, 1.0), default=0.5)
    space.add(a, b, Categorical("k", ["x", "y"]))
    space.add(ForbiddenGreaterThanRelation(a, b))
    encoder, centre = centre_of(space, {"a": 0.2, "b": 0.5, "k": "x"})
    line = grid_through(encoder, centre, [encoder.names.index("a")], 11)
    assert line.coordinates[0].unit_values.max() == 0.5 and len(line.encoded) == line.exists.sum() == 6
    assert "5 of 11 points are left out" in next(line_notes([line])).text
    both = grid_through(encoder, centre, [encoder.names.index("a"), encoder.names.index("b")], 11)
    x, y = np.meshgrid(*(coordinate.unit_values for coordinate in both.coordinates))
    assert np.array_equal(both.exists.reshape(x.shape), x <= y) and both.changing == []
