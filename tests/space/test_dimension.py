from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from testing_spaces import mixed_space

from slayr_py.space import Encoder


def test_known_unit_values():
    encoder = Encoder(mixed_space())
    config = {"lr": 1e-4 * 1000**0.25, "layers": 2, "units": 64, "act": "tanh", "size": "large", "dataset": "iris"}
    row = dict(zip(encoder.names, encoder.encode([config]).unit_values[0], strict=True))
    assert row["lr"] == pytest.approx(0.25)
    assert row["layers"] == pytest.approx(0.25)
    assert row["units"] == pytest.approx(0.5)
    assert (row["act"], row["size"]) == (1, 2)


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
