from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition
from testing_spaces import conditional_space, mixed_space, plain_space

from slayr_py import SpaceError
from slayr_py.space import Encoder


def test_arrays_and_frames_encode_like_mappings(any_space):
    any_space.seed(4)
    configs = any_space.sample_configuration(10)
    encoder = Encoder(any_space)
    frame = pd.DataFrame([dict(c) for c in configs], dtype=object)
    assert np.array_equal(encoder.encode(frame).unit_values, encoder.encode(configs).unit_values)
    array = np.array([[c.get(name) for name in encoder.names] for c in configs], dtype=object)
    assert np.array_equal(encoder.encode(array).unit_values, encoder.encode(configs).unit_values)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"x": 0.5}, "parameter 'z' has no value"),
        ({"x": 0.5, "z": 0.0, "q": 1}, "no parameter 'q' (= 1)"),
        ({"x": 2.0, "z": 0.0}, "'x' is 2.0; give a number from 0.0 to 1.0"),
        ({"x": float("nan"), "z": 0.0}, "is nan; give a number"),
        ({"x": "high", "z": 0.0}, "is 'high'; give a number"),
        ({"x": [0.5], "z": 0.0}, "is [0.5]; give a number"),
        ({"x": None, "z": 0.0}, "'x' is None; give a number from 0.0 to 1.0"),
        ({"x": Decimal("1.5"), "z": 0.0}, "is Decimal('1.5'); give a number"),
        ({"x": Decimal("sNaN"), "z": 0.0}, "is Decimal('sNaN'); give a number"),
        ({"x": Fraction(10**400), "z": 0.0}, "'x' is Fraction(1000"),
        ({"x": 10**400, "z": 0.0}, "'x' is 1000"),
        ({"x": 1 + 1e-12, "z": 0.0}, "is 1.000000000001; give a number from 0.0 to 1.0"),
        ({1: 0.1, "z": 0.0}, "no parameter 1 (= 0.1); known: x, z"),
        (3, "mapping"),
    ],
)
def test_invalid_configurations_are_named(config, words):
    with pytest.raises(SpaceError, match="configuration 1: ") as error:
        Encoder(plain_space()).encode([{"x": 0.1, "z": 0.0}, config])
    assert words in str(error.value)


MIXED = {"lr": 1e-2, "layers": 2, "units": 64, "act": "tanh", "size": "large", "dataset": "iris"}
POLY = {"kernel": "poly", "C": 1.0, "degree": 3, "gamma": 0.1, "coef0": 0.5}


@pytest.mark.parametrize(
    ("space", "config", "words"),
    [
        (mixed_space, MIXED | {"act": "relo"}, "'act' has no level 'relo'; did you mean 'relu'"),
        (lambda: {"size": [16, 32]}, {"size": "32"}, "'size' has no level '32'; give 32, of type int"),
        (mixed_space, MIXED | {"size": np.zeros(2)}, "'size' has no level array([0., 0.])"),
        (mixed_space, MIXED | {"size": pd.NA}, "'size' has no level <NA>"),
        (mixed_space, MIXED | {"layers": 9}, "'layers' is 9; give a number from 1 to 5"),
        (mixed_space, MIXED | {"layers": 2.5}, "'layers' is 2.5; give an integer"),
        (mixed_space, MIXED | {"dataset": "digits"}, "'dataset' is the constant 'iris', not 'digits'"),
        (mixed_space, MIXED | {"sise": 1}, "no parameter 'sise' (= 1); did you mean 'size'"),
        (mixed_space, POLY, "no parameter 'kernel'"),
        (conditional_space, {"kernel": "rbf", "C": 1.0}, "'gamma' has no value although it is active: gamma | kernel"),
        (conditional_space, POLY | {"degree": 4}, "'coef0' has a value although it is inactive: coef0 | degree == 3"),
        (conditional_space, POLY | {"marker": 7}, "'marker' has a value although it is inactive: marker | kernel"),
        (conditional_space, {"kernel": "poly", "C": 1, "degree": 5, "gamma": 1}, "(kernel == 'poly' && degree == 5)"),
    ],
)
def test_invalid_values_are_named(space, config, words):
    encoder = Encoder(space())
    for read in (encoder.configuration, lambda config: encoder.encode([config])):
        with pytest.raises(SpaceError) as error:
            read(config)
        assert words in str(error.value)


