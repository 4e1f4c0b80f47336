"""Thinned draws of a fit, and systematic resampling of the draws of several fits."""

from __future__ import annotations

import numpy as np

from slayr_py.inference.prediction.draws import counts, evenly, thinned


def test_numbers_of_draws_are_proportional_to_the_weights():
    weights = np.array([0.55, 0.0, 0.307, 0.143, 0.0])
    grid = (np.arange(1000) + 0.5) / 1000
    drawn = np.array([counts(weights, 10, offset) for offset in grid])
    assert (drawn.sum(axis=1) == 10).all() and (np.abs(drawn - 10 * weights) < 1).all()
    np.testing.assert_allclose(drawn.mean(axis=0), 10 * weights, atol=0.01)
    assert counts(weights, 7, 0.0).sum() == 7 and not counts(weights, 7, 0.0)[[1, 4]].any()
    assert counts(np.full(10, 0.1), 10, 0.0).tolist() == [1] * 10  # the sum of these weights is below 1


def test_rows_are_evenly_spaced_and_repeat_only_if_there_are_too_few():
    assert evenly(8, 4).tolist() == [1, 3, 5, 7] and evenly(5, 5).tolist() == [0, 1, 2, 3, 4]
    assert evenly(1, 3).tolist() == [0, 0, 0] and evenly(4, 0).tolist() == []


def test_each_chain_gives_the_same_number_of_its_draws():
    assert thinned(12, 2, 6).tolist() == [0, 2, 5, 6, 8, 11] and thinned(12, 2, 12).tolist() == list(range(12))
    assert thinned(12, 2, 7).tolist() == thinned(12, 2, 6).tolist() and thinned(12, 2, 50).tolist() == list(range(12))
