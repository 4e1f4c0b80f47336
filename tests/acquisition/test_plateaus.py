"""The probability of a new value."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float

from slayr_py.acquisition.plateaus import Outcomes, Plateaus, _evidence
from slayr_py.errors import DataError
from slayr_py.space import Encoder

ENCODER = Encoder(ConfigurationSpace({"x": (0.0, 10.0), "y": (0.0, 1.0), "level": ["a", "b"]}))


def encoded(*points):
    return ENCODER.encode([{"x": x, "y": y, "level": level} for x, y, level in points])


def steps(n):
    """Return points of a function that is constant where x is in [0, 2), [2, 4), ..., and its values."""
    rng = np.random.default_rng(1)
    x, y = rng.uniform(0, 10, n), rng.uniform(0, 1, n)
    return encoded(*((a, b, "a") for a, b in zip(x, y, strict=True))), np.floor(x / 2)


def plateaus(train, rows):
    """Return the factor if all repetitions count."""
    return Plateaus.of(train, Outcomes(rows, *np.ones((2, len(rows)), dtype=bool)))


def test_distinct_values_have_no_plateaus():
    train = encoded(*((x, 0.5, "a") for x in range(6)))
    assert plateaus(train, np.array([3.0, 1.0, 0.0, 2.0, 4.0, 5.0])) is None
    assert plateaus(train[:1], np.ones(1)) is None


def test_points_of_different_levels_are_no_neighbours():
    points = encoded((1, 0.5, "a"), (1, 0.5, "b"))
    assert plateaus(points, np.ones(2)) is None
    train, values = steps(40)
    found = plateaus(train, values)
    assert found is not None
    assert found.values(encoded((5, 0.5, "b"))) == 0
    assert found.values(encoded((5, 0.5, "a"))) < -0.5


def test_inactive_parameters_separate_points():
    space = ConfigurationSpace()
    kind, depth = Categorical("kind", ["flat", "deep"]), Float("depth", (0.0, 1.0))
    space.add(kind, depth, Float("x", (0.0, 1.0)))
    space.add(EqualsCondition(depth, kind, "deep"))
    encoder = Encoder(space)
    rows = [{"kind": "deep", "depth": d, "x": 0.5} for d in (0.1, 0.9, 0.11, 0.91)]
    found = plateaus(encoder.encode(rows), np.array([1.0, 2.0, 1.0, 2.0]))
    assert found is not None
    new = encoder.encode([{"kind": "flat", "x": 0.5}, {"kind": "deep", "depth": 0.115, "x": 0.5}])
    assert found.values(new)[0] == 0 > found.values(new)[1]


def test_the_probability_of_a_new_value_grows_with_the_distance():
    """A plateau is about as wide as the values near it tell; about another one little is known."""
    rng = np.random.default_rng(2)
    wide = 2 + rng.uniform(-1, 1, 25)
    narrow = np.array([8.0, 8.3, 7.7, 8.4, 7.6])
    train = encoded(*((x, 0.5, "a") for x in (*narrow, *wide)), (5, 0.5, "b"))
    found = plateaus(train, np.concatenate([np.arange(1.0, 6.0), np.zeros(25), [6.0]]))
    assert found is not None
    near, beside, far = np.exp(found.values(encoded((2, 0.55, "a"), (8, 0.55, "a"), (2, 1.0, "a"))))
    assert near < 0.2 < beside < 1
    assert near < far < 1


def test_repetitions_by_chance_are_no_plateaus():
    rng = np.random.default_rng(3)
    train = encoded(*((10 * x, y, "a") for x, y in rng.uniform(size=(40, 2))))
    assert plateaus(train, rng.integers(12, size=40).astype(float)) is None


def test_evidence():
    """The value of half of two points is repeated beside one of them, then that of two thirds of three points."""
    before = np.array([[np.inf] * 4, [9, *[np.inf] * 3], [9, 1, np.inf, np.inf], [9, 4, 1, np.inf]])
    y = np.array([0.0, 1.0, 1.0, 1.0])
    assert _evidence(y[:, None] == y, before) == pytest.approx(0.0)
    y = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    before = np.pad(before, ((0, 1), (0, 1)), constant_values=np.inf)
    before[4, :4] = [4, 9, 1, 16]
    # 0 is repeated beside 1, and 1 beside 1: B(3, 2) = 1/12 against 1/2 * 2/3 * 1/2.
    assert _evidence(y[:, None] == y, before) == pytest.approx(np.log(1 / 12 / (1 / 2 * 2 / 3 * 1 / 2)))
    y = np.array([0.0, 1.0, 0.0, 1.0])  # never beside an equal value
    assert _evidence(y[:, None] == y, before[:4, :4]) == 0.0


def test_an_outcome_is_repeated_where_all_its_numbers_are():
    """Two objectives, or a value that is feasible at one point and not at another one."""
    train, first = steps(40)
    same = plateaus(train, np.column_stack([first, -first, np.ones(40)]))
    alone = plateaus(train, first)
    assert same is not None and alone is not None
    np.testing.assert_array_equal(np.sort(same.log_new, axis=0), np.sort(alone.log_new, axis=0))
    other = np.random.default_rng(1).normal(size=40)
    assert plateaus(train, np.column_stack([first, other])) is None
    feasible = train.unit_values[:, ENCODER.names.index("y")] > 0.5
    border = plateaus(train, np.column_stack([first, feasible]))
    assert border is not None
    assert border.log_new.mean() > alone.log_new.mean()  # the feasible half of a plateau has another outcome


def test_outcomes_of_other_observations_are_refused():
    train, values = steps(10)
    with pytest.raises(DataError, match="rows of outcomes has 9 rows; give one for each of the 10"):
        plateaus(train, values[:9])
    with pytest.raises(DataError, match=r"outcomes is array\(.*; give slayr_py.acquisition.Outcomes\(rows, leading"):
        Plateaus.of(train, values)


def test_the_posterior_is_that_of_a_direct_sum():
    train = encoded((2, 0.5, "a"), (9, 0.5, "a"), (3, 0.5, "a"), (9.5, 0.5, "a"))
    found = plateaus(train, np.array([1.0, 2.0, 1.0, 2.0]))
    assert found is not None
    share, log_width = np.meshgrid(np.linspace(0.05, 1, 20), np.linspace(np.log(1e-3), np.log(10), 50))

    def repeated(distance):
        return share * np.exp(-np.square(distance / np.exp(log_width)))

    weights = share**4 * (1 - repeated(0.7)) * repeated(0.1) * repeated(0.05)
    expected = 1 - np.sum(weights * repeated(0.15)) / np.sum(weights)
    # The exponent after two repetitions in a row is 3. Linear interpolation in log d.
    assert np.exp(found.values(encoded((0.5, 0.5, "a"))) / 3) == pytest.approx(expected, rel=1e-3)


def test_repetitions_in_a_row_are_an_exponent():
    """A new value of another level ends the row, and changes nothing else."""
    train, values = steps(40)
    repeated = [value in values[:i] for i, value in enumerate(values)]
    in_a_row = repeated[::-1].index(False)
    assert in_a_row > 1
    row = plateaus(train, values)
    ended = plateaus(train.concatenate(encoded((5, 0.5, "b"))), np.append(values, 9.0))
    assert row is not None and ended is not None
    at = encoded((2.5, 0.5, "a"), (7, 0.1, "a"))
    np.testing.assert_allclose(row.values(at), (1 + in_a_row) * ended.values(at), rtol=1e-12)


def test_repetitions_of_worse_values_in_a_row_do_not_count():
    """Only the best value leads: repetitions of the worst one, in corners where nothing is expected, say nothing."""
    train, values = steps(40)
    train = train.concatenate(encoded((0.2, 0.1, "a"), (1.8, 0.9, "a"), (9.8, 1.0, "a"), (9.9, 0.0, "a")))
    values = np.concatenate([values, [0.0, 0.0, 4.0, 4.0]])
    at = encoded((2.5, 0.5, "a"), (7, 0.1, "a"))

    def factor(n, leading):
        return Plateaus.of(train[:n], Outcomes(values[:n], leading[:n], np.ones(n, dtype=bool))).values(at)

    best = values == 0
    once = factor(44, best)
    in_a_row = list(values[39::-1] == 0).index(False) + 2
    np.testing.assert_allclose(factor(42, best), (1 + in_a_row) * factor(42, np.zeros(44, dtype=bool)), rtol=1e-12)
    np.testing.assert_array_equal(once, factor(44, np.zeros(44, dtype=bool)))
    assert np.all(factor(44, np.ones(44, dtype=bool)) < 4 * once)


def test_evaluations_that_are_not_compared_neither_count_nor_end_a_row():
    train, values = steps(40)
    train = train.concatenate(encoded((0.2, 0.1, "a"), (9.8, 1.0, "b"), (1.8, 0.9, "a"), (9.9, 0.0, "b")))
    values = np.concatenate([values, [0.0, 4.0, 0.0, 4.0]])
    level = train.unit_values[:, ENCODER.names.index("level")]
    at = encoded((2.5, 0.5, "a"), (7, 0.1, "a"))

    def factor(compared):
        return Plateaus.of(train, Outcomes(values, (values == 0) & (level == 0), compared)).values(at)

    in_a_row = list(values[39::-1] == 0).index(False) + 2
    once = factor(np.ones(44, dtype=bool))
    np.testing.assert_allclose(factor(level == 0), (1 + in_a_row) * once, rtol=1e-12)


def test_a_value_that_only_another_context_has_is_no_repetition():
    train, values = steps(40)
    train = train.concatenate(encoded((0.2, 0.1, "b"), (1.8, 0.9, "b"), (2.1, 0.3, "b")))
    values = np.concatenate([values, [0.0, 0.0, 0.0]])
    compared = train.unit_values[:, ENCODER.names.index("level")] == 1
    at = encoded((2.5, 0.5, "a"), (7, 0.1, "a"))

    def factor(leading):
        return Plateaus.of(train, Outcomes(values, leading, compared)).values(at)

    none = factor(np.zeros(43, dtype=bool))
    np.testing.assert_allclose(factor(compared & (values == 0)), 3 * none, rtol=1e-12)  # two of the three


def test_gradient():
    train, values = steps(30)
    found = plateaus(train, values)
    assert found is not None
    rng = np.random.default_rng(4)
    points = encoded(*((10 * x, y, "a") for x, y in rng.uniform(size=(200, 2))))
    step = 1e-7
    logs, gradients = found.values_and_gradients(points)
    np.testing.assert_array_equal(logs, found.values(points))
    for j, name in enumerate(ENCODER.real_names):
        ahead = points.unit_values.copy()
        ahead[:, ENCODER.names.index(name)] += step
        difference = (found.values(type(points)(ahead, points.active, ENCODER)) - logs) / step
        # A point within a step of a knot, or as near to two points, has two derivatives.
        assert np.mean(np.abs(difference - gradients[:, j]) < 1e-4 * (1 + np.abs(difference))) > 0.98
