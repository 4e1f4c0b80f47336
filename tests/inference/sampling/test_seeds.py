"""Seeds of fits, rounds and retries."""

from __future__ import annotations

import json

import numpy as np
import pytest
from testing_fits import quick_fit, recorded_fit

import slayr_py as sl
from slayr_py.inference.sampling.seeds import retry_seed, stan_seed


@pytest.mark.stan
def test_same_seed_same_draws_and_other_seed_other_draws():
    y = [1.0, 3.0, 2.0, 5.0]
    first = quick_fit(y)
    second = quick_fit(y)
    other = quick_fit(y, seed=2)
    for name in first.draws:
        assert np.array_equal(first.draws[name], second.draws[name])
        assert not np.array_equal(first.draws[name], other.draws[name])
    assert first.record["draws_sha256"] == second.record["draws_sha256"]


@pytest.mark.stan
def test_numpy_integers_are_accepted():
    posterior = quick_fit([1.0, 3.0, 2.0], seed=np.int64(4))
    assert json.loads(json.dumps(posterior.record))["arguments"]["seed"] == 4
    assert np.array_equal(posterior.draws["mu"], quick_fit([1.0, 3.0, 2.0], seed=4).draws["mu"])


def test_distinct_seeds_stay_distinct_and_in_range():
    seeds = [0, 1, 2, 2_147_483_397, 2_147_483_398, 2**40, 2**63]
    made = [stan_seed(s) for s in seeds]
    assert len(set(made)) == len(seeds) and min(made) >= 1 and max(made) <= 2_147_483_398


def test_no_retry_has_the_seed_of_a_round():
    parts = {stan_seed(7, part) for part in range(20)} | {stan_seed(7 + i) for i in range(20)}
    retries = [stan_seed(retry_seed(7, i)) for i in (1, 2, 3)]
    assert len(set(retries)) == 3 and not parts & set(retries)


@pytest.mark.stan
def test_distinct_seeds_give_distinct_streams():
    fits = [recorded_fit(seed=seed, ess=10_000, draws=10) for seed in (0, 1, 2)]
    assert all(len(posterior.record["arguments"]["rounds"]) > 2 for posterior in fits)
    seeds = [call["seed"] for posterior in fits for call in posterior.record["calls"]]
    assert len(set(seeds)) == len(seeds)
    draws = [posterior.idata["posterior"]["mu"].values for posterior in fits]
    first = [values[chain, :10] for values in draws for chain in range(2)]
    assert len({values.tobytes() for values in first}) == 6, "no chain of one seed equals a chain of another"
    for values in draws:
        # A rejected trajectory repeats a draw; a stream that is used twice would repeat the random numbers.
        assert len(np.unique(values)) > 0.5 * values.size
    made = [stan_seed(seed, part) for seed in range(300) for part in range(10)]
    assert len(set(made)) == len(made)


@pytest.mark.parametrize("seed", [-1, 1.5])
def test_illegal_seeds(seed):
    with pytest.raises(sl.DataError, match="seed"):
        quick_fit([1.0, 2.0], seed=seed)
