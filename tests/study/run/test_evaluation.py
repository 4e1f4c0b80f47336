from __future__ import annotations

import re

import optuna
import pytest
from optuna.trial import TrialState
from testing_studies import branin

from slayr_py.errors import DataError, ObjectiveError
from slayr_py.processes import this_process
from slayr_py.study import create_study, minimize
from slayr_py.study.storage.attributes import FAILURE_KEY, WORKER_KEY, set_failure


@pytest.mark.parametrize(
    ("succeeds", "options", "stops"),
    [(False, {}, 3), (True, {}, 10), (True, {"max_consecutive_failures": 2}, 2), (False, {"failures": "ignore"}, 3)],
)
def test_failures_in_a_row_stop_the_study(plane, succeeds, options, stops):
    calls = []

    def objective(config):
        calls.append(config)
        if len(calls) == 1 and succeeds:
            return 1.0
        raise OSError

    with pytest.raises(ObjectiveError, match=f"{stops} trials in a row failed"):
        minimize(objective, plane, budget=20, n_initial=20, seed=1, progress=False, **options)
    assert len(calls) == stops + succeeds


def test_the_study_of_repeated_failures_is_kept(plane, tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    calls = []

    def objective(config):
        calls.append(config)
        if len(calls) in (2, 3) or len(calls) > 4:
            raise OSError("disk on fire")
        return 1.0

    with pytest.raises(ObjectiveError, match="3 trials in a row failed.*trial 6 at .*disk on fire") as caught:
        options = {"storage": url, "study_name": "s", "progress": False, "max_consecutive_failures": 3}
        minimize(objective, plane, budget=20, n_initial=20, seed=1, **options)
    assert isinstance(caught.value.__cause__, OSError)
    stored = optuna.load_study(study_name="s", storage=url)
    assert [t.state.name for t in stored.trials] == ["COMPLETE", "FAIL", "FAIL", "COMPLETE", "FAIL", "FAIL", "FAIL"]


def test_a_very_long_reason_of_a_failure_keeps_its_beginning_and_its_end(plane):
    def objective(config):
        raise OSError(f"first{'-' * 10**6}last")

    study = create_study(plane, seed=1, n_initial=1)
    with pytest.raises(ObjectiveError, match="raised OSError: first.*998009 characters are left out.*last"):
        minimize(objective, plane, budget=3, n_initial=3, seed=1, progress=False)
    trial = study.ask()
    set_failure(trial, f"first{'-' * 10**6}last")
    stored = study.trials[0].user_attrs[FAILURE_KEY]
    assert len(stored) < 4100 and stored.startswith("first-") and stored.endswith("-last")


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


ENQUEUED = [
    (
        {"kernel": "ploy"},
        "'ploy' of the parameter 'kernel' is not one of its levels; did you mean 'poly'. Its levels are 'rbf', 'poly'",
    ),
    ({"size": 7}, "value 7 of the parameter 'size' is not one of its levels; known: s, m, l"),
    ({"rate": 3.0}, "value 3.0 of the parameter 'rate' is outside its range, 0.0001 to 1.0; the nearest is 1.0"),
    ({"rate": "0.1"}, "value '0.1' of the parameter 'rate' is not a number from 0.0001 to 1.0"),
    ({"rate": float("nan")}, "value nan of the parameter 'rate' is outside its range"),
    ({"degree": 2.5}, "value 2.5 of the parameter 'degree' is not an integer from 1 to 8"),
    ({"version": 4}, "value 4 of the parameter 'version' is not one of its levels; known: 3"),
]


@pytest.mark.parametrize(("values", "words"), ENQUEUED, ids=[repr(row[0]) for row in ENQUEUED])
def test_an_enqueued_value_outside_the_space_fails_its_trial_and_the_study_continues(mixed, tmp_path, values, words):
    in_memory = "kernel" not in values
    storage = optuna.storages.InMemoryStorage() if in_memory else f"sqlite:///{tmp_path / 'study.db'}"
    study = create_study(mixed, n_initial=3, seed=1, storage=storage, study_name="s")
    for _ in range(3):  # as many as failures of the objective that stop a study
        study.enqueue_trial(values)
    study.enqueue_trial({"kernel": "rbf", "another": 1})
    undeclared = pytest.warns(UserWarning, match="trial 3 was enqueued with 'another', which is not declared")
    with undeclared, pytest.warns(RuntimeWarning, match=rf"trial \d fails: the enqueued .*{words}") as warned:
        result = minimize(lambda c: 1.0, mixed, 5, n_initial=5, seed=1, storage=storage, study_name="s", progress=False)
    # Garbage of other tests may be collected here.
    assert {each.filename for each in warned if each.category is not ResourceWarning} == {__file__}
    assert result.trials["state"].tolist() == ["FAIL"] * 3 + ["COMPLETE"] * 2
    first, *_, enqueued, _ = result.study.trials
    assert re.search(words, first.user_attrs[FAILURE_KEY]) and first.params == {}
    assert enqueued.params["kernel"] == "rbf"


def test_the_value_of_a_trial_that_was_finished_elsewhere_is_named(plane, tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"

    def objective(config):
        optuna.load_study(study_name="s", storage=url).tell(0, state=TrialState.FAIL)
        return 1.5

    with pytest.warns(RuntimeWarning, match=r"trial 0 was finished elsewhere as FAIL: its value 1.5 is dropped"):
        minimize(objective, plane, budget=1, n_initial=1, seed=1, progress=False, storage=url, study_name="s")


def raises(config, trial):
    raise OSError("disk on fire")


def prunes(config, trial):
    raise optuna.TrialPruned


OUTCOMES = {
    "error": (raises, "FAIL"),
    "NaN": (lambda config, trial: float("nan"), "FAIL"),
    "pruned": (prunes, "PRUNED"),
    "constraint": (lambda config, trial: (1.5, {"memory": -1.0}), None),
}


@pytest.mark.parametrize(("ends", "state"), OUTCOMES.values(), ids=OUTCOMES)
@pytest.mark.parametrize("elsewhere", [TrialState.COMPLETE, TrialState.FAIL])
def test_a_trial_that_was_finished_elsewhere_keeps_its_state(plane, tmp_path, ends, state, elsewhere):
    url = f"sqlite:///{tmp_path / 'study.db'}"

    def objective(config, trial):
        values = 7.0 if elsewhere == TrialState.COMPLETE else None
        optuna.load_study(study_name="s", storage=url).tell(0, values, state=elsewhere)
        return ends(config, trial)

    def run():
        options = {"progress": False, "storage": url, "study_name": "s"}
        return minimize(objective, plane, budget=1, n_initial=1, seed=1, **options)

    if state == elsewhere.name:
        result = run()
    else:
        with pytest.warns(RuntimeWarning, match=f"trial 0 was finished elsewhere as {elsewhere.name}"):
            result = run()
    assert result.trials["state"].tolist() == [elsewhere.name]


@pytest.mark.parametrize("ends", [raises, prunes], ids=["error", "pruned"])
def test_the_late_end_of_a_trial_taken_over_does_not_finish_it(tmp_path, plane, ends):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    calls = []

    def objective(config, trial):
        calls.append(trial.number)
        if len(calls) > 1:
            return 1.5
        study = optuna.load_study(study_name="s", storage=url)
        another = f"{this_process()._replace(started=1)} 1"  # which has died meanwhile
        study._storage.set_trial_user_attr(study.trials[0]._trial_id, WORKER_KEY, another)
        return ends(config, trial)

    with pytest.warns(RuntimeWarning, match="the outcome of trial 0 comes too late"):
        options = {"storage": url, "study_name": "s", "progress": False}
        result = minimize(objective, plane, 2, n_initial=2, seed=3, **options)
    assert calls == [0, 0, 1] and result.trials["value"].tolist() == [1.5, 1.5]


def test_a_timeout_starts_no_further_trial(plane):
    result = minimize(branin, plane, budget=1000, n_initial=1000, seed=1, progress=False, timeout=0.2)
    assert 0 < len(result.trials) < 1000


@pytest.mark.parametrize("finished", [False, True])
def test_the_late_value_of_a_trial_taken_over_does_not_finish_it(tmp_path, plane, quick, finished):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    calls = []

    def slow(config):
        calls.append(config)
        if len(calls) == 2:
            study = optuna.load_study(study_name="killed", storage=url)
            another = f"{this_process()._replace(started=1)} 1"  # which has died meanwhile
            study._storage.set_trial_user_attr(study.trials[1]._trial_id, WORKER_KEY, another)
            if finished:
                study.tell(1, 7.0)
        return config["x"] ** 2 + config["y"]

    with pytest.warns(RuntimeWarning, match="the outcome of trial 1 comes too late: this process sent no heartbeat"):
        result = minimize(
            slow, plane, 6, n_initial=3, seed=3, storage=url, study_name="killed", progress=False, **quick
        )
    # A value written before the end is not evaluated again either: it is this configuration's.
    assert len(calls) == 6 and (result.study.trials[1].value == 7.0) == finished
    assert result.trials["state"].tolist() == ["COMPLETE"] * 6
