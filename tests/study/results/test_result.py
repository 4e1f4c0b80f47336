from __future__ import annotations

import numpy as np
import optuna
import pytest
from testing_studies import branin

from slayr_py.study import minimize
from slayr_py.study.results.result import trials_table


def test_result_reads_the_study(mixed):
    result = minimize(lambda c: c["rate"], mixed, budget=6, n_initial=6, seed=1, progress=False)
    table = result.trials
    assert list(table.columns) == ["number", "value", "state", *(f"params_{name}" for name in mixed)]
    assert table["number"].tolist() == list(range(6)) and set(table["state"]) == {"COMPLETE"}
    assert table["value"].dtype == np.float64
    assert result.best_value == table["value"].min() == result.best_config["rate"]
    assert isinstance(result.study, optuna.Study)
    assert (table["params_degree"].notna() == (table["params_kernel"] == "poly")).all()
    assert f"best_value={result.best_value:.6g}" in repr(result)


def test_best_value_is_the_largest_when_maximising(plane):
    result = minimize(lambda c: -branin(c), plane, budget=8, n_initial=8, seed=1, direction="maximize", progress=False)
    assert result.best_value == result.trials["value"].max()


def test_the_posterior_of_a_result(plane, quick):
    result = minimize(branin, plane, budget=5, n_initial=5, seed=1, progress=False, **quick)
    prediction = result.posterior().predict([result.best_config])
    assert prediction.mean.shape == (1,) and abs(prediction.mean[0] - result.best_value) < 10


@pytest.mark.stan
def test_the_posterior_of_a_maximised_study_predicts_its_values(plane, quick):
    options = {"seed": 1, "direction": "maximize", "progress": False, **quick}
    result = minimize(lambda c: 1000 - branin(c), plane, budget=5, n_initial=5, **options)
    assert result.posterior().predict([result.best_config]).mean[0] == pytest.approx(result.best_value, abs=10)


def test_trials_table_has_a_row_for_every_trial(small_study):
    assert trials_table(small_study)["state"].tolist() == ["COMPLETE", "COMPLETE", "FAIL", "RUNNING"]


def test_trials_table_of_a_study_of_another_sampler():
    study = optuna.create_study()
    study.optimize(lambda trial: trial.suggest_float("z", 0, 1), n_trials=2)
    assert trials_table(study).columns.tolist() == ["number", "value", "state", "params_z"]
