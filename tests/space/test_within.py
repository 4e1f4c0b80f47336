"""Constraints on inputs: their texts, the designs and draws inside, and the moves of configurations into them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer, OrdinalHyperparameter
from scipy.spatial.distance import cdist
from scipy.stats import kstest

from slayr_py import SpaceError
from slayr_py.space import Encoder, Linear
from slayr_py.space.spread import spread
from slayr_py.space.within.expression import parse
from slayr_py.space.within.nearest import nearest, nearest_each


def mixture() -> ConfigurationSpace:
    return ConfigurationSpace({"x1": (0.0, 1.0), "x2": (0.0, 1.0), "x3": (0.0, 1.0)})


def reactor() -> ConfigurationSpace:
    return ConfigurationSpace({"temperature": (20.0, 200.0), "time": (1.0, 600.0), "solvent": ["a", "b"]})


def counts() -> ConfigurationSpace:
    return ConfigurationSpace({"a": (0, 10), "b": (0, 10), "c": (0.0, 10.0)})


def logarithmic() -> ConfigurationSpace:
    space = ConfigurationSpace({"r": (0.0, 1.0)})
    space.add(Float("p", (1e-3, 1.0), log=True), Float("my q", (1e-3, 1.0), log=True))
    return space


def branching() -> ConfigurationSpace:
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    kind = Categorical("kind", ["u", "v"])
    y = Float("y", (0.0, 1.0))
    space.add(kind, y)
    space.add(EqualsCondition(y, kind, "u"))
    return space


CASES = {
    "simplex": (mixture, ["x1 + x2 + x3 == 1"], lambda c: [abs(c["x1"] + c["x2"] + c["x3"] - 1)]),
    "cut simplex": (
        mixture,
        [Linear("x1 + x2 + x3 == 1"), "0.2 <= x1 <= 0.6", "2*x1 - x2 <= 0.5"],
        lambda c: [abs(sum(c.values()) - 1), 0.2 - c["x1"], c["x1"] - 0.6, 2 * c["x1"] - c["x2"] - 0.5],
    ),
    "a plane between two inequalities": (
        mixture,
        ["x1 - x2 <= 0", "x2 - x1 <= 0"],
        lambda c: [abs(c["x1"] - c["x2"])],
    ),
    "product": (reactor, ["temperature * time <= 6000"], lambda c: [c["temperature"] * c["time"] - 6000]),
    "quotient and root": (
        reactor,
        ["time / temperature >= 2", "sqrt(time) + abs(temperature) <= 100"],
        lambda c: [2 - c["time"] / c["temperature"], c["time"] ** 0.5 + c["temperature"] - 100],
    ),
    "curved equality": (mixture, ["x1**2 + x2**2 == 0.5"], lambda c: [abs(c["x1"] ** 2 + c["x2"] ** 2 - 0.5)]),
    "function": (
        reactor,
        [lambda c: c["solvent"] == "b" or c["time"] <= 100],
        lambda c: [float(c["solvent"] == "a" and c["time"] > 100)],
    ),
    "integers": (counts, ["a + b == 10"], lambda c: [abs(c["a"] + c["b"] - 10)]),
    "integers and a float": (
        counts,
        ["a + b + c == 10", "2*a - b <= 5"],
        lambda c: [abs(c["a"] + c["b"] + c["c"] - 10), 2 * c["a"] - c["b"] - 5],
    ),
    "logarithms": (logarithmic, ["p + `my q` + r == 1"], lambda c: [abs(c["p"] + c["my q"] + c["r"] - 1)]),
    "a sum of logarithms": (
        logarithmic,
        ["log(p) + log(`my q`) <= -10", "r >= 0.1"],
        lambda c: [np.log(c["p"]) + np.log(c["my q"]) + 10, 0.1 - c["r"]],
    ),
    "a product of logarithmic parameters": (
        logarithmic,
        ["p * `my q` == 1e-4"],
        lambda c: [abs(c["p"] * c["my q"] - 1e-4)],
    ),
    "a curved equality far from most points": (
        logarithmic,
        ["p**2 + `my q`**2 == 0.5", "r + p <= 1.2"],
        lambda c: [abs(c["p"] ** 2 + c["my q"] ** 2 - 0.5), c["r"] + c["p"] - 1.2],
    ),
    "condition": (branching, ["x + y <= 0.3"], lambda c: [c["x"] + c["y"] - 0.3] if "y" in c else [0.0]),
}


@pytest.mark.parametrize("name", CASES)
def test_designs_draws_and_moved_configurations_satisfy_the_constraints(name):
    make, within, excess = CASES[name]
    encoder = Encoder(make(), within=within)
    design = encoder.sobol(8, 1)
    assert len({tuple(config.values()) for config in design}) == 8
    assert encoder.sobol(5, 1) == design[:5]
    rng = np.random.default_rng(0)
    n = 50 if name == "curved equality" else 200
    drawn, inside = encoder.resolve(encoder.uniform(n, rng))
    assert inside.mean() > (0.4 if name == "function" else 0.9)
    moved, could = encoder.resolve(encoder.from_uniform(rng.random((n, len(encoder.names)))))
    assert could.mean() > 0.9 or name in ("function", "integers", "integers and a float")
    rows = [*encoder.decode(drawn[np.flatnonzero(inside)]), *encoder.decode(moved[np.flatnonzero(could)]), *design]
    assert max(max(excess(dict(config))) for config in rows) <= 1e-9


def test_a_function_is_called_once_for_each_configuration_in_which_the_comparisons_hold():
    called = []

    def allows(config):
        called.append(config)
        return config["x1"] <= 0.5

    encoder = Encoder(mixture(), within=["x1 + x2 <= 0.8", "x2 * x3 <= 0.2", allows])
    genotypes = np.random.default_rng(0).random((400, 3))
    called.clear()
    encoded, allowed = encoder.resolve(genotypes)
    x1, x2, x3 = np.array([list(config.values()) for config in called]).T
    assert len(called) == 400 and np.all(x1 + x2 <= 0.8 + 1e-9) and np.all(x2 * x3 <= 0.2 + 1e-9)
    assert np.array_equal(allowed, x1 <= 0.5) and 100 < allowed.sum() < 350
    assert np.array_equal(encoder.inside(encoded), allowed)


def test_a_function_may_rely_on_the_comparisons():
    def nothing(config):
        return False

    called = []
    encoder = Encoder(mixture(), within=[lambda config: called.append(config) or True, "x1 <= x2"])
    configs = encoder.encode([{"x1": 0.9, "x2": 0.1, "x3": 0.0}, {"x1": 0.1, "x2": 0.9, "x3": 0.0}])
    called.clear()
    assert encoder.inside(configs).tolist() == [False, True]
    assert encoder.broken(configs) == ["'x1 <= x2' is violated by 0.8", ""]
    assert {config["x1"] for config in called} == {0.1}
    with pytest.raises(SpaceError, match="satisfies 'nothing'; loosen it"):
        Encoder(mixture(), within=[nothing, "x1 <= x2"])


def test_draws_are_uniform():
    """On the simplex each share has the distribution Beta(1, 2); the logarithm of a log parameter is uniform."""
    encoder = Encoder(mixture(), within=["x1 + x2 + x3 == 1"])
    shares = encoder.resolve(encoder.uniform(1000, np.random.default_rng(1)))[0].unit_values
    assert min(kstest(column, lambda x: 1 - (1 - x) ** 2).pvalue for column in shares.T) > 0.01
    for within in (["p <= 0.1"], ["log(p) <= log(0.1)"], ["p * sqrt(p) <= 0.1 ** 1.5"], ["p <= 0.1", "p * p <= 1"]):
        encoder = Encoder(logarithmic(), within=within)
        p = encoder.decode(encoder.resolve(encoder.uniform(1000, np.random.default_rng(1)))[0])
        assert kstest(np.log([config["p"] for config in p]), "uniform", (np.log(1e-3), np.log(100))).pvalue > 0.01


@pytest.mark.parametrize(("within", "first"), [("a**6 <= 1", [0.0]), ("abs(abs(a - 50) - 30) <= 0.5", [19.5, 79.5])])
def test_draws_from_a_hundredth_of_a_range_are_uniform(within, first):
    """Few chains find the parts of length 1, which begin at ``first``; a repair would move the others to a border."""
    encoder = Encoder(ConfigurationSpace({"a": (0.0, 100.0), "b": (0.0, 1.0)}), within=[within])
    a = 100 * encoder.resolve(encoder.uniform(1000, np.random.default_rng(1)))[0].unit_values[:, 0]
    part = np.searchsorted(first, a, side="right") - 1
    assert kstest(a - np.array(first)[part], "uniform").pvalue > 0.01
    assert np.ptp(np.bincount(part)) < 200


@pytest.mark.parametrize(
    ("side", "names", "count"),
    [("0.3 - a*b*c*d*e*f", "abcdef", 500), ("(a - 0.5)**2 + (b - 0.5)**2 - 0.0006 * k", "abk", 1000)],
)
def test_draws_from_a_thousandth_of_the_volume_are_not_at_its_border(side, names, count):
    """In many dimensions, and of few chains at each level, it takes them long to come inside."""
    space = ConfigurationSpace({name: (0.0, 1.0) for name in names if name != "k"})
    if "k" in names:
        space.add(OrdinalHyperparameter("k", list(range(1, 11))))
    encoder = Encoder(space, within=[f"{side} <= 0"])
    drawn, inside = encoder.resolve(encoder.uniform(count, np.random.default_rng(1)))
    assert inside.all()
    sides = [eval(side, {}, dict(config)) for config in encoder.decode(drawn)]
    assert np.mean(np.array(sides) > -1e-9) < 0.02


@pytest.mark.parametrize("within", ["abs(a * b - 0.3) <= 3e-5", "abs(a**2 + b**2 + c**2 + d**2 + e**2 - 1) <= 1e-4"])
def test_draws_from_thin_regions_are_spread(within):
    """So few chains are inside that all draws would be near the same points."""
    encoder = Encoder(ConfigurationSpace({name: (0.0, 1.0) for name in "abcde"}), within=[within])
    drawn, inside = encoder.resolve(encoder.uniform(300, np.random.default_rng(1)))
    assert inside.all()
    assert len(np.unique(drawn.unit_values.round(2), axis=0)) > 290
    assert (drawn.unit_values[:, :2].std(axis=0) > 0.15).all()


def test_separate_parts_have_draws_in_proportion_to_their_volumes():
    """Chains begin in the middle of one of two balls."""
    near, far = ("+".join(f"({name} - {centre})**2" for name in "abc") for centre in (0.5, 0.2))
    either = f"({near} + {far} - abs({near} - ({far}))) / 2 <= 0.01"
    encoder = Encoder(ConfigurationSpace({name: (0.0, 1.0) for name in "abc"}), within=[either])
    drawn = encoder.resolve(encoder.uniform(1000, np.random.default_rng(1)))[0].unit_values
    assert 0.42 < (drawn.mean(axis=1) > 0.35).mean() < 0.58


def test_draws_are_uniform_given_a_level():
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    space.add(OrdinalHyperparameter("most", [0.1, 0.4, 1.0]))
    encoder = Encoder(space, within=["x <= most"])
    drawn = encoder.decode(encoder.resolve(encoder.uniform(1000, np.random.default_rng(1)))[0])
    assert kstest([config["x"] / config["most"] for config in drawn], "uniform").pvalue > 0.01


def test_integers_at_a_bound_are_drawn_as_often_as_others():
    encoder = Encoder(counts(), within=["a + b == 10"])
    drawn = encoder.decode(encoder.resolve(encoder.uniform(3000, np.random.default_rng(1)))[0])
    assert np.bincount([config["a"] for config in drawn], minlength=11).min() > 200


def test_several_integers_are_rounded_to_an_equality():
    encoder = Encoder({name: (0, 20) for name in "abcde"}, within=["a + 2*b + 3*c + d + e == 30"])
    drawn = encoder.uniform(100, np.random.default_rng(1))
    assert encoder.resolve(drawn)[1].mean() > 0.9


def test_draws_ignore_constraints_on_inactive_parameters():
    encoder = Encoder(branching(), within=["x * (1 + y) <= 0.1", "x <= 0.8"])
    drawn = encoder.decode(encoder.resolve(encoder.uniform(1000, np.random.default_rng(1)))[0])
    assert kstest([config["x"] / 0.8 for config in drawn if "y" not in config], "uniform").pvalue > 0.01


def test_exchanges_of_integers_keep_an_equality():
    """A logarithmic integer has no constant step."""
    space = ConfigurationSpace({"a": (0, 10), "b": (0, 40)})
    space.add(Integer("c", (1, 8), log=True))
    encoder = Encoder(space, within=["2*a + b + c == 30"])
    changes = [(columns, change.tolist()) for columns, change in encoder.exchanges]
    assert changes == [([0, 1], [0.1, -0.05]), ([0, 1], [-0.1, 0.05])]


def test_a_move_is_the_nearest_configuration_with_the_constraints():
    """Compare with the textbook's projection on the simplex: subtract a threshold and cut at 0."""
    encoder = Encoder(mixture(), within=["x1 + x2 + x3 == 1"])
    points = np.random.default_rng(2).random((50, 3))
    moved = encoder.resolve(points)[0].unit_values
    for point, found in zip(points, moved, strict=True):
        ordered = np.sort(point)[::-1]
        thresholds = (np.cumsum(ordered) - 1) / np.arange(1, 4)
        threshold = thresholds[np.flatnonzero(ordered > thresholds)[-1]]
        np.testing.assert_allclose(found, np.maximum(point - threshold, 0), atol=1e-9)