def test_decimals_and_fractions_are_numbers():
    space = ConfigurationSpace({"x": (0.0, 1.0), "n": (1, 5), "level": [0.1, 0.2], "k": 0.3})
    space.add(Categorical("odd", [Decimal("0.1"), Decimal("0.2")]))
    encoder = Encoder(space)
    given = {"x": Decimal("0.1"), "n": Fraction(4, 2), "level": Decimal("0.2"), "k": Decimal("0.3")}
    plain = {"x": 0.1, "n": 2, "level": 0.2, "k": 0.3}
    odd = {"odd": Decimal("0.2")}
    assert np.array_equal(*(encoder.encode([each | odd]).unit_values for each in (given, plain)))
    assert encoder.fix(given).values == encoder.fix(plain).values
    with pytest.raises(SpaceError, match=r"'n' is Fraction\(3, 2\); give an integer"):
        encoder.encode([plain | odd | {"n": Fraction(3, 2)}])
    with pytest.raises(SpaceError, match=r"'level' has no level Decimal\('0.3'\)"):
        encoder.encode([plain | odd | {"level": Decimal("0.3")}])


def test_configurations_of_another_space_raise():
    other = plain_space().sample_configuration()
    with pytest.raises(SpaceError, match="configuration 0: there is no parameter 'x'"):
        Encoder(mixed_space()).encode([other])
    assert Encoder(plain_space()).encode([other]).unit_values.shape == (1, 2)  # an equal space is accepted


def test_constants_may_be_omitted():
    encoder = Encoder(mixed_space())
    config = encoder.configuration({name: MIXED[name] for name in encoder.names})
    assert dict(config) == MIXED
    config.check_valid_configuration()


def test_none_in_a_table_is_a_level_or_an_empty_cell():
    space = ConfigurationSpace([Categorical("c", [None, "a"]), Categorical("d", ["a", "b"])])
    space.add(EqualsCondition(space["d"], space["c"], "a"))
    encoder = Encoder(space)
    rows = [{"c": None}, {"c": "a", "d": "b"}]
    encoded = encoder.encode(rows)
    for table in (pd.DataFrame(rows, dtype=object), np.array([[None, None], ["a", "b"]], dtype=object)):
        again = encoder.encode(table)
        assert np.array_equal(again.unit_values, encoded.unit_values) and np.array_equal(again.active, encoded.active)


def test_arrays_of_a_wrong_shape_or_space_raise():
    encoder = Encoder(plain_space())
    with pytest.raises(SpaceError, match=r"\(n, 2\)"):
        encoder.encode(np.zeros((3, 5)))
    with pytest.raises(SpaceError, match="a single mapping; put it into a list"):
        encoder.encode({"x": 0.5, "z": 0.0})
    with pytest.raises(SpaceError, match="another space"):
        encoder.encode(Encoder(mixed_space()).encode(Encoder(mixed_space()).sobol(1, 0)))


def test_a_table_of_trials_has_configurations(any_space):
    encoder = Encoder(any_space)
    configs = encoder.sobol(5, 1)
    rows = [{f"params_{name}": value for name, value in dict(config).items()} for config in configs]
    table = pd.DataFrame(rows, dtype=object).assign(number=range(5), value=1.5, state="COMPLETE")
    read = encoder.encode(table)
    np.testing.assert_array_equal(read.unit_values, encoder.encode(configs).unit_values)
    np.testing.assert_array_equal(read.active, encoder.encode(configs).active)


def test_tables_with_other_columns_in_another_order(any_space):
    encoder = Encoder(any_space)
    configs = encoder.sobol(6, 4)
    table = pd.DataFrame([dict(c) for c in configs], dtype=object)
    table = table[sorted(table.columns, reverse=True)].assign(loss=1.5, note="fast")
    table[17] = "numbers may name columns"
    encoded = encoder.encode(table, other_columns=True)
    assert np.array_equal(encoded.unit_values, encoder.encode(configs).unit_values)
    with pytest.raises(SpaceError, match="configuration 0: there is no parameter '(loss|note|17)'"):
        encoder.encode(table)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (["x"], "the table has no column for parameter 'z'"),
        (["x", "Z", "loss"], "the table has no column for parameter 'z'; did you mean 'Z'"),
        (["xx", "z", "loss"], "the table has no column for parameter 'x'; did you mean 'xx'"),
        (["x", "z", "x"], "the table has more than one column 'x'"),
    ],
)
def test_missing_and_ambiguous_columns_are_named(columns, words):
    with pytest.raises(SpaceError, match=f"^{words}"):
        Encoder(plain_space()).encode(pd.DataFrame(np.full((2, len(columns)), 0.5), columns=columns))


def test_the_column_of_a_parameter_that_is_never_active_may_be_missing():
    encoder = Encoder(conditional_space())
    rows = [{"kernel": "linear", "C": 1.0}, {"kernel": "rbf", "C": 1.0, "gamma": 0.1, "marker": 7}]
    assert np.array_equal(encoder.encode(pd.DataFrame(rows)).active, encoder.encode(rows).active)
    with pytest.raises(SpaceError, match="configuration 1: parameter 'gamma' has no value although it is active"):
        encoder.encode(pd.DataFrame(rows).drop(columns="gamma"))
