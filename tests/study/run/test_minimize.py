from __future__ import annotations

import io
from contextlib import redirect_stderr

import numpy as np
import optuna
import pytest
from ConfigSpace import ConfigurationSpace
from testing_studies import branin

from slayr_py.errors import DataError, SpaceError, StorageError, ToolchainError
from slayr_py.kernels import Matern
from slayr_py.study import minimize


@pytest.mark.slow
@pytest.mark.stan
def test_branin_is_found_in_25_evaluations(plane):
    result = minimize(branin, plane, budget=25, n_initial=8, seed=2, chains=2, warmup=250, draws=250, progress=False)
    assert result.best_value < 0.45  # the minimum is 0.397887; one random point in a thousand is as good
    assert branin(result.best_config) == result.best_value
    assert len(result.trials) == 25


def test_a_resumed_study_equals_an_uninterrupted_one(plane, tmp_path, quick):
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


@pytest.mark.stan
def test_numpys_settings_in_the_objective_change_nothing(plane):
    def run(errors):
        def objective(config):
            np.seterr(all=errors)
            return branin(config)

        with np.errstate():
            result = minimize(objective, plane, 6, n_initial=4, seed=1, method="map", progress=False)
            prediction = result.posterior(method="map").predict([result.recommended.config])
            return result.trials, *prediction.interval(1 - 1e-9), result.optimum().draws

    trials, low, high, draws = run("raise")
    expected, *bounds, others = run("warn")
    assert trials.equals(expected) and [low, high] == bounds and draws.equals(others)


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


def test_phases_are_passed_to_the_user(plane, quick):
    phases = []
    minimize(branin, plane, budget=5, n_initial=4, on_progress=phases.append, progress=False, **quick)
    assert [phase.name for phase in phases] == ["compiling", "fitting", "maximising"]


def test_optunas_verbosity_is_restored(plane):
    before = optuna.logging.get_verbosity()
    minimize(branin, plane, budget=2, n_initial=2, progress=False)
    assert optuna.logging.get_verbosity() == before


def test_resuming_with_another_kernel_is_announced(plane):
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
        ({"noisy": "very"}, DataError, "noisy"),
        ({"seed": -1}, DataError, "seed"),
        ({"seed": 1.5}, DataError, "seed"),
        ({"acquisition": "eii"}, DataError, "did you mean"),
        ({"storage": "study"}, StorageError, "sqlite:///study.db"),
        ({"initial_configs": [{"x": 0.0}]}, SpaceError, "no value"),
        ({"space": ConfigurationSpace()}, SpaceError, "empty"),
        ({"objective": 3}, DataError, "objective must be a function"),
    ],
)
def test_invalid_arguments_raise_before_any_evaluation(plane, options, error, words):
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