def test_a_sum_of_logarithms_moves_to_the_nearest_unit_values():
    encoder = Encoder(logarithmic(), within=["log(p) + log(`my q`) <= -10"])
    start = np.full((1, 3), 0.5)
    start[0, [encoder.names.index("p"), encoder.names.index("my q")]] = [0.9, 0.6]
    moves = start - encoder.resolve(start)[0].unit_values
    excess = 1.5 - (2 - 10 / np.log(1000))
    np.testing.assert_allclose(np.sort(moves[0]), [0.0, excess / 2, excess / 2], atol=1e-6)


@pytest.mark.parametrize("within", ["`my x` + `my x` + y == 0.5", "`my x` * (1 + `my x`) <= 0.3125"])
def test_a_move_changes_parameters_with_quoted_names(within):
    encoder = Encoder(ConfigurationSpace({"my x": (0.0, 1.0), "y": (0.0, 1.0)}), within=[within])
    encoded, inside = encoder.resolve(np.array([[0.9, 0.0]]))
    assert inside.all() and encoder.decode(encoded)[0]["my x"] == pytest.approx(0.25)


@pytest.mark.parametrize("name", ["v_\u00b5L", "\u212b", "e\u0301", "lambda", "not", "None", "_quoted0", "exp"])
def test_identifiers_and_keywords_are_names_as_they_are_written(name):
    encoder = Encoder({name: (0.0, 10.0), "my x": (0.0, 1.0)}, within=[f"1e0*{name} - `my x` <= 5"])
    configs = [{name: 5.5, "my x": 1.0}, {name: 6.5, "my x": 1.0}]
    assert encoder.inside(encoder.encode(configs)).tolist() == [True, False]


