from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import (
    Categorical,
    Configuration,
    ConfigurationSpace,
    Constant,
    EqualsCondition,
    Integer,
)
from testing_spaces import conditional_space, mixed_space, plain_space

from slayr_py import SpaceError
from slayr_py.space import Encoder


def test_decode_inverts_encode_to_the_last_digit(any_space):
    any_space.seed(1)
    configs = any_space.sample_configuration(300)
    encoder = Encoder(any_space)
    assert encoder.decode(encoder.encode(configs)) == configs


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


def test_names_follow_the_space_without_constants():
    space = mixed_space()
    encoder = Encoder(space)
    assert encoder.names == tuple(k for k in space if k != "dataset")
    assert set(encoder.real_names) == {"lr", "layers", "units"}
    assert set(encoder.graph_names) == {"act", "size"}
    assert len(encoder.column_names) == 3 + 3 + 1


def test_known_unit_values():
    encoder = Encoder(mixed_space())
    config = {"lr": 1e-4 * 1000**0.25, "layers": 2, "units": 64, "act": "tanh", "size": "large", "dataset": "iris"}
    row = dict(zip(encoder.names, encoder.encode([config]).unit_values[0], strict=True))
    assert row["lr"] == pytest.approx(0.25)
    assert row["layers"] == pytest.approx(0.25)
    assert row["units"] == pytest.approx(0.5)
    assert (row["act"], row["size"]) == (1, 2)


def test_conditions_determine_activity():
    encoder = Encoder(conditional_space())
    encoded = encoder.encode([{"kernel": "linear", "C": 1.0}, {"kernel": "rbf", "C": 1.0, "gamma": 0.1, "marker": 7}])
    active = pd.DataFrame(encoded.active, columns=encoder.names)
    assert active["gamma"].tolist() == [False, True]
    assert active["degree"].tolist() == [False, False]


def test_resolve_agrees_with_configspace():
    space = conditional_space()
    encoder = Encoder(space)
    genotype = encoder.from_uniform(np.random.default_rng(0).random((500, len(encoder.names))))
    encoded, allowed = encoder.resolve(genotype)
    poly5 = [c.get("kernel") == "poly" and c.get("degree") == 5 for c in _unchecked(encoder, encoded)]
    assert np.array_equal(~allowed, poly5) and not allowed.all()
    for config in encoder.decode(encoded[np.flatnonzero(allowed)]):
        config.check_valid_configuration()


def _unchecked(encoder, encoded):
    return [
        {d.name: d.value(v) for d, v, on in zip(encoder.dimensions, row, active, strict=True) if on}
        for row, active in zip(encoded.unit_values, encoded.active, strict=True)
    ]


def test_sobol_is_seeded_nested_and_valid(any_space):
    encoder = Encoder(any_space)
    long, short = encoder.sobol(20, 7), encoder.sobol(5, 7)
    assert long[:5] == short
    assert encoder.sobol(5, 8) != short
    for config in long:
        config.check_valid_configuration()


def test_sobol_fills_the_cube_evenly():
    encoder = Encoder(plain_space())
    values = encoder.encode(encoder.sobol(64, 0)).unit_values
    counts, _ = np.histogram(values[:, 0], bins=8, range=(0, 1))
    assert np.all(counts == 8)


def test_every_level_is_equally_likely():
    encoder = Encoder(ConfigurationSpace({"a": [1, 2, 3], "n": (1, 4)}))
    u = (np.arange(12) + 0.5) / 12
    genotype = encoder.from_uniform(np.column_stack([u, u]))
    assert np.bincount(genotype[:, encoder.names.index("a")].astype(int)).tolist() == [4, 4, 4]
    assert len(np.unique(genotype[:, encoder.names.index("n")])) == 4


def test_arrays_and_frames_encode_like_mappings(any_space):
    any_space.seed(4)
    configs = any_space.sample_configuration(10)
    encoder = Encoder(any_space)
    frame = pd.DataFrame([dict(c) for c in configs], dtype=object)
    assert np.array_equal(encoder.encode(frame).unit_values, encoder.encode(configs).unit_values)
    array = np.array([[c.get(name) for name in encoder.names] for c in configs], dtype=object)
    assert np.array_equal(encoder.encode(array).unit_values, encoder.encode(configs).unit_values)


def test_neighbours():
    by_name = {d.name: d for d in Encoder(mixed_space()).dimensions}
    assert by_name["act"].neighbours(0).tolist() == [1, 2]
    assert by_name["size"].neighbours(1).tolist() == [0, 2]
    assert [by_name["layers"].value(c) for c in by_name["layers"].neighbours(0.0)] == [2]
    assert by_name["lr"].neighbours(0.5).size == 0


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"x": 0.5}, "parameter 'z' has no value"),
        ({"x": 0.5, "z": 0.0, "q": 1}, "no parameter 'q' (= 1)"),
        ({"x": 2.0, "z": 0.0}, "'x' is a number from 0.0 to 1.0, not 2.0"),
        ({"x": float("nan"), "z": 0.0}, "not nan"),
        ({"x": "high", "z": 0.0}, "not 'high'"),
        ({"x": [0.5], "z": 0.0}, "not [0.5]"),
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
        (mixed_space, MIXED | {"size": np.zeros(2)}, "'size' has no level array([0., 0.])"),
        (mixed_space, MIXED | {"size": pd.NA}, "'size' has no level <NA>"),
        (mixed_space, MIXED | {"layers": 9}, "'layers' is a number from 1 to 5, not 9"),
        (mixed_space, MIXED | {"layers": 2.5}, "'layers' is an integer, not 2.5"),
        (mixed_space, MIXED | {"dataset": "digits"}, "'dataset' is the constant 'iris', not 'digits'"),
        (mixed_space, MIXED | {"sise": 1}, "no parameter 'sise' (= 1); did you mean 'size'"),
        (mixed_space, POLY, "no parameter 'kernel'"),
        (
            conditional_space,
            {"kernel": "rbf", "C": 1.0},
            "'gamma' has no value although it is active: gamma | kernel in",
        ),
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


def test_configuration_equals_that_of_configspace(any_space):
    encoder = Encoder(any_space)
    for config in encoder.sobol(20, 5):
        theirs = Configuration(any_space, values=dict(config))
        ours = encoder.configuration(dict(config))
        assert ours == theirs and list(ours) == list(theirs)
        assert np.array_equal(ours.get_array(), theirs.get_array(), equal_nan=True)
        assert encoder.configuration(theirs) is theirs


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
    with pytest.raises(SpaceError, match="single one"):
        encoder.encode({"x": 0.5, "z": 0.0})
    with pytest.raises(SpaceError, match="another space"):
        encoder.encode(Encoder(mixed_space()).encode(Encoder(mixed_space()).sobol(1, 0)))


def test_empty_spaces_raise():
    with pytest.raises(SpaceError, match="empty"):
        Encoder(ConfigurationSpace())
    with pytest.raises(SpaceError, match="empty"):
        Encoder(ConfigurationSpace([Constant("a", 1)]))
    with pytest.raises(SpaceError, match="list"):
        Encoder([1])


def test_one_hot_columns():
    encoder = Encoder(ConfigurationSpace([Integer("n", (0, 4)), Categorical("c", ["a", "b"])]))
    columns = dict(zip(encoder.column_names, encoder.encode([{"n": 1, "c": "b"}]).columns[0], strict=True))
    assert columns == {"n": 0.25, "c[a]": 0.0, "c[b]": 1.0}
