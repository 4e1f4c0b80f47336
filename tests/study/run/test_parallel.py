"""Evaluations on executors."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import warnings
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack

import optuna
import pytest
from ConfigSpace import ConfigurationSpace

import slayr_py as sl
from slayr_py.study.run.executors import InThisThread
from slayr_py.study.run.objective import Evaluation
from slayr_py.study.storage.attributes import FAILURE_KEY, VALUE_KEY

SPACE = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)})


def bowl(config):
    return (config["x"] - 0.3) ** 2 + config["y"]


def broken(config):
    raise ValueError("no disk")


def limited(config):
    return bowl(config), {"x": 0.5 - config["x"]}


def two_objectives(config):
    return {"difference": bowl(config) - config["x"], "sum": bowl(config)}


def deadly(config):
    time.sleep(0.05)
    if config["x"] > 0.8:
        os.kill(os.getpid(), signal.SIGKILL)
    return bowl(config)


def slow_or_deadly(config):
    if config["x"] > 0.8:
        os._exit(3)
    if config["x"] < 0.2:
        time.sleep(600)
    return bowl(config)


def run(objective=bowl, budget=8, **options):
    options = {"n_initial": 8, "seed": 1, "progress": False, **options}
    return sl.minimize(objective, SPACE, budget, **options)


@pytest.mark.stan
def test_evaluations_run_side_by_side(quick):
    together = threading.Barrier(3, timeout=60)
    most = []

    def objective(config):
        together.wait()  # returns once three evaluations have started
        most.append(threading.active_count())
        return bowl(config)

    seen = []
    callbacks = [lambda study, trial: seen.append(trial.number)]
    result = run(objective, 9, n_initial=4, n_parallel=3, callbacks=callbacks, **quick)
    assert result.trials["state"].tolist() == ["COMPLETE"] * 9 and sorted(seen) == list(range(9))
    points = result.trials[["params_x", "params_y"]].to_numpy()
    assert len(set(map(tuple, points.round(4)))) == 9


def test_processes_evaluate_picklable_objectives():
    with ProcessPoolExecutor(2) as pool:
        result = run(limited, executor=pool, n_parallel=2)
    assert result.best_config["x"] >= 0.5
    assert all(set(trial.constraints) == {"x"} for trial in result.study.trials)


def points(*xs):
    return {"initial_configs": [{"x": x, "y": 0.5} for x in xs], "n_initial": len(xs), "budget": len(xs)}


def reasons(result):
    return [trial.user_attrs.get(FAILURE_KEY, "") for trial in result.study.trials]


def test_a_dead_process_of_a_pool_fails_its_trial_only():
    xs = (0.1, 0.9, 0.3, 0.4, 0.95, 0.5)
    with ProcessPoolExecutor(2) as pool:
        result = run(deadly, executor=pool, n_parallel=2, **points(*xs))
    assert result.trials["state"].tolist() == ["FAIL" if x > 0.8 else "COMPLETE" for x in xs]
    died = "the worker process died by signal 9 during the evaluation"
    assert [reason.startswith(died) for reason in reasons(result)] == [x > 0.8 for x in xs]


def test_a_killed_worker_of_dask_fails_its_trial():
    distributed = pytest.importorskip("distributed")

    class Cluster(Executor):
        def submit(self, function, /, *arguments, **options):
            future = Future()
            try:
                future.set_result(function(*arguments, **options))
            except ZeroDivisionError:
                future.set_exception(distributed.KilledWorker("evaluate", distributed.scheduler.WorkerState, 3))
            return future

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distributed.KilledWorker, "__str__", lambda error: "4 workers died")
        patch.setattr("slayr_py.study.run.evaluation.evaluate", _dividing)
        result = run(executor=Cluster(), **points(0.1, 0.0, 0.2))
    assert result.trials["state"].tolist() == ["COMPLETE", "FAIL", "COMPLETE"]
    assert reasons(result)[1] == "the worker process died: 4 workers died"


def _dividing(objective, config, *others):
    return Evaluation((1 / config["x"],), {})


def test_an_evaluation_that_takes_too_long_or_ends_its_process_fails_its_trial():
    xs = (0.5, 0.1, 0.6, 0.9, 0.7)
    before = set(multiprocessing.active_children())  # idle workers of joblib
    result = run(slow_or_deadly, max_seconds=3, n_parallel=2, **points(*xs))
    assert result.trials["state"].tolist() == ["COMPLETE", "FAIL", "COMPLETE", "FAIL", "COMPLETE"]
    assert reasons(result)[1] == "the evaluation took longer than max_seconds = 3 and was killed"
    assert reasons(result)[3].startswith("the worker process died during the evaluation")
    assert set(multiprocessing.active_children()) <= before


class Client:
    """As of Dask."""

    def get_executor(self):
        return None


REFUSED = [
    ({"executor": Client()}, "executor is a Client, .* pass executor=client.get_executor"),
    ({"executor": 4}, "executor is a int, .* ProcessPoolExecutor"),
    ({"executor": ThreadPoolExecutor(1), "max_seconds": 1}, "max_seconds needs processes .* omit executor="),
    ({"max_seconds": 0}, "max_seconds must be positive"),
    ({"n_parallel": 0}, "n_parallel"),
    ({"max_seconds": 1, "objective": lambda config: 1.0}, "cannot load the objective '<lambda>'.*a module"),
]


@pytest.mark.parametrize(("options", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_executors_and_limits_that_cannot_work_are_refused(options, words):
    with pytest.raises(sl.DataError, match=words):
        run(**options)


def test_repeated_failures_stop_all_evaluations():
    # The third may fail while an earlier one runs, which is waited for.
    with pytest.raises(sl.ObjectiveError, match="[34] trials in a row failed.*no disk"):
        run(broken, budget=20, n_initial=20, n_parallel=2)


def test_quick_failures_do_not_end_a_run_whose_first_trial_is_still_running():
    failed = threading.Semaphore(0)

    def objective(config):
        if config["x"] > 0.5:
            failed.release()
            raise ValueError("the pump fails")
        assert all(failed.acquire(timeout=60) for _ in range(4))
        return config["x"]

    space = ConfigurationSpace({"x": (0.0, 1.0)})
    configs = [{"x": x} for x in (0.1, 0.6, 0.7, 0.8, 0.9)]
    with ThreadPoolExecutor(2) as executor:
        result = sl.minimize(
            objective, space, budget=5, initial_configs=configs, seed=1, n_parallel=2, executor=executor, progress=False
        )
    assert result.best_config == {"x": 0.1}
    assert len(result.trials) == 5


def test_a_callback_stops_the_study():
    def enough(study, trial):
        if trial.number >= 2:
            study.stop()

    result = run(budget=20, n_initial=20, n_parallel=2, callbacks=[enough])
    assert 3 <= len(result.trials) <= 5


def test_a_timeout_ends_the_study():
    def slow(config):
        time.sleep(0.2)
        return bowl(config)

    assert 0 < len(run(slow, budget=50, n_initial=50, n_parallel=2, timeout=0.5).trials) < 50


def test_an_executor_that_fails_leaves_its_trials_to_the_next_run(tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    with ProcessPoolExecutor(1) as pool, pytest.raises(sl.ObjectiveError, match="the executor failed at trial 0"):
        run(lambda config: 1.0, storage=url, study_name="s", executor=pool)
    result = run(storage=url, study_name="s", n_parallel=2)
    assert result.trials["state"].tolist() == ["COMPLETE"] * 8


def test_an_interrupt_keeps_what_was_evaluated(tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    interrupt = {"storage": url, "study_name": "s", "n_parallel": 2}

    def stopped(study, trial):
        if trial.number == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(callbacks=[stopped], **interrupt)
    states = [trial.state.name for trial in optuna.load_study(study_name="s", storage=url).trials]
    assert states.count("COMPLETE") >= 3 and "FAIL" not in states
    assert run(**interrupt).trials["state"].tolist() == ["COMPLETE"] * 8


@pytest.mark.parametrize("how", ["Ctrl-C", "callback"])
@pytest.mark.parametrize("stored", [True, False], ids=["database", "memory"])
def test_values_that_arrive_while_a_run_ends_are_stored(tmp_path, how, stored):
    storage = f"sqlite:///{tmp_path / 'study.db'}" if stored else optuna.storages.InMemoryStorage()
    options = {"storage": storage, "study_name": "s", "n_parallel": 2}
    both = threading.Barrier(2, timeout=60)
    ended = threading.Event()

    def objective(config, trial):
        if trial.number < 2:
            both.wait()  # until two evaluations run
        if trial.number == 1:
            ended.wait(60)
        return bowl(config)

    def stops(study, trial):
        ended.set()
        raise KeyboardInterrupt if how == "Ctrl-C" else ZeroDivisionError

    with pytest.raises(KeyboardInterrupt if how == "Ctrl-C" else ZeroDivisionError):
        run(objective, callbacks=[stops], **options)
    trials = optuna.load_study(study_name="s", storage=storage).trials
    assert [trial.state.name for trial in trials] == ["COMPLETE"] * 2


def test_a_value_whose_constraint_cannot_be_used_is_not_kept_when_a_run_ends(tmp_path):
    """A value that is kept without its constraint would count as feasible."""
    options = {"storage": f"sqlite:///{tmp_path / 'study.db'}", "study_name": "s", "n_parallel": 2, "budget": 2}
    excess = iter([-1.0, float("nan"), 1.0])

    def objective(config):
        return bowl(config), {"memory": next(excess)}

    def stops(study, trial):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(objective, executor=InThisThread(), callbacks=[stops], **options)
    left = optuna.load_study(study_name="s", storage=options["storage"]).trials[1]
    assert left.state.name == "RUNNING" and VALUE_KEY not in left.user_attrs
    again = run(objective, **options).study.trials[1]
    assert again.state.name == "COMPLETE" and again.constraints == {"memory": 1.0}


@pytest.mark.parametrize("pool", [None, ProcessPoolExecutor], ids=["threads", "processes"])
@pytest.mark.parametrize("objective", [limited, two_objectives], ids=["constraint", "objectives"])
def test_values_that_arrive_during_a_callback_are_written_at_once(tmp_path, pool, objective):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    options = {"storage": url, "study_name": "s", "n_parallel": 2}
    if objective is two_objectives:
        options["directions"] = {"sum": "minimize", "difference": "minimize"}
    found = []

    def waits(study, trial):
        other = optuna.load_study(study_name="s", storage=url)
        for _ in range(600):
            running = other.get_trials(states=[optuna.trial.TrialState.RUNNING])
            if found or any(VALUE_KEY in trial.user_attrs for trial in running):
                break
            time.sleep(0.1)
        found.extend(running)

    with ExitStack() as stack:
        executor = stack.enter_context(pool(2)) if pool else None
        result = run(objective, 2, executor=executor, callbacks=[waits], **options)
    assert result.trials["state"].tolist() == ["COMPLETE"] * 2
    known = found[0]
    last = result.study.trials[known.number]
    value = last.values if objective is two_objectives else last.value
    assert known.user_attrs[VALUE_KEY] == value and known.constraints == last.constraints


def test_a_pool_whose_processes_cannot_start_fails_no_trial(tmp_path):
    options = {"storage": f"sqlite:///{tmp_path / 'study.db'}", "study_name": "s", "n_parallel": 2}
    with ProcessPoolExecutor(2, initializer=broken, initargs=({},)) as pool:
        with pytest.raises(sl.DataError, match="end before an evaluation begins: let its initializer"):
            run(executor=pool, **options)
    trials = optuna.load_study(study_name="s", storage=options["storage"]).trials
    assert {trial.state.name for trial in trials} == {"RUNNING"}
    result = run(**options)
    assert result.trials["state"].tolist() == ["COMPLETE"] * 8


def test_an_executor_that_was_shut_down_is_named(tmp_path):
    options = {"storage": f"sqlite:///{tmp_path / 'study.db'}", "study_name": "s"}
    pool = ThreadPoolExecutor(2)
    pool.shutdown()
    with pytest.raises(sl.ObjectiveError, match="the executor failed at trial 0: RuntimeError cannot schedule new"):
        run(executor=pool, **options)
    assert run(**options).trials["state"].tolist() == ["COMPLETE"] * 8


@pytest.mark.parametrize("n_parallel", [1, 2])
def test_an_objective_may_stop_the_study(n_parallel):
    def objective(config, trial):
        if trial.number == 3:
            trial.study.stop()
        return bowl(config)

    states = run(objective, n_parallel=n_parallel).trials["state"].tolist()
    assert 4 <= len(states) <= 3 + n_parallel and set(states) == {"COMPLETE"}


def test_a_value_of_a_killed_process_is_not_evaluated_again(tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    run(budget=2, storage=url, study_name="s")
    study = sl.study.create_study(SPACE, storage=url, study_name="s", n_initial=8, seed=1)
    trial = sl.study.ask(study)
    trial.set_user_attr(VALUE_KEY, 7.0)
    trial.set_user_attr("slayr:worker", "")  # abandoned
    calls = []

    def counted(config):
        calls.append(config)
        return bowl(config)

    result = run(counted, budget=4, storage=url, study_name="s", n_parallel=2)
    assert result.trials["value"][2] == 7.0 and len(calls) == 1


def test_threads_are_the_default_executor(monkeypatch):
    made = []

    class Counted(ThreadPoolExecutor):
        def __init__(self, n):
            made.append(n)
            super().__init__(n)

    monkeypatch.setattr("slayr_py.study.run.executors.ThreadPoolExecutor", Counted)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(budget=3, n_parallel=3)
    assert made == [3]