@pytest.mark.parametrize(("equal", "below", "width"), [(0, 1, 2), (1, 0, 2), (1, 2, 4), (2, 2, 5)])
def test_nearest_points_of_many_constraints_are_those_of_one_search_each(equal, below, width):
    rng = np.random.default_rng(3)
    s = rng.random((100, width))
    s[:20] = np.rint(s[:20])
    rows = rng.normal(size=(100, equal + below, width))
    right = 0.3 * rng.normal(size=(100, equal + below))
    is_equality = np.arange(equal + below) < equal
    near = is_equality | (rng.random(right.shape) < 0.9)
    found = nearest_each(s, rows, right, is_equality, near)
    some = 0
    for i in range(100):
        e, g = near[i] & is_equality, near[i] & ~is_equality
        expected = nearest(s[[i]], rows[i, e], right[[i]][:, e], rows[i, g], right[[i]][:, g])[0]
        if np.isfinite(expected).all():
            some += 1
            np.testing.assert_allclose(found[i], expected, atol=1e-12)
    assert some > 40


@pytest.mark.parametrize(
    "text", ["exp(x) * y / z <= x", "log(x) - sqrt(y) + abs(z - 1) >= 0", "-(x**3) + (y / 2) ** -1.5 == z**0 + y"]
)
def test_derivatives_of_comparisons_are_those_of_finite_differences(text):
    (comparison,) = parse(text)
    values = dict(zip("xyz", np.random.default_rng(1).uniform(0.2, 2.0, (3, 5)), strict=True))
    slopes = comparison.evaluate(values)[1]
    for name in values:
        above, below = (comparison.evaluate(values | {name: values[name] + step})[0] for step in (1e-6, -1e-6))
        np.testing.assert_allclose(slopes[name], (above - below) / 2e-6, atol=1e-7)
    (constant,) = parse("x**0 <= 2")
    assert constant.evaluate({"x": np.zeros(1)})[1]["x"] == 0


