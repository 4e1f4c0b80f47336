"""Several processes on one study, and the trials of killed processes, on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import optuna
import pytest
from ConfigSpace import ConfigurationSpace
from testing_processes import ANEW, exit_code, started
from testing_studies import KILLED

from slayr_py.errors import DataError
from slayr_py.processes import this_process
from slayr_py.study import Result, create_study, minimize
from slayr_py.study.run import evaluation
from slayr_py.study.storage import workers
from slayr_py.study.storage.attributes import EVALUATIONS_KEY, FAILURE_KEY, VALUE_KEY, WORKER_KEY
from slayr_py.study.storage.distributions import to_params
from slayr_py.study.storage.opening import open_storage
from slayr_py.study.storage.workers import WorkerStorage

SMALL = """
import json, os, sys, time
from ConfigSpace import ConfigurationSpace
import slayr_py as sl
space = ConfigurationSpace({"a": [0, 1, 2, 3], "b": [0, 1, 2], "c": [0, 1]})
def objective(config):
    with open(sys.argv[2], "a") as file:
        file.write(json.dumps([os.getpid(), dict(config)]) + "\\n")
    time.sleep(0.05)
    return (config["a"] - 1) ** 2 + config["b"] + config["c"]
sl.minimize(objective, space, budget=9, n_initial=4, seed=3, progress=False, storage=sys.argv[1], study_name="shared",
            method="map", chains=1, warmup=50, draws=50)
"""


@pytest.mark.slow
@pytest.mark.stan
def test_two_processes_share_a_study_and_its_budget_without_repeats(database, tmp_path):
    """Both want the best of 24 configurations next, all the time."""
    log = tmp_path / "evaluations"
    with started(SMALL, database, str(log)) as one, started(SMALL, database, str(log)) as other:
        for process in (one, other):
            assert process.wait(timeout=300) == 0, process.complaints
    trials = optuna.load_study(study_name="shared", storage=database).trials
    assert 9 <= len(trials) <= 10  # both may start the last trial at the same time
    assert {trial.state.name for trial in trials} == {"COMPLETE"}
    assert len({tuple(trial.params.items()) for trial in trials}) == len(trials)
    phases = [trial.user_attrs["slayr:suggestion"]["phase"] for trial in trials]
    assert set(phases[:3]) == {"initial"} and set(phases[4:]) == {"model"}
    evaluated = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(evaluated) == len(trials)
    assert len({process for process, _ in evaluated}) == 2


@pytest.mark.stan
def test_configurations_evaluated_by_another_process_are_pending(url, tmp_path, plane, quick, monkeypatch):
    stop = tmp_path / "stop"
    holding = f"""
import os, sys, time
from ConfigSpace import ConfigurationSpace
import slayr_py as sl
calls = []
def objective(config):
    calls.append(config)
    while len(calls) == 3 and not os.path.exists({str(stop)!r}):
        time.sleep(0.02)
    return config["x"]
space = ConfigurationSpace({{"x": (-5.0, 10.0), "y": (0.0, 15.0)}})
sl.minimize(objective, space, budget=3, n_initial=2, seed=3, progress=False, storage={url!r}, study_name="shared",
            method="map", chains=1, warmup=50, draws=50)
"""
    with started(holding) as other:

        def third() -> list[optuna.trial.FrozenTrial]:
            try:
                trials = optuna.load_study(study_name="shared", storage=url).trials
            except Exception:  # the other process is about to create it
                return []
            return [trial for trial in trials[2:] if len(trial.params) == 2]

        wait_for(third)
        seen = []

        def spy(posterior, acquisition, **options):
            seen.append([to_params(config) for config in options["pending"]])
            return suggest(posterior, acquisition, **options)

        from slayr_py.acquisition import suggest

        monkeypatch.setattr("slayr_py.study.model.proposal.suggest", spy)
        options = {"n_initial": 2, "seed": 3, "study_name": "shared", "progress": False, **quick}
        minimize(lambda config: 1.0, plane, 4, storage=url, **options)
        assert seen == [[third()[0].params]]
        stop.touch()
        assert other.wait(timeout=60) == 0, other.complaints


def wait_for(condition: Callable[[], object], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


OPTIONS = {"n_initial": 3, "seed": 3, "study_name": "killed", "progress": False}
OPTIONS |= {"method": "map", "chains": 1, "warmup": 50, "draws": 50}
"""Options of the study `KILLED`."""

DESIGN = {**OPTIONS, "n_initial": 6}
"""Options of the same study without a fit."""

KILLED_IN_THE_DESIGN = KILLED.replace("n_initial=3", "n_initial=6")

KILLED_AFTER_THE_VALUE = """
from optuna.trial import TrialState
from slayr_py.study.storage.workers import WorkerStorage
commit = WorkerStorage.set_trial_state_values
def die(self, trial_id, state, values=None):
    if state == TrialState.COMPLETE and len(calls) == 5:
        os._exit(9)
    return commit(self, trial_id, state, values)
