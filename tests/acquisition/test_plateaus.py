from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace

from slayr_py.acquisition.plateaus import neighbourhoods, plateaus, repetitions
from slayr_py.space import Encoder

ENCODER = Encoder(ConfigurationSpace({"x": (0.0, 10.0), "y": (0.0, 1.0), "level": ["a", "b"]}))


def encoded(*points):
    return ENCODER.encode([{"x": x, "y": y, "level": level} for x, y, level in points])


def test_repetitions_are_counted_from_the_last_value_that_was_new():
    assert repetitions(np.array([3.0, 1.0, 2.0])) == 0
    assert repetitions(np.array([3.0, 1.0, 3.0, 1.0])) == 2
    assert repetitions(np.array([3.0, 3.0, 1.0, 3.0])) == 1


def test_neighbourhoods_reach_to_the_nearest_equal_value_of_the_same_level():
    train = encoded((1, 0.5, "a"), (3, 0.6, "a"), (9, 0.5, "a"), (3.5, 0.5, "b"), (8, 0.5, "a"))
    found = neighbourhoods(train, np.array([2.0, 2.0, 2.0, 2.0, 7.0]))
    assert found is not None
    np.testing.assert_allclose(found.radius, [0.2, 0.2, 0.6])
    inside = found.contains(
        encoded((2.9, 0.7, "a"), (2.9, 0.9, "a"), (3.5, 0.5, "b"), (5.1, 0.5, "a"), (5.1, 0.5, "b"))
    )
    assert inside.tolist() == [True, False, False, True, False]


def test_two_repeated_values_are_avoided_and_further_ones_widely_while_something_is_left():
    line = np.linspace(0.05, 9.95, 100)
    candidates = encoded(*((x, 0.5, "a") for x in line))
    points = encoded((2.0, 0.5, "a"), (8.0, 0.5, "a"), (3.0, 0.5, "a"), (2.4, 0.5, "a"), (2.6, 0.5, "a"))
    values = np.array([1.0, 5.0, 1.0, 1.0, 1.0])
    assert plateaus(points[:3], values[:3], candidates) is None
    _, beyond = plateaus(points[:4], values[:4], candidates)
    assert line[~beyond] == pytest.approx(line[(line > 1.6) & (line < 3.6)])
    _, wider = plateaus(points, values, candidates)
    assert line[~wider] == pytest.approx(line[(line > 1.2) & (line < 3.8)])
    close = encoded((2.0, 0.5, "a"), (2.1, 0.5, "a"))
    assert plateaus(points, values, close) is None


def test_smooth_values_have_no_plateaus():
    train = encoded(*((x, 0.5, "a") for x in range(6)))
    assert plateaus(train, np.array([3.0, 1.0, 1.0, 2.0, 4.0, 5.0]), train) is None
    assert plateaus(train[:1], np.ones(1), train) is None