def test_gradients_beyond_all_numbers_leave_a_point_where_it_is():
    space = ConfigurationSpace([Float("p", (1e-3, 1e3), log=True), Float("q", (1e-3, 1e3), log=True)])
    encoder = Encoder(space, within=["exp(p) + q <= 1.5"])
    encoded, inside = encoder.resolve(np.array([[1.0, 1.0], [0.2, 0.9]]))
    assert inside.tolist() == [False, True] and encoded.unit_values[0].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("bounds", "within", "excess"),
    [
        ({"x": (0.0, 100.0)}, "exp(x) <= 1000", lambda c: np.exp(c["x"]) - 1000),
        ({"x": (0.0, 100.0), "y": (0.0, 1.0)}, "exp(x) <= 1e12", lambda c: np.exp(c["x"]) - 1e12),
        ({"x": (0.0, 100.0), "y": (0.0, 100.0)}, "x**6 + y**6 <= 1", lambda c: c["x"] ** 6 + c["y"] ** 6 - 1),
        ({"x": (0.0, 10.0), "y": (0.0, 50.0)}, "x * exp(y) <= 3", lambda c: c["x"] * np.exp(c["y"]) - 3),
        ({"x": (0.0, 1.0)}, "1 / x <= 5", lambda c: 1 / c["x"] - 5),
        ({"x": (0.0, 1.0)}, "log(x) >= -2", lambda c: -2 - np.log(c["x"])),
        ({"x": (0.0, 1e9), "y": (0.0, 1e9)}, "x + y <= 1e9", lambda c: c["x"] + c["y"] - 1e9),
        ({"x": (0.0, 1e9), "y": (0.0, 1.0)}, "x <= 0", lambda c: c["x"]),
        ({"x": (0.0, 1e9), "y": (0.0, 1.0)}, "x == 5", lambda c: abs(c["x"] - 5)),
        ({"x": (0.0, 1e4), "y": (0.0, 1e4)}, "x * y == 12", lambda c: abs(c["x"] * c["y"] - 12)),
    ],
)
def test_steep_and_large_sides_hold_at_each_configuration(bounds, within, excess):
    encoder = Encoder(bounds, within=[within])
    encoded, inside = encoder.resolve(np.random.default_rng(1).random((100, len(bounds))))
    assert inside.mean() > 0.9
    rows = [*encoder.decode(encoded[np.flatnonzero(inside)]), *encoder.sobol(8, 1)]
    assert max(excess(dict(config)) for config in rows) <= 1e-9


