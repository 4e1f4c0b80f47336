from __future__ import annotations

import numpy as np
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from slayr_py.space import Encoder
from slayr_py.study.storage.flat_space import encode_partly, to_space, widest


def test_the_widest_of_two_ranges_has_the_values_of_both():
    assert widest(FloatDistribution(0, 2), FloatDistribution(-1, 1)) == FloatDistribution(-1, 2)
    assert widest(IntDistribution(1, 4, step=3), IntDistribution(4, 7, step=3)) == IntDistribution(1, 7, step=3)


def test_the_second_of_two_kinds_of_range_counts():
    kinds = (
        FloatDistribution(1, 2),
        FloatDistribution(1, 3, log=True),
        FloatDistribution(1, 3, step=0.5),
        IntDistribution(1, 2),
        IntDistribution(1, 9, log=True),
        IntDistribution(1, 9, step=2),
        CategoricalDistribution((1, 2)),
    )
    assert all(widest(one, other) == other for one in kinds for other in kinds if one is not other)


def test_missing_parameters_are_inactive_at_zero_and_an_illegal_value_gives_none():
    encoder = Encoder(to_space({"x": FloatDistribution(0, 1), "y": FloatDistribution(0, 1)}))
    whole, part, illegal = encode_partly(encoder, [{"x": 0.25, "y": 1.0}, {"y": 1.0}, {"x": 7.0}])
    assert whole.active.tolist() == [[True, True]] and part.active.tolist() == [[False, True]] and illegal is None
    np.testing.assert_allclose([whole.unit_values[0], part.unit_values[0]], [[0.25, 1.0], [0.0, 1.0]])
