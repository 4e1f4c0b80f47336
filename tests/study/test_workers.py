"""Two processes on one SQLite file."""

from __future__ import annotations

import subprocess
import sys
import time

import optuna

from slayr_py.study import minimize

WORKER = """
import sys
from ConfigSpace import ConfigurationSpace
import slayr_py as sl
space = ConfigurationSpace({"x": (-5.0, 10.0), "y": (0.0, 15.0)})
sl.minimize(lambda c: (c["x"] - 1) ** 2 + c["y"], space, budget=12, n_initial=8, seed=3, progress=False,
            storage=sys.argv[1], study_name="shared", method="map", chains=1, warmup=50, draws=50)
"""


def test_workers_share_design_budget_and_study(tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, url], stderr=subprocess.PIPE, text=True) for _ in range(2)
    ]
    try:
        for worker in workers:
            complaints = worker.communicate(timeout=300)[1]
            assert worker.returncode == 0, complaints
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
    trials = optuna.load_study(study_name="shared", storage=url).trials
    assert 12 <= len(trials) <= 13  # both may begin the last trial at once
    assert {trial.state.name for trial in trials} == {"COMPLETE"}
    assert len({tuple(trial.params.items()) for trial in trials}) == len(trials)
    phases = [trial.user_attrs["slayr:suggestion"]["phase"] for trial in trials]
    assert phases[:8] == ["initial"] * 8 and set(phases[8:]) == {"model"}


KILLED = """
import os, sys, time
from ConfigSpace import ConfigurationSpace
import slayr_py as sl
import slayr_py.study.storage as storage
storage.HEARTBEAT_SECONDS = 1
space = ConfigurationSpace({"x": (-5.0, 10.0), "y": (0.0, 15.0)})
calls = []
def objective(config):
    calls.append(config)
    if len(calls) == 2:
        time.sleep(2)  # let the heart beat once: Optuna never takes a trial for dead that has not
        os._exit(9)
    return 1.0
sl.minimize(objective, space, budget=4, n_initial=4, seed=3, progress=False, storage=sys.argv[1], study_name="killed")
"""


def test_the_trial_of_a_killed_worker_fails_once_its_heart_is_silent(tmp_path, plane, monkeypatch):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    assert subprocess.run([sys.executable, "-c", KILLED, url], timeout=120).returncode == 9
    states = [trial.state.name for trial in optuna.load_study(study_name="killed", storage=url).trials]
    assert states == ["COMPLETE", "RUNNING"]
    time.sleep(3)
    monkeypatch.setattr("slayr_py.study.storage.HEARTBEAT_SECONDS", 1)
    arguments = {"budget": 4, "n_initial": 4, "seed": 3, "progress": False, "storage": url, "study_name": "killed"}
    result = minimize(lambda config: 1.0, plane, **arguments)
    assert result.trials["state"].tolist() == ["COMPLETE", "FAIL", "COMPLETE", "COMPLETE"]