def test_an_equality_may_be_off_by_the_rounding_of_its_parameters():
    encoder = Encoder({"x": (0.0, 20.0), "y": (0.0, 1.0)}, within=["exp(x) == 1e8"])
    encoded, inside = encoder.resolve(np.random.default_rng(1).random((20, 2)))
    assert inside.all()
    assert max(abs(config["x"] - np.log(1e8)) for config in encoder.decode(encoded)) <= 3e-13
    reciprocal = Encoder({"x": (0.0, 1.0)}, within=["1 / x == 5"])
    assert not reciprocal.inside(reciprocal.encode([{"x": 1e-12}])).any()


@pytest.mark.parametrize(
    ("bounds", "within"),
    [
        ({"a": (0.0, 1e8), "b": (0.0, 1e8)}, ["a + b <= 1e8", "a + b >= 1e8"]),
        ({"a": (0.0, 1e8), "b": (0.0, 1e8), "c": (0.0, 1e8)}, ["a + b + c == 1e8", "a + b <= 5e7", "c <= 5e7"]),
        ({"p": (1.0, 1e4), "v": (1.0, 1e4)}, ["1e6 <= p * v", "p * v <= 1e6"]),
        ({"a": (0.0, 1e8), "b": (0.0, 1e8)}, ["abs(a - b) == 0"]),
        ({"a": (0.0, 1e8), "b": (0.0, 1e8)}, ["-(a + b - 1e8) <= 0", "-(1e8 - a - b) <= 0"]),
    ],
)
def test_opposite_constraints_of_large_sides_leave_room_for_rounding(bounds, within):
    encoder = Encoder(bounds, within=within)
    encoded, _ = encoder.resolve(np.random.default_rng(1).random((100, len(bounds))))
    assert encoder.inside(encoded).all()