WorkerStorage.set_trial_state_values = die
"""


def killed_after_the_value(script: str) -> str:
    script = script.replace("len(calls) == 5", "False")
    return script.replace("import os, sys", f"import os, sys\n{KILLED_AFTER_THE_VALUE}")


def bowl(config):
    return config["x"] ** 2 + config["y"]


def states_in(url: str) -> list[str]:
    return [trial.state.name for trial in optuna.load_study(study_name="killed", storage=url).trials]


@pytest.fixture
def url(tmp_path) -> str:
    return f"sqlite:///{tmp_path / 'study.db'}"


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory) -> Result:
    """The study `KILLED` without a kill."""
    plane = ConfigurationSpace({"x": (-5.0, 10.0), "y": (0.0, 15.0)})
    return minimize(bowl, plane, 6, storage=f"sqlite:///{tmp_path_factory.mktemp('whole') / 'study.db'}", **OPTIONS)


@pytest.mark.stan
def test_the_trial_of_a_killed_process_is_resumed(killed, plane, undisturbed):
    assert states_in(killed) == ["COMPLETE"] * 4 + ["RUNNING"]
    result = minimize(bowl, plane, 6, storage=killed, **OPTIONS)
    assert result.trials["state"].tolist() == ["COMPLETE"] * 6
    assert result.trials.equals(undisturbed.trials)


def test_a_trial_fails_after_repeatedly_ending_its_process(url, plane):
    few = "from slayr_py.study.storage import workers; workers.MOST_EVALUATIONS = 1"
    deadly = few + KILLED_IN_THE_DESIGN.replace("len(calls) == 5", "config['x'] > 0")
    assert [exit_code(deadly, url) for _ in range(2)] == [9] * 2
    states = states_in(url)
    dead = states.index("FAIL")
    assert states == ["COMPLETE"] * dead + ["FAIL", *states[dead + 1 :]]
    failed = minimize(bowl, plane, 6, storage=url, **DESIGN).study.trials[dead]
    assert failed.user_attrs["slayr:failure"] == "its evaluation was started 1 times and never finished"


def test_a_trial_that_repeatedly_ends_its_process_counts_against_the_budget(url, plane, monkeypatch):
    monkeypatch.setattr(workers, "MOST_EVALUATIONS", 2)

    class Panic(BaseException):
        pass

    def objective(_):
        raise Panic

    for _ in range(2):
        with pytest.raises(Panic):
            minimize(objective, plane, 1, storage=url, **DESIGN)
    study = minimize(objective, plane, 1, storage=url, **DESIGN).study
    assert [trial.state.name for trial in study.trials] == ["FAIL"]


@pytest.mark.stan
@pytest.mark.parametrize(("database", "budget"), [("sqlite", 5), ("postgresql", 6)], indirect=["database"])
def test_a_value_written_before_a_kill_is_not_evaluated_again(database, plane, undisturbed, budget):
    assert exit_code(killed_after_the_value(KILLED).replace("budget=6", f"budget={budget}"), database) == 9
    assert states_in(database) == ["COMPLETE"] * 4 + ["RUNNING"]
    interrupted = optuna.load_study(study_name="killed", storage=database).trials[4].params
    calls = []
    seen = []
    callbacks = [lambda study, trial: seen.append(trial.number)]

    def counted(config):
        calls.append(config)
        return bowl(config)

    result = minimize(counted, plane, budget, storage=database, callbacks=callbacks, **OPTIONS)
    assert len(calls) == budget - 5 and interrupted not in calls and seen == list(range(4, budget))
    assert result.trials.equals(undisturbed.trials[:budget])


def test_a_value_written_in_the_last_attempt_counts(url, plane, monkeypatch):
    monkeypatch.setattr(workers, "MOST_EVALUATIONS", 1)
    assert exit_code(killed_after_the_value(KILLED_IN_THE_DESIGN), url) == 9
    assert minimize(bowl, plane, 6, storage=url, **DESIGN).trials["state"].tolist() == ["COMPLETE"] * 6


def test_an_interrupt_while_a_value_is_written_keeps_the_value(url, plane, monkeypatch):
    write = optuna.Trial.set_user_attr
    values = []

    def interrupted(trial, key, value):
        if key == VALUE_KEY:
            values.append(value)
            if len(values) == 2:
                raise KeyboardInterrupt
        write(trial, key, value)

    monkeypatch.setattr(optuna.Trial, "set_user_attr", interrupted)
    with pytest.raises(KeyboardInterrupt):
        minimize(bowl, plane, 6, storage=url, **DESIGN)
    running = optuna.load_study(study_name="killed", storage=url).trials[1]
    assert running.state.name == "RUNNING" and running.user_attrs[VALUE_KEY] == values[1] == values[2]
    assert minimize(bowl, plane, 6, storage=url, **DESIGN).trials["value"].tolist()[1] == values[1]
    assert len(values) == 3 + 4  # of trials 0 and 1, again of trial 1, and of trials 2 to 5


def test_the_last_trial_of_a_budget_is_resumed_after_a_kill(url, plane):
    assert exit_code(KILLED_IN_THE_DESIGN, url) == 9
    result = minimize(bowl, plane, 5, storage=url, **DESIGN)
    assert result.trials["state"].tolist() == ["COMPLETE"] * 5


@pytest.mark.stan
def test_an_interrupted_trial_is_resumed(url, plane, undisturbed):
    def impatient(config):
        if config != undisturbed.study.trials[0].params:
            raise KeyboardInterrupt
        return bowl(config)

    with pytest.raises(KeyboardInterrupt):
        minimize(impatient, plane, 6, storage=url, **OPTIONS)
    assert optuna.load_study(study_name="killed", storage=url).trials[1].user_attrs[WORKER_KEY] == ""
    assert minimize(bowl, plane, 6, storage=url, **OPTIONS).trials.equals(undisturbed.trials)


def without_suggestion(number, error):
    """Return a function in place of `suggest_all` that raises an error in one trial."""
    suggest = evaluation.suggest_all

    def ended(trial, *arguments):
        if trial.number == number:
            raise error
        return suggest(trial, *arguments)

    return ended


@pytest.mark.parametrize("error", [SystemExit(143), ValueError("of a display")])
def test_an_error_outside_the_objective_leaves_the_trial_to_the_next_run(url, plane, monkeypatch, error):
    with monkeypatch.context() as patch, pytest.raises(type(error)) as caught:
        patch.setattr(evaluation, "suggest_all", without_suggestion(2, error))
        minimize(bowl, plane, 6, storage=url, **DESIGN)
    assert caught.value is error
    if isinstance(error, Exception):
        (note,) = error.__notes__
        assert "before trial 2 was" in note and "study.tell(2, state=optuna.trial.TrialState.FAIL)" in note
    assert optuna.load_study(study_name="killed", storage=url).trials[2].user_attrs[WORKER_KEY] == ""
    assert minimize(bowl, plane, 6, storage=url, **DESIGN).trials["state"].tolist() == ["COMPLETE"] * 6


def test_a_failing_storage_does_not_hide_an_error_outside_the_objective(url, plane, monkeypatch):
    def no_answer(trial, key, value):
        raise OSError("no answer")

    def ended(trial, *_):
        monkeypatch.setattr(optuna.Trial, "set_user_attr", no_answer)
        raise ValueError("of a display")

    monkeypatch.setattr(evaluation, "suggest_all", ended)
    with pytest.raises(ValueError, match="of a display"):
        minimize(bowl, plane, 6, storage=url, **DESIGN)


def test_an_error_of_the_sampler_that_recurs_fails_the_trial_in_the_end(url, plane, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(evaluation, "suggest_all", without_suggestion(2, ValueError("of the sampler")))
        for _ in range(workers.MOST_EVALUATIONS):
            with pytest.raises(ValueError, match="of the sampler"):
                minimize(bowl, plane, 6, storage=url, **DESIGN)
        trials = minimize(bowl, plane, 6, storage=url, **DESIGN).study.trials
    assert [trial.state.name for trial in trials] == ["COMPLETE"] * 2 + ["FAIL"] + ["COMPLETE"] * 3
    assert trials[2].user_attrs[FAILURE_KEY] == "of the sampler"


@pytest.mark.parametrize("error", [SystemExit(143), DataError("of the sampler")])
def test_an_error_before_an_evaluation_keeps_the_count_of_killed_ones(url, plane, monkeypatch, error):
    assert exit_code(KILLED_IN_THE_DESIGN, url) == 9
    monkeypatch.setattr(evaluation, "suggest_all", without_suggestion(4, error))
    with pytest.raises(type(error)):
        minimize(bowl, plane, 6, storage=url, **DESIGN)
    assert optuna.load_study(study_name="killed", storage=url).trials[4].user_attrs[EVALUATIONS_KEY] == 1


class Leaving:
    def __call__(self, *_):
        sys.exit(143)

    def leave(self, *_):
        sys.exit(143)


@pytest.mark.parametrize(
    "handler", [lambda *_: sys.exit(143), partial(Leaving.leave, None), Leaving(), Leaving().leave]
)
@pytest.mark.parametrize("cost", [None, "seconds"])
def test_a_signal_during_an_evaluation_ends_the_run_as_its_handler_does(url, plane, monkeypatch, cost, handler):
    monkeypatch.setattr(multiprocessing.process, "_parent_process", object())  # as in a process that the user started
    before = signal.signal(signal.SIGTERM, handler)
    try:
        with pytest.raises(SystemExit, match="143"):
            minimize(lambda _: signal.raise_signal(signal.SIGTERM), plane, 6, storage=url, cost=cost, **DESIGN)
    finally:
        signal.signal(signal.SIGTERM, before)
    (trial,) = optuna.load_study(study_name="killed", storage=url).trials
    assert trial.state.name == "RUNNING" and trial.user_attrs[EVALUATIONS_KEY] == 0
    assert minimize(bowl, plane, 6, storage=url, cost=cost, **DESIGN).trials["state"].tolist() == ["COMPLETE"] * 6


def test_a_signal_just_after_a_trial_is_complete_ends_the_run_as_its_handler_does(url, plane, monkeypatch):
    tell = optuna.Study.tell

    def told(study, *arguments, **options):
        optuna.Study.tell = tell  # one signal
        tell(study, *arguments, **options)
        raise SystemExit(143)

    with monkeypatch.context() as patch, pytest.raises(SystemExit, match="143"):
        patch.setattr(optuna.Study, "tell", told)
        minimize(bowl, plane, 6, storage=url, **DESIGN)
    assert states_in(url) == ["COMPLETE"]
    assert minimize(bowl, plane, 6, storage=url, **DESIGN).trials["state"].tolist() == ["COMPLETE"] * 6


class PanicError(BaseException):
    """As extensions in Rust raise it."""


@pytest.mark.parametrize("n_parallel", [1, 2])
def test_a_panic_of_the_objective_counts_as_an_attempt(url, plane, monkeypatch, n_parallel):
    monkeypatch.setattr(workers, "MOST_EVALUATIONS", 2)
    first = minimize(bowl, plane, 1, **DESIGN).study.trials[0].params

    def panics(config):
        if config == first:
            raise PanicError("panicked")
        return bowl(config)

    for _ in range(2):
        with pytest.raises(PanicError):
            minimize(panics, plane, 6, storage=url, n_parallel=n_parallel, **DESIGN)
    trials = minimize(panics, plane, 6, storage=url, **DESIGN).study.trials
    assert [trial.state.name for trial in trials] == ["FAIL"] + ["COMPLETE"] * 5


def test_an_interrupt_does_not_count_as_an_attempt(url, plane):
    def impatient(config):
        raise KeyboardInterrupt

    for _ in range(workers.MOST_EVALUATIONS + 1):
        with pytest.raises(KeyboardInterrupt):
            minimize(impatient, plane, 6, storage=url, **DESIGN)
    assert minimize(bowl, plane, 6, storage=url, **DESIGN).trials["state"].tolist() == ["COMPLETE"] * 6


def test_an_abandoned_enqueued_trial_is_resumed_before_waiting_ones(database, plane):
    study = create_study(plane, n_initial=6, seed=3, storage=database, study_name="killed")
    study.enqueue_trial({"x": 1.0, "y": 2.0})
    study.enqueue_trial({"x": 3.0, "y": 4.0})
    assert exit_code(KILLED_IN_THE_DESIGN.replace("len(calls) == 5", "len(calls) == 1"), database) == 9
    result = minimize(bowl, plane, 6, storage=database, **DESIGN)
    assert result.trials["state"].tolist() == ["COMPLETE"] * 6
    assert result.trials["params_x"].tolist()[:2] == [1.0, 3.0]


@pytest.mark.stan
def test_a_trial_of_another_machine_is_abandoned_without_heartbeat(killed):
    study = optuna.load_study(study_name="killed", storage=killed)
    elsewhere = f"{this_process()._replace(host='elsewhere')} 1"
    study._storage.set_trial_user_attr(study.trials[4]._trial_id, WORKER_KEY, elsewhere)
    storage = open_storage(killed, worker=True)
    storage.record_heartbeat(study.trials[4]._trial_id)
    assert storage.abandoned(study._study_id) == []
    storage.heartbeat_interval = 0.1  # SQLite rounds times to seconds
    wait_for(lambda: [trial.number for trial in storage.abandoned(study._study_id)] == [4], seconds=20)


@pytest.mark.stan
def test_only_one_of_many_threads_resumes_a_trial(killed, plane):
    study = optuna.load_study(study_name="killed", storage=killed)
    storages = [open_storage(killed, worker=True) for _ in range(8)]
    begin = threading.Barrier(8)
    taken = []

    def take(storage: WorkerStorage) -> None:
        workers._active_runs.add(storage.worker)
        begin.wait()
        taken.append(storage.create_new_trial(study._study_id))

    threads = [threading.Thread(target=take, args=(storage,)) for storage in storages]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    workers._active_runs.difference_update(storage.worker for storage in storages)
    assert study.trials[4]._trial_id in taken
    assert len(set(taken)) == 8 and len(study.trials) == 4 + 8


def test_trials_of_ask_and_tell_are_not_taken_over(database, plane):
    asked = create_study(plane, n_initial=3, seed=3, storage=database, study_name="killed").ask()
    result = minimize(bowl, plane, 3, storage=database, **OPTIONS)
    assert [trial.state.name for trial in result.study.trials] == ["RUNNING", "COMPLETE", "COMPLETE"]
    assert asked.number == 0


def test_run_folders_of_killed_processes_are_removed(tmp_path):
    script = f"{ANEW}import os, slayr_py.inference; os._exit(9)"
    for _ in range(2):
        assert exit_code(script, TMPDIR=str(tmp_path)) == 9
    (left, again) = tmp_path.iterdir()
    assert left.name.startswith("slayr-run-") and again.name.startswith("slayr-run-")
    tidy = "from slayr_py.inference.sampling.run_folder import run_folder\nwith run_folder(): pass"
    # An interpreter of its own, which removes its folders when it exits.
    subprocess.run([sys.executable, "-c", tidy], env={**os.environ, "TMPDIR": str(tmp_path)}, check=True, timeout=60)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.stan
def test_kills_at_random_moments(tmp_path):
    """Run the benchmark of kills with 2 instead of 100 kills, at random times and inside transactions."""
    sizes = ["--kills=2", "--trials=5", "--initial=4", "--longest=1", "--seconds=0.05", f"--output={tmp_path}"]
    calls = "; ".join(f"main({[*sizes, *more]})" for more in (("--writes", "--method=map"), ()))
    root = Path(__file__).resolve().parents[3]
    command = [sys.executable, "-c", f"from benchmarks.correctness.kills import main; {calls}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=root)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("2 of 2 kills survived") == 2
