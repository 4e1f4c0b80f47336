from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from ConfigSpace import Categorical, Configuration, ConfigurationSpace, Integer
from optuna.distributions import FloatDistribution
from testing_spaces import mixed_space, plain_space

from slayr_py.errors import SpaceError
from slayr_py.space import Encoded, Encoder


def test_encoded_values_are_in_range(any_space):
    any_space.seed(2)
    encoded = Encoder(any_space).encode(any_space.sample_configuration(100))
    assert encoded.unit_values.flags.c_contiguous and encoded.unit_values.dtype == np.float64
    assert np.all(encoded.unit_values[~encoded.active] == 0)
    for j, dimension in enumerate(encoded.encoder.dimensions):
        column = encoded.unit_values[encoded.active[:, j], j]
        upper = 1 if dimension.is_real else len(dimension.levels) - 1
        assert column.min() >= 0 and column.max() <= upper
    assert encoded.columns.shape == (100, len(encoded.encoder.column_names))
    assert encoded.columns.min() >= 0 and encoded.columns.max() <= 1


def test_sobol_is_seeded_nested_and_valid(any_space):
    encoder = Encoder(any_space)
    long = encoder.sobol(20, 7)
    short = encoder.sobol(5, 7)
    assert long[:5] == short
    assert encoder.sobol(5, 8) != short
    for config in long:
        config.check_valid_configuration()


def test_sobol_fills_the_cube_evenly():
    encoder = Encoder(plain_space())
    values = encoder.encode(encoder.sobol(64, 0)).unit_values
    counts, _ = np.histogram(values[:, 0], bins=8, range=(0, 1))
    assert np.all(counts == 8)


def test_configuration_equals_that_of_configspace(any_space):
    encoder = Encoder(any_space)
    for config in encoder.sobol(20, 5):
        theirs = Configuration(any_space, values=dict(config))
        ours = encoder.configuration(dict(config))
        assert ours == theirs and list(ours) == list(theirs)
        assert np.array_equal(ours.get_array(), theirs.get_array(), equal_nan=True)
        assert encoder.configuration(theirs) is theirs


def test_one_hot_columns():
    encoder = Encoder(ConfigurationSpace([Integer("n", (0, 4)), Categorical("c", ["a", "b"])]))
    columns = dict(zip(encoder.column_names, encoder.encode([{"n": 1, "c": "b"}]).columns[0], strict=True))
    assert columns == {"n": 0.25, "c[a]": 0.0, "c[b]": 1.0}


def test_encoded_arrays_are_read_only():
    encoder = Encoder(mixed_space())
    encoded = encoder.encode(encoder.sobol(3, 1))
    for name in ("unit_values", "active", "raw", "columns", "real", "real_active", "vertices"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(encoded, name)[:] = 0
    values = encoded.unit_values.copy()
    Encoded(values, encoded.active, encoder)
    values[:] = 0.5  # the array of the caller stays writable


def test_a_dictionary_is_a_space():
    space = {"x": (0.0, 1.0), "n": (1, 4), "kind": ["a", "b"], "constant": 3}
    encoder = Encoder(space, graphs={"n": "path"}, within=["x <= 0.5"])
    assert encoder.matches(Encoder(ConfigurationSpace(space), graphs={"n": "path"}))
    assert max(config["x"] for config in encoder.sobol(8, 1)) <= 0.5


@pytest.mark.parametrize("number", [np.float16, np.float32, np.float64, np.int32])
def test_bounds_of_numpy_are_those_of_python(number):
    (dimension,) = Encoder({"x": (number(1.5), number(9.5))}).dimensions
    whole = number is np.int32
    assert dimension.kind == ("integer" if whole else "float")
    assert (dimension.lower, dimension.upper) == ((1, 9) if whole else (1.5, 9.5))


@pytest.mark.parametrize("bounds", [(Decimal("0.1"), Decimal(2)), (Fraction(1, 10), 2.0)])
def test_bounds_that_are_decimals_or_fractions_are_floats(bounds):
    (dimension,) = Encoder({"x": bounds}).dimensions
    assert (dimension.kind, dimension.lower, dimension.upper) == ("float", 0.1, 2.0)


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ((0, "1"), "two floats, two integers or a list of levels"),
        (("low", "high"), "two floats, two integers or a list of levels"),
        ((None, 1.0), "two floats, two integers or a list of levels"),
        ((0, 2**63), r"finite numbers, and integers up to 2\*\*62"),
        ((-(10**400), 0), r"finite numbers, and integers up to 2\*\*62"),
        ((0.0, Decimal("sNaN")), "finite numbers"),
    ],
)
def test_bounds_are_numbers(bounds, words):
    with pytest.raises(SpaceError, match=rf"the bounds of 'x' are \(.*; give {words}"):
        Encoder({"x": bounds})
    assert Encoder({"x": (0, 2**62)}).dimensions[0].upper == 2**62


def test_booleans_are_no_bounds():
    with pytest.raises(SpaceError, match=r"the bounds of 'x' are \(False, True\); write \[False, True\] for"):
        Encoder({"x": (False, True)})


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ((1.0, 0.0), "is .1.0, 0.0.: .*larger"),
        ((3, 3), "is .3, 3.: .*larger"),
        (range(3), "a range cannot be a constant; give .*a list of levels"),
        (FloatDistribution(0, 1), "a FloatDistribution cannot be a constant"),
    ],
)
def test_an_entry_of_a_dictionary_that_is_no_parameter_is_refused(entry, words):
    with pytest.raises(SpaceError, match=f"the parameter 'x' {'' if isinstance(entry, tuple) else 'is .*'}{words}"):
        Encoder({"x": entry, "y": (0.0, 1.0)})


@pytest.mark.parametrize("ordered", [False, True])
def test_none_and_its_name_are_not_both_levels(ordered):
    with pytest.raises(SpaceError, match="'a' has the levels None and 'None', which have the same label; rename one"):
        Encoder(ConfigurationSpace([Categorical("a", [None, "b", "None"], ordered=ordered)]))