def test_a_region_without_a_volume_has_a_configuration():
    encoder = Encoder({"x": (0.0, 1.0), "y": (0.0, 1.0)}, within=["abs(x - y) <= 0"])
    configs = encoder.sobol(4, 1)
    assert configs and all(abs(config["x"] - config["y"]) <= 1e-9 for config in configs)


def test_recorded_values_are_rounded_by_a_hundredth_of_their_range_at_most():
    encoder = Encoder({"x": (0.0, 100.0)}, within=["exp(x) <= 1000"])
    assert encoder.inside(encoder.encode([{"x": 7.5}, {"x": 8.5}, {"x": 60.0}]), recorded=True).tolist() == [1, 0, 0]
    narrow = Encoder({"x": (0.0, 1.0), "y": (0.0, 1.0)}, within=["abs(x - y) <= 0.001"])
    assert narrow.inside(narrow.encode([{"x": 0.5, "y": 0.4989}]), recorded=True).all()
    encoder = Encoder(mixture(), within=["x1 + x2 + x3 == 1"])
    thirds = encoder.encode([{"x1": third, "x2": third, "x3": third} for third in (0.333, 0.32)])
    assert encoder.inside(thirds, recorded=True).tolist() == [True, False]


def test_a_single_level_changes_no_move_of_other_parameters():
    space = ConfigurationSpace({"a": (0, 10), "b": (0, 10)})
    alone = Encoder(space, within=["a + b == 10"])
    with_level = ConfigurationSpace({"a": (0, 10), "b": (0, 10)})
    with_level.add(OrdinalHyperparameter("level", [3]))
    encoder = Encoder(with_level, within=["a + b + level == 13"])
    changes = [change.tolist() for _, change in encoder.exchanges]
    assert changes == [change.tolist() for _, change in alone.exchanges] and len(changes) == 4
    gradients = np.array([[1.0, 2.0, 0.0]])
    projector = encoder.along(encoder.encode([{"a": 4, "b": 6, "level": 3}]), gradients)
    moved = alone.along(alone.encode([{"a": 4, "b": 6}]), gradients[:, :2])
    np.testing.assert_array_equal(projector[:, :2, :2], moved)


