from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.common.constrained_problems import CONSTRAINED
from benchmarks.optimisation import constrained
from benchmarks.optimisation.peers import initial_design, peer


def runs(values, violations):
    """Return trials of gardner1, one row per seed."""
    values = np.asarray(values, dtype=float)
    violations = np.asarray(violations, dtype=float)
    seed, number = np.indices(values.shape)
    columns = {"seed": seed.ravel(), "number": number.ravel(), "value": values.ravel(), "exact": values.ravel()}
    trials = pd.DataFrame({"problem": "gardner1", "sampler": "random"} | columns)
    return trials.assign(violation=violations.ravel(), seconds=0.5, rhat=np.nan)


def test_infeasible_values_are_not_the_best():
    trials = runs([[-1, -3, 0, -1.5], [-2, -2, -2, -2]], [[1, 1, 0, -1], [1, 1, 1, 1]])
    printed = constrained.table(trials, CONSTRAINED, ["random", "absent"], 4)
    assert "| gardner1 | random | 0.5, 1/2 | 1.0 | nan |" in printed and "absent" not in printed
    printed = constrained.table(trials, CONSTRAINED, ["random"], 3)
    assert "| 2, 1/2 | 0.5 |" in printed
    assert "| 0/2 | 0.0 |" in constrained.table(trials, CONSTRAINED, ["random"], 2)


@pytest.mark.parametrize("name", ["random", "optuna-tpe", pytest.param("slayr:method=map", marks=pytest.mark.stan)])
def test_samplers_are_told_the_constraints(name):
    problem = CONSTRAINED["gardner1"]
    optimiser = peer(name).start(problem, 0)
    for params in initial_design(problem.space, 0):
        optimiser.tell(params, problem.objective(params), problem.constraints(params))
    params = optimiser.ask()
    optimiser.tell(params, problem.objective(params), problem.constraints(params))
    trials = optimiser.study.trials
    assert len(trials) == 11
    assert [trial.constraints for trial in trials] == [problem.constraints(trial.params) for trial in trials]


def test_the_command_resumes_and_prints_a_table(tmp_path, capsys):
    arguments = ["--samplers", "random", "--problems", "gardner1", "welded beam", "--seeds", "2"]
    constrained.main([*arguments, "--budget", "12", "--output", str(tmp_path)])
    stored = pd.read_csv(tmp_path / "constrained-random.csv")
    assert len(stored) == 2 * 2 * 12 and stored["violation"].notna().all()
    capsys.readouterr()
    constrained.main([*arguments, "--budget", "12", "--output", str(tmp_path), "--report"])
    printed = capsys.readouterr().out
    assert "| gardner1 | random |" in printed and "| welded beam | random |" in printed
    with pytest.raises(SystemExit, match="botorch cannot be told constraints"):
        constrained.main(["--samplers", "botorch"])
