from __future__ import annotations

import numpy as np
from ConfigSpace import ConfigurationSpace, Float, Integer

from slayr_py.acquisition.identity import Taken, distinct, keys
from slayr_py.space import Encoded, Encoder


def test_decoding_and_encoding_keeps_the_key(any_space):
    encoder = Encoder(any_space)
    encoded, allowed = encoder.resolve(encoder.from_uniform(np.random.default_rng(0).random((300, len(encoder.names)))))
    encoded = encoded[allowed]
    again = encoder.encode([dict(config) for config in encoder.decode(encoded)])
    # Unit values that differ in the 16th decimal may rarely round to different 9th decimals.
    assert np.mean([a == b for a, b in zip(keys(encoded), keys(again), strict=True)]) > 0.99


def test_keys_use_values_as_configspace_rounds_them():
    """ConfigSpace keeps 13 decimals, one significant digit of a rate near 1e-12."""
    encoder = Encoder(ConfigurationSpace([Float("rate", (1e-12, 1.0), log=True)]))
    near, _ = encoder.resolve(np.array([[0.02], [0.0201], [0.9], [0.9001]]))
    first, second, third, fourth = keys(near)
    assert first == second and third != fourth
    assert encoder.decode(near)[0] == encoder.decode(near)[1]
    # Farther apart than the radius, but equal when they are evaluated.
    assert Taken(near[[0, 2]], 1e-5).contains(near).tolist() == [True, True, True, False]


def test_inactive_parameters_do_not_change_keys(any_space):
    encoder = Encoder(any_space)
    genotypes = encoder.from_uniform(np.random.default_rng(1).random((50, len(encoder.names))))
    encoded, _ = encoder.resolve(genotypes)
    other = encoder.from_uniform(np.random.default_rng(2).random(genotypes.shape))
    again, _ = encoder.resolve(np.where(encoded.active, genotypes, other))
    assert keys(encoded) == keys(again)


def test_distinct_keeps_the_first_of_equal_rows():
    encoder = Encoder(ConfigurationSpace([Float("a", (0.0, 1.0)), Integer("b", (0, 4))]))
    values = np.array([[0.5, 0.25], [0.0, 0.25], [0.5, 0.25], [-0.0, 0.25], [0.501, 0.25]])
    encoded = Encoded(values, np.ones((5, 2), dtype=bool), encoder)
    assert distinct(encoded).tolist() == [0, 1, 4]
    assert distinct(encoded, decimals=2).tolist() == [0, 1]
    assert Taken(encoded[[1]], 0.0).contains(encoded).tolist() == [False, True, False, True, False]
    assert Taken(encoded[[0]], 0.01).contains(encoded).tolist() == [True, False, True, False, True]


def test_neighbourhoods_have_equal_levels_and_activity(any_space):
    encoder = Encoder(any_space)
    encoded, allowed = encoder.resolve(encoder.from_uniform(np.random.default_rng(3).random((40, len(encoder.names)))))
    encoded = encoded[allowed]
    taken = Taken(encoded[:10])
    wanted = []
    for x, active in zip(encoded.unit_values, encoded.active, strict=True):
        near = False
        for z, other in zip(encoded.unit_values[:10], encoded.active[:10], strict=True):
            reach = np.where([d.is_real for d in encoder.dimensions], taken.radius, 0.0)
            near |= bool(np.array_equal(active, other) and np.all((np.abs(x - z) <= reach)[active]))
        wanted.append(near)
    assert taken.contains(encoded).tolist() == wanted
    assert not Taken(encoded[:0]).contains(encoded).any()


def test_nearly_equal_configurations_have_equal_keys():
    encoder = Encoder(ConfigurationSpace([Float("x", (1e-3, 1e3), log=True)]))
    same = keys(encoder.encode([{"x": 1e-3}, {"x": 1e-3 * (1 + 1e-10)}]))
    other = keys(encoder.encode([{"x": 1.001e-3}]))
    assert same[0] == same[1] != other[0]
