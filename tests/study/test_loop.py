from __future__ import annotations

import io
import math
from contextlib import redirect_stderr

import numpy as np
import optuna
import pytest
from ConfigSpace import ConfigurationSpace
from optuna.trial import TrialState

from slayr_py.errors import DataError, InferenceError, ObjectiveError, SpaceError, StorageError, ToolchainError
from slayr_py.kernels import Matern
from slayr_py.study import minimize
from slayr_py.study.storage.attributes import FAILURE_KEY


def branin(config):
    x, y = config["x"], config["y"]
    return (
        (y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6) ** 2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10
    )


@pytest.mark.slow
@pytest.mark.stan
def test_branin_is_found_in_25_evaluations(plane):
    result = minimize(
        branin, plane, budget=25, n_initial=8, seed=2, progress=False, method="nuts", chains=2, warmup=100, draws=100
    )
    assert result.best_value < 0.45  # the minimum is 0.397887; one random point in a thousand is as good
    assert branin(result.best_config) == result.best_value
    assert len(result.trials) == 25


def test_the_result_is_a_reading_of_the_study(mixed):
    result = minimize(lambda c: c["rate"], mixed, budget=6, n_initial=6, seed=1, progress=False)
    table = result.trials
    assert list(table.columns) == ["number", "value", "state", *(f"params_{name}" for name in mixed)]
    assert table["number"].tolist() == list(range(6)) and set(table["state"]) == {"COMPLETE"}
    assert table["value"].dtype == np.float64
    assert result.best_value == table["value"].min() == result.best_config["rate"]
    assert isinstance(result.study, optuna.Study)
    assert (table["params_degree"].notna() == (table["params_kernel"] == "poly")).all()
    assert f"best_value={result.best_value:.6g}" in repr(result)


def test_the_posterior_of_a_result(plane, quick):
    result = minimize(branin, plane, budget=5, n_initial=5, seed=1, progress=False, **quick)
    prediction = result.posterior().predict([result.best_config])
    assert prediction.mean.shape == (1,) and abs(prediction.mean[0] - result.best_value) < 10


def test_a_stopped_study_goes_on_as_if_it_never_had(plane, tmp_path, quick):
    def run(name, *budgets):
        url = f"sqlite:///{tmp_path / name}.db"
        for budget in budgets:
            result = minimize(
                branin, plane, budget=budget, n_initial=4, seed=9, storage=url, study_name="s", progress=False, **quick
            )
        return result.trials

    whole = run("whole", 7)
    assert len(whole) == 7
    assert run("parts", 2, 5, 7, 7, 3).equals(whole)


def test_maximising_gives_the_greatest(plane):
    result = minimize(lambda c: -branin(c), plane, budget=8, n_initial=8, seed=1, direction="maximize", progress=False)
    assert result.best_value == result.trials["value"].max()


def test_a_failing_objective_fails_its_trial_and_the_study_goes_on(plane):
    answers = iter([1.0, ValueError("diverged"), 2.0, None, float("nan"), "0.5", 3.0, float("inf")])

    def objective(config):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    result = minimize(objective, plane, budget=8, n_initial=8, seed=1, progress=False)
    states = ["COMPLETE", "FAIL", "COMPLETE", "FAIL", "FAIL", "FAIL", "COMPLETE", "FAIL"]
    assert result.trials["state"].tolist() == states
    assert result.best_value == 1.0
    reasons = [trial.user_attrs.get(FAILURE_KEY, "") for trial in result.study.trials]
    for reason, word in zip(reasons, ["", "diverged", "", "return statement", "nan", "'0.5'", "", "inf"], strict=True):
        assert word in reason and bool(reason) == bool(word)