def test_moves_stay_on_the_faces_and_bounds_at_which_a_gradient_pushes():
    encoder = Encoder({"x": (0.0, 1.0), "y": (0.0, 1.0)}, within=["x + y <= 1"])
    configs = encoder.encode([{"x": 0.5, "y": 0.5}, {"x": 0.5, "y": 0.5}, {"x": 0.0, "y": 0.2}])
    projectors = encoder.along(configs, np.array([[2.0, 1.0], [-2.0, -1.0], [-1.0, 1.0]]))
    expected = [[[0.5, -0.5], [-0.5, 0.5]], np.eye(2), np.diag([0.0, 1.0])]
    np.testing.assert_allclose(projectors, expected, atol=1e-12)
    # In a corner, which the margins of constraints keep a point from reaching exactly.
    corner = encoder.encode([{"x": 1 - 3e-8, "y": 2e-8}])
    np.testing.assert_allclose(encoder.along(corner, np.array([[2.0, 1.0]])), np.zeros((1, 2, 2)), atol=1e-12)
    encoder = Encoder(logarithmic(), within=["p + r == 1"])
    encoded = encoder.encode([{"p": 0.1, "r": 0.9, "my q": 0.1}])
    slopes = {"p": 0.1 * np.log(1000), "r": 1.0, "my q": 0.0}
    normal = np.array([slopes[name] for name in encoder.names])
    expected = np.eye(3) - np.outer(normal, normal) / (normal @ normal)
    np.testing.assert_allclose(encoder.along(encoded, np.ones((1, 3)))[0], expected, atol=1e-9)


@pytest.mark.parametrize("levels", [[1, 3], [np.int64(1), np.int64(3)], [np.float32(1), Fraction(3)]])
def test_levels_that_are_numbers_of_any_type_are_compared(levels):
    encoder = Encoder({"k": levels, "x": (0.0, 1.0)}, within=["k + x <= 2"])
    assert encoder.inside(encoder.encode([{"k": level, "x": 0.5} for level in levels])).tolist() == [True, False]


@pytest.mark.parametrize("levels", [[True, False], [np.bool_(0), np.bool_(1)], ["1", "2"]])
def test_levels_that_are_no_numbers_are_not_compared(levels):
    with pytest.raises(SpaceError, match="reads 'k', which is not a number; pass a function"):
        Encoder({"k": levels, "x": (0.0, 1.0)}, within=["k + x <= 2"])


def test_a_constraint_without_a_value_does_not_hold():
    encoder = Encoder({"x": (0.0, 1.0)}, within=["sqrt(x - 0.5) <= 1"])
    assert encoder.inside(encoder.encode([{"x": 0.2}, {"x": 0.7}])).tolist() == [False, True]


def test_fixed_values_leave_the_rest_to_the_constraints():
    encoder = Encoder(mixture(), within=["x1 + x2 + x3 == 1"])
    fixed = encoder.fix({"x1": 0.4})
    for config in encoder.sobol(5, 1, fixed):
        assert config["x1"] == 0.4 and abs(config["x2"] + config["x3"] - 0.6) <= 1e-9
    with pytest.raises(SpaceError, match="with the values .* no configuration satisfies 'x1 \\+ x2"):
        encoder.fix({"x1": 0.9, "x2": 0.9})


def test_a_function_may_allow_a_few_thousandths_of_the_space():
    encoder = Encoder(mixture(), within=[lambda config: 0.2 <= config["x1"] <= 0.203])
    assert all(0.2 <= config["x1"] <= 0.203 for config in encoder.sobol(5, 1))
    assert encoder.fix({"x2": 0.5}).values == {"x2": 0.5}


def test_of_several_constraints_the_one_that_fixed_values_violate_is_named():
    encoder = Encoder(mixture(), within=["x1 + x2 <= 1", "x1 + x3 <= 1.5"])
    message = "no configuration satisfies 'x1 \\+ x2 <= 1' with x1 from 0.0 to 1.0, x2 from 0.0 to 1.0; loosen it, or"
    with pytest.raises(SpaceError, match=message):
        encoder.fix({"x1": 0.7, "x2": 0.7})


@pytest.mark.parametrize(
    ("within", "message"),
    [
        (lambda config: config.get("rate", 0.0) < 0.5, "no configuration was found that satisfies '<lambda>'"),
        ("rate <= 0.5", "no configuration satisfies 'rate <= 0.5'"),
    ],
)
def test_a_constraint_that_excludes_a_fixed_value_is_named_although_it_holds_where_the_parameter_is_inactive(
    within, message
):
    space = ConfigurationSpace()
    kind, rate = Categorical("kind", ["x", "y"]), Float("rate", (0.0, 1.0))
    space.add(kind, rate, EqualsCondition(rate, kind, "y"))
    with pytest.raises(SpaceError, match=f"with the values {{'rate': 0.7}}, {message}"):
        Encoder(space, within=[within]).fix({"rate": 0.7})


