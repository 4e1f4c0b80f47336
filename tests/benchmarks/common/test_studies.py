from __future__ import annotations

import pandas as pd
import pytest

from benchmarks.common.problems import PROBLEMS
from benchmarks.common.studies import BASELINES, COLUMNS, best_after, run_all
from slayr_py.study import StanGPSampler

pytestmark = pytest.mark.stan

SAMPLERS = {
    "ours": lambda space, seed: StanGPSampler(space, kernel="matern", seed=seed, method="map"),
    "optuna-tpe": BASELINES["optuna-tpe"],
}
MIXED = {"func2c": PROBLEMS["func2c"]}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return two uninterrupted runs of each sampler."""
    return run_all(MIXED, SAMPLERS, 2, 14, tmp_path_factory.mktemp("whole") / "trials.csv")


def test_every_run_has_its_budget(whole):
    assert list(whole.columns) == COLUMNS
    assert len(whole) == 2 * 2 * 14
    assert (whole.groupby("sampler", observed=True)["seconds"].sum() > 0).all()


def test_an_interrupted_command_resumes_with_the_same_trials(whole, tmp_path):
    path = tmp_path / "trials.csv"
    run_all(MIXED, SAMPLERS, 1, 12, path)
    again = run_all(MIXED, SAMPLERS, 2, 14, path)
    same = ["problem", "sampler", "seed", "number", "value", "params"]
    pd.testing.assert_frame_equal(again[same], whole[same])


def test_stored_runs_are_not_repeated(whole, tmp_path):
    path = tmp_path / "trials.csv"
    whole.to_csv(path, index=False)
    text = path.read_text()
    run_all(MIXED, SAMPLERS, 2, 14, path)
    assert path.read_text() == text


def test_best_values_are_those_of_runs_that_are_long_enough():
    trials = pd.DataFrame(
        {"problem": "p", "sampler": "s", "seed": [0, 0, 0, 1, 1], "number": [0, 1, 2, 0, 1], "value": [3, 1, 0, 5, 6]}
    )
    assert best_after(trials, 2).to_dict() == {("p", "s", 0): 1, ("p", "s", 1): 5}
    assert best_after(trials, 3).to_dict() == {("p", "s", 0): 0}
