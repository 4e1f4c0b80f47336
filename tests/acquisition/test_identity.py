from __future__ import annotations

import numpy as np
from ConfigSpace import ConfigurationSpace, Float, Integer

from slayr_py.acquisition.identity import distinct, keys, members
from slayr_py.space import Encoded, Encoder


def test_a_configuration_keeps_its_key_when_it_is_evaluated(any_space):
    encoder = Encoder(any_space)
    encoded, allowed = encoder.resolve(encoder.from_uniform(np.random.default_rng(0).random((300, len(encoder.names)))))
    encoded = encoded[allowed]
    again = encoder.encode([dict(config) for config in encoder.decode(encoded)])
    # Rounding to 9 decimals may part two coordinates that differ in the 16th, once in millions of them.
    assert np.mean([a == b for a, b in zip(keys(encoded), keys(again), strict=True)]) > 0.99


def test_values_that_keep_few_digits_are_told_apart_as_they_are_evaluated():
    """ConfigSpace keeps 13 decimals: of a rate near 1e-12 that is one digit."""
    encoder = Encoder(ConfigurationSpace([Float("rate", (1e-12, 1.0), log=True)]))
    near, _ = encoder.resolve(np.array([[0.02], [0.0201], [0.9], [0.9001]]))
    first, second, third, fourth = keys(near)
    assert first == second and third != fourth
    assert encoder.decode(near)[0] == encoder.decode(near)[1]


def test_inactive_coordinates_do_not_count(any_space):
    encoder = Encoder(any_space)
    genotypes = encoder.from_uniform(np.random.default_rng(1).random((50, len(encoder.names))))
    encoded, _ = encoder.resolve(genotypes)
    other = encoder.from_uniform(np.random.default_rng(2).random(genotypes.shape))
    again, _ = encoder.resolve(np.where(encoded.active, genotypes, other))
    assert keys(encoded) == keys(again)


def test_the_first_of_equal_rows_stays():
    encoder = Encoder(ConfigurationSpace([Float("a", (0.0, 1.0)), Integer("b", (0, 4))]))
    values = np.array([[0.5, 0.25], [0.0, 0.25], [0.5, 0.25], [-0.0, 0.25], [0.501, 0.25]])
    encoded = Encoded(values, np.ones((5, 2), dtype=bool), encoder)
    assert distinct(encoded).tolist() == [0, 1, 4]
    assert distinct(encoded, decimals=2).tolist() == [0, 1]
    assert members(encoded, {keys(encoded)[1]}).tolist() == [False, True, False, True, False]


def test_a_configuration_beside_an_evaluated_one_is_the_same():
    encoder = Encoder(ConfigurationSpace([Float("x", (1e-3, 1e3), log=True)]))
    same, other = (
        keys(encoder.encode([{"x": 1e-3}, {"x": 1e-3 * (1 + 1e-10)}])),
        keys(encoder.encode([{"x": 1.001e-3}])),
    )
    assert same[0] == same[1] != other[0]