@pytest.mark.parametrize("levels", [1, 4])
def test_a_design_inside_constraints_represents_the_numbers_better_than_random_points(levels):
    space = {"acid": (0.0, 1.0), "base": (0.0, 1.0), "filler": (0.0, 0.5)}
    if levels > 1:
        space["solvent"] = [f"s{i}" for i in range(levels)]
    encoder = Encoder(space, within=["acid + base + filler == 1", "acid - base <= 0.4"])
    rng = np.random.default_rng(0)
    pool, _ = encoder.resolve(encoder.uniform(500, rng))
    numbers = pool.unit_values[:, :3]

    def energy(rows):
        chosen = numbers[rows]
        return 2 * cdist(chosen, numbers).mean() - cdist(chosen, chosen).mean() - cdist(numbers, numbers).mean()

    chosen = spread(pool, 8)
    assert energy(chosen) < np.mean([energy(rng.choice(500, 8, replace=False)) for _ in range(50)]) / 2
    if levels > 1:
        assert np.ptp(np.bincount(pool.unit_values[chosen, 3].astype(int), minlength=levels)) <= 1


@pytest.mark.parametrize(
    ("within", "message"),
    [
        (["x1 + x2 == 5"], "no configuration satisfies 'x1 \\+ x2 == 5' with x1 from 0.0 to 1.0, x2 from"),
        (["x1 + x2 <= 0.5", "x1 >= 0.4", "x2 >= 0.2"], "together; loosen 'x1 \\+ x2 <= 0.5'"),
        (["x1 * x2 >= 2"], "no configuration satisfies 'x1 \\* x2 >= 2'"),
        (["x1 >= x9"], "reads 'x9', which is not a parameter; .* belong into constraints="),
        (["x1"], "is not a comparison; write a comparison of numbers such as"),
        (["x1 != 2"], "has another relation than <=, >= and =="),
        (["1 <= 2"], "compares numbers and no parameter"),
        (["__import__('os').getcwd() <= 1"], "which is not arithmetic"),
        (["x1 ** x2 <= 1"], "has an exponent that is not a number; write exp"),
        (["(lambda: 1)() <= x1"], "is not a comparison"),
        (["x1 <= 1e999"], "which is not finite"),
        (["x1 / 0 <= 1"], "'x1 / 0 <= 1' has no finite value within the bounds"),
        (["x1 <= (-8) ** 0.5"], "has no finite value within the bounds"),
        (["x1 <= 0 ** -1"], "has no finite value within the bounds"),
        (["x1 <= 10**400"], "'x1 <= 10\\*\\*400' has a number beyond 1.8e\\+308; write it in other units"),
        (["x1 <= " + "9" * 400], "has a number beyond 1.8e"),
        (["x1 ** 10**400 <= 1"], "has a number beyond 1.8e"),
        ([3], "give a text such as"),
        ("x1 <= 1", "give a list, as in within="),
        ([lambda c: None], "returns None .* not True or False"),
        ([lambda c: c["y"]], "raises KeyError"),
        ([lambda c: False], "no configuration was found that satisfies '<lambda>'; loosen it"),
    ],
)
def test_illegal_and_empty_constraints_are_named(within, message):
    with pytest.raises(SpaceError, match=message):
        Encoder(mixture(), within=within)


def test_linear_is_for_one_linear_comparison_of_numbers():
    with pytest.raises(SpaceError, match="is not linear; pass the text itself"):
        Linear("x1 * x2 <= 1")
    with pytest.raises(SpaceError, match="has several comparisons"):
        Linear("0 <= x1 <= 1")
    with pytest.raises(SpaceError, match="reads 'solvent', which is not a number; pass a function"):
        Encoder(reactor(), within=["solvent <= 1"])