def test_three_failures_in_a_row_stop_the_study_and_keep_it(plane, tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    calls = []

    def objective(config):
        calls.append(config)
        if len(calls) in (2, 3) or len(calls) > 4:
            raise OSError("disk on fire")
        return 1.0

    with pytest.raises(ObjectiveError, match="3 trials in a row failed.*trial 6 at .*disk on fire") as caught:
        minimize(objective, plane, budget=20, n_initial=20, seed=1, storage=url, study_name="s", progress=False)
    assert isinstance(caught.value.__cause__, OSError)
    stored = optuna.load_study(study_name="s", storage=url)
    assert [t.state.name for t in stored.trials] == ["COMPLETE", "FAIL", "FAIL", "COMPLETE", "FAIL", "FAIL", "FAIL"]


@pytest.mark.stan
def test_values_that_are_not_finite_never_stop_the_study(plane):
    result = minimize(lambda c: float("nan"), plane, budget=5, n_initial=3, seed=1, progress=False)
    assert result.trials["state"].tolist() == ["FAIL"] * 5
    with pytest.raises(DataError, match="no trial with a finite value.*nan"):
        _ = result.best_config


def test_failures_are_not_fitted_and_their_points_not_suggested_again(plane, quick):
    seen = []

    def objective(config):
        seen.append((config["x"], config["y"]))
        return float("nan") if config["x"] > 2 else branin(config)

    minimize(objective, plane, budget=9, n_initial=5, seed=1, progress=False, **quick)
    assert len(set(seen)) == 9


def test_an_interrupt_leaves_a_consistent_study(plane, tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"

    def objective(config):
        if len(optuna.load_study(study_name="s", storage=url).trials) == 3:
            raise KeyboardInterrupt
        return 1.0

    arguments = {"budget": 5, "n_initial": 5, "seed": 1, "storage": url, "study_name": "s", "progress": False}
    with pytest.raises(KeyboardInterrupt):
        minimize(objective, plane, **arguments)
    stored = optuna.load_study(study_name="s", storage=url)
    assert [t.state for t in stored.trials] == [TrialState.COMPLETE, TrialState.COMPLETE, TrialState.RUNNING]
    assert minimize(lambda c: 1.0, plane, **arguments).trials["state"].tolist() == ["COMPLETE"] * 5


def test_a_missing_compiler_is_reported_before_anything_is_evaluated(plane, monkeypatch):
    def missing(self, progress=None):
        raise ToolchainError("install g++")

    monkeypatch.setattr("slayr_py.inference.GaussianProcess.prepare", missing)
    calls = []
    with pytest.raises(ToolchainError, match="install g"):
        minimize(lambda c: calls.append(c) or 1.0, plane, budget=11, n_initial=10, progress=False)
    # The design of a small space is shorter than it was asked to be.
    with pytest.raises(ToolchainError, match="install g"):
        minimize(lambda c: calls.append(c) or 1.0, ConfigurationSpace({"k": ["a", "b"]}), budget=3, progress=False)
    assert calls == []
    # A budget that ends with the design needs no Stan at all.
    assert minimize(branin, plane, budget=4, n_initial=4, progress=False).best_value > 0


def test_a_fit_that_fails_does_not_end_the_study(plane, monkeypatch):
    def broken(self, *arguments, **options):
        raise InferenceError("chain 1 died")

    monkeypatch.setattr("slayr_py.inference.GaussianProcess.fit", broken)
    monkeypatch.setattr("slayr_py.inference.GaussianProcess.prepare", lambda self, progress=None: None)
    with pytest.warns(RuntimeWarning, match="chain 1 died"):
        result = minimize(branin, plane, budget=3, n_initial=2, seed=1, progress=False)
    assert len(result.trials) == 3


def test_callbacks_may_stop_the_study(plane):
    result = minimize(
        branin,
        plane,
        budget=9,
        n_initial=9,
        progress=False,
        callbacks=[lambda study, trial: study.stop() if trial.number == 2 else None],
    )
    assert len(result.trials) == 3


def test_a_timeout_starts_no_further_trial(plane):
    result = minimize(branin, plane, budget=1000, n_initial=1000, seed=1, progress=False, timeout=0.2)
    assert 0 < len(result.trials) < 1000


def test_optunas_verbosity_is_as_it_was(plane):
    before = optuna.logging.get_verbosity()
    minimize(branin, plane, budget=2, n_initial=2, progress=False)
    assert optuna.logging.get_verbosity() == before


@pytest.mark.stan
def test_the_bar_says_what_is_done_and_how_the_fit_went(plane):
    drawn = io.StringIO()
    with redirect_stderr(drawn):
        minimize(branin, plane, budget=5, n_initial=4, seed=1, method="nuts", chains=2, warmup=100, draws=100)
    text = drawn.getvalue()
    assert text.count("kernel: Matérn kernel (p = 2), chosen because all parameters are real\n") == 1
    for words in ("compiling", "evaluating", "fitting", "maximising", "5/5", "best ", "rhat ", "ess ", "div ", "done"):
        assert words in text
    drawn = io.StringIO()
    with redirect_stderr(drawn):
        minimize(branin, plane, budget=2, n_initial=2, progress=False)
    assert drawn.getvalue() == ""


def test_a_resumed_study_says_that_its_kernel_is_another(plane):
    arguments = {"n_initial": 2, "storage": optuna.storages.InMemoryStorage(), "study_name": "s"}
    minimize(branin, plane, budget=1, progress=False, **arguments)
    drawn = io.StringIO()
    with redirect_stderr(drawn):
        minimize(branin, plane, budget=2, kernel=Matern(p=1), **arguments)
    assert (
        "kernel: Matérn kernel (p = 1); the study was started with another kernel: Matérn kernel (p = 2), "
        "chosen because"
    ) in drawn.getvalue()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"budget": 0}, DataError, "budget"),
        ({"budget": 2.5}, DataError, "2.5"),
        ({"timeout": 0}, DataError, "timeout"),
        ({"direction": "down"}, DataError, "'down'"),
        ({"kernel": "mattern"}, DataError, "did you mean 'matern'"),
        ({"acquisition": "eii"}, DataError, "did you mean"),
        ({"storage": "study.db"}, StorageError, "sqlite:///study.db"),
        ({"initial_configs": [{"x": 0.0}]}, SpaceError, "no value"),
        ({"space": ConfigurationSpace()}, SpaceError, "empty"),
        ({"objective": 3}, DataError, "objective must be a function"),
    ],
)
def test_bad_input_is_named_before_anything_happens(plane, options, error, words):
    calls = []
    arguments = {"objective": lambda c: calls.append(c) or 1.0, "space": plane, "progress": False, **options}
    with pytest.raises(error, match=words):
        minimize(**arguments)
    assert calls == []


def test_a_stored_study_of_another_direction_or_space_is_refused(plane, mixed):
    storage = optuna.storages.InMemoryStorage()
    arguments = {"budget": 1, "n_initial": 1, "storage": storage, "study_name": "s", "progress": False}
    minimize(branin, plane, **arguments)
    with pytest.raises(DataError, match="started with direction 'minimize'"):
        minimize(branin, plane, direction="maximize", **arguments)
    with pytest.raises(SpaceError, match="another space"):
        minimize(lambda c: 1.0, mixed, **arguments)
