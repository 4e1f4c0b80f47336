from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace, Float
from testing_spaces import mixed_space

from slayr_py.errors import SpaceError
from slayr_py.space import Encoder


def test_known_unit_values():
    encoder = Encoder(mixed_space())
    config = {"lr": 1e-4 * 1000**0.25, "layers": 2, "units": 64, "act": "tanh", "size": "large", "dataset": "iris"}
    row = dict(zip(encoder.names, encoder.encode([config]).unit_values[0], strict=True))
    assert row["lr"] == pytest.approx(0.25)
    assert row["layers"] == pytest.approx(0.25)
    assert row["units"] == pytest.approx(0.5)
    assert (row["act"], row["size"]) == (1, 2)


@pytest.mark.parametrize(
    ("bounds", "log", "is_refused"),
    [
        ((0.0, 1e-7), False, False),
        ((0.0, 0.99e-7), False, True),
        ((5.0, 5.0 + 1e-9), False, True),
        ((1e-12, 1.0), True, False),
        ((1e-13, 1e-10), True, True),
    ],
)
def test_ranges_that_rounding_would_spoil_are_refused(bounds, log, is_refused):
    space = ConfigurationSpace([Float("x", bounds, log=log)])
    if not is_refused:
        assert len(np.unique(Encoder(space).encode([{"x": x} for x in np.linspace(*bounds, 9)]).unit_values)) == 9
        return
    with pytest.raises(SpaceError, match="'x' spans from .*, which is too small for ConfigSpace, .*: rescale it"):
        Encoder(space)


def test_every_level_is_equally_likely():
    encoder = Encoder(ConfigurationSpace({"a": [1, 2, 3], "n": (1, 4)}))
    u = (np.arange(12) + 0.5) / 12
    genotype = encoder.from_uniform(np.column_stack([u, u]))
    assert np.bincount(genotype[:, encoder.names.index("a")].astype(int)).tolist() == [4, 4, 4]
    assert len(np.unique(genotype[:, encoder.names.index("n")])) == 4


def test_neighbours():
    by_name = {d.name: d for d in Encoder(mixed_space()).dimensions}
    assert by_name["act"].neighbours(0).tolist() == [1, 2]
    assert by_name["size"].neighbours(1).tolist() == [0, 2]
    assert [by_name["layers"].value(c) for c in by_name["layers"].neighbours(0.0)] == [2]
    assert by_name["lr"].neighbours(0.5).size == 0


def test_values_outside_the_range_become_the_nearest_legal_ones():
    by_name = {d.name: d for d in Encoder(mixed_space()).dimensions}
    assert (by_name["act"].lower, by_name["act"].upper) == (0, 2)
    outside = np.array([-0.8, 0.6, 2.9])
    assert by_name["act"].numbers(outside).tolist() == by_name["act"].snap(outside).tolist() == [0, 1, 2]
    assert by_name["lr"].snap(outside).tolist() == [0, 0.6, 1]


def test_a_small_number_of_a_wide_range_equals_its_own_unit_value():
    (wide,) = Encoder(ConfigurationSpace({"x": (-1e8, 1e8)})).dimensions
    assert wide.equals(wide.unit_values(np.array([0.001, 0.002])), 0.001).tolist() == [True, False]
