"""P-values and bands of ranks against all possible ranks."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import slayr_py as sl
from slayr_py.inference.validation.uniformity import ecdf_band, ecdf_p_value


@pytest.mark.parametrize(("n", "draws"), [(1, 3), (4, 3), (6, 2)])
def test_p_values_against_all_possible_ranks(n, draws):
    outcomes = list(product(range(draws + 1), repeat=n))
    p_values = np.array([ecdf_p_value(ranks, draws) for ranks in outcomes])
    # All outcomes are equally likely; the p-value of each is the share of outcomes that are at least as extreme.
    shares = [np.mean(p_values <= p + 1e-9) for p in p_values]
    np.testing.assert_allclose(p_values, shares, atol=1e-9)


def test_band_is_where_the_p_value_turns():
    n = 5
    draws = 3
    outcomes = list(product(range(4), repeat=5))
    lower, upper = ecdf_band(n, draws, probability=0.8)
    below = np.array([np.cumsum(np.bincount(ranks, minlength=draws + 1))[:-1] / n for ranks in outcomes])
    inside = np.all((below >= lower - 1e-9) & (below <= upper + 1e-9), axis=1)
    np.testing.assert_array_equal(inside, [ecdf_p_value(ranks, draws) > 0.2 for ranks in outcomes])
    assert 0.8 <= inside.mean() < 1


def test_ranks_out_of_range():
    with pytest.raises(sl.DataError, match="from 0 to 9"):
        ecdf_p_value([3, 10], 9)
