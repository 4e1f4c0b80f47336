from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.common.constrained_problems import CONSTRAINED
from benchmarks.common.problems import PROBLEMS
from benchmarks.optimisation.peers import initial_design, peer
from benchmarks.optimisation.runs import COLUMNS, file_of, read_trials, run_all

MIXED = {"func2c": PROBLEMS["func2c"]}
SAME = ["problem", "sampler", "seed", "number", "value", "exact", "params"]


def trials_of(folder, sampler):
    return read_trials(folder, [sampler]).sort_values(["problem", "seed", "number"], ignore_index=True)


@pytest.mark.parametrize(
    "sampler", ["optuna-tpe", pytest.param("slayr:kernel=matern,method=map,warm_starts=false", marks=pytest.mark.stan)]
)
def test_an_interrupted_command_resumes_with_the_same_trials(sampler, tmp_path):
    run_all(MIXED, sampler, 2, 12, tmp_path / "whole")
    whole = trials_of(tmp_path / "whole", sampler)
    assert list(whole.columns) == COLUMNS and len(whole) == 2 * 12
    run_all(MIXED, sampler, 1, 11, tmp_path / "parts")
    run_all(MIXED, sampler, 2, 12, tmp_path / "parts")
    pd.testing.assert_frame_equal(trials_of(tmp_path / "parts", sampler)[SAME], whole[SAME])


def test_a_run_that_is_stored_without_configurations_starts_again(tmp_path):
    sampler = "slayr:method=map,kernel=matern"
    run_all(MIXED, sampler, 1, 3, tmp_path)
    path = file_of(tmp_path, sampler)
    pd.read_csv(path).assign(params=None).to_csv(path, index=False)
    run_all(MIXED, sampler, 1, 4, tmp_path)
    assert trials_of(tmp_path, sampler)["params"].notna().sum() == 4


def test_noise_is_added_to_the_value_only(tmp_path):
    problem = PROBLEMS["branin, noisy"]
    run_all({"branin, noisy": problem}, "random", 2, 50, tmp_path)
    rows = read_trials(tmp_path, ["random"])
    design = [problem.objective(params) for params in initial_design(problem.space, 0)]
    assert list(rows["exact"][rows["seed"] == 0][: len(design)]) == design
    assert np.std(rows["value"] - rows["exact"]) == pytest.approx(problem.noise, rel=0.2)


def test_a_failing_run_does_not_stop_the_others(tmp_path, capsys):
    def fail(config):
        raise ArithmeticError("no value")

    broken = PROBLEMS["branin"]._replace(objective=fail)
    run_all({"broken": broken, "branin": PROBLEMS["branin"]}, "random", 1, 12, tmp_path)
    assert "broken, random, seed 0 failed" in capsys.readouterr().out
    assert set(read_trials(tmp_path, ["random"])["problem"]) == {"branin"}


@pytest.mark.parametrize("sampler", ["random", pytest.param("slayr:method=map", marks=pytest.mark.stan)])
def test_samplers_are_told_the_constraints(sampler):
    problem = CONSTRAINED["gardner1"]
    optimiser = peer(sampler).start(problem, 0)
    for params in initial_design(problem.space, 0):
        optimiser.tell(params, problem.objective(params), problem.constraints(params))
    params = optimiser.ask()
    optimiser.tell(params, problem.objective(params), problem.constraints(params))
    trials = optimiser.study.trials
    assert [trial.constraints for trial in trials] == [problem.constraints(trial.params) for trial in trials]


def test_suggestions_of_a_batch_do_not_know_its_values(tmp_path, monkeypatch):
    kind = peer("random").kind
    pending = []
    ask = kind.ask
    monkeypatch.setattr(kind, "ask", lambda self: (pending.append(len(self.open)), ask(self))[1])
    run_all({"branin": PROBLEMS["branin"]}, "random", 1, 12, tmp_path, name="batch5", batch=5)
    assert pending == [0, 1, 2, 3, 4, 0, 1]  # after an initial design of five


def test_all_samplers_have_the_default_design_of_slayr():
    problem = MIXED["func2c"]
    sampler = peer("slayr").start(problem, 3)
    asked = []
    for _ in range(6):
        asked.append(sampler.ask())
        sampler.tell(asked[-1], problem.objective(asked[-1]))
    assert asked == initial_design(problem.space, 3)
