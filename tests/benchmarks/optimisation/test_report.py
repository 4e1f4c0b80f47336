from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.common.problems import PROBLEMS
from benchmarks.optimisation.report import best_values, rank_table, report


def runs(problem, sampler, curves):
    """Return trials whose observations are ``curves``, one row per seed, without noise."""
    curves = np.asarray(curves, dtype=float)
    seed, number = np.indices(curves.shape)
    columns = {"seed": seed.ravel(), "number": number.ravel(), "value": curves.ravel(), "exact": curves.ravel()}
    return pd.DataFrame({"problem": problem, "sampler": sampler} | columns).assign(seconds=0.5, rhat=np.nan)


def falling(last, seeds=2):
    """Return curves of 25 values that are 10 and at last ``last``."""
    return np.tile(np.r_[np.full(24, 10.0), last], (seeds, 1))


def test_best_values_are_exact_values_of_the_best_observations():
    trials = runs("p", "s", [[3, 1, 2], [5, 6, 4]]).assign(exact=[3.5, 1.5, 0.0, 5.5, 0.0, 4.5])
    trials = trials[~((trials["seed"] == 1) & (trials["number"] == 2))]
    best = best_values(trials.sample(frac=1.0, random_state=0), [1, 2, 3])
    assert best.loc[("p", "s", 0)].tolist() == [3.5, 1.5, 1.5]
    np.testing.assert_array_equal(best.loc[("p", "s", 1)], [5.5, 5.5, np.nan])


def test_ranks_use_the_runs_that_all_samplers_have():
    trials = pd.concat(
        [
            runs("ackley5", "a", falling(1.0)),
            runs("ackley5", "b", falling(2.0, seeds=1)),
            runs("powell8", "a", falling(2.0)),
            runs("powell8", "b", falling(1.0)),
            runs("jenatton", "a", falling(1.0)),
        ]
    )
    table = rank_table(best_values(trials, [25]), ["a", "b"])
    assert "| a | 1.50 |" in table and "(2 problems)" in table
    printed = report(trials, PROBLEMS, ["a", "b", "absent"], 25)
    assert "| ackley5 | a | **1** ± 0, 0/2 | 0.50 |  |" in printed
    assert "at 25 (3 problems)" in printed and "absent" not in printed
