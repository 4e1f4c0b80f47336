"""Kill a study at random moments, go on with it, and compare it with one that was left alone.

    python benchmarks/kills.py                                  # 100 kills of studies of 40 trials, some ten minutes
    python benchmarks/kills.py --kills 20 --trials 15
    python benchmarks/kills.py --writes                         # inside transactions of the storage, before they commit

A process of its own runs `minimize` on an SQLite file and is ended by SIGKILL after a random time, again and again; the
next one goes on. After every kill it is checked that each finished trial is still in the storage as it was, and in the
end that trials, suggestions and diagnostics are those of the undisturbed study to the last bit, that no evaluation was
repeated whose value had reached the storage, and that nothing is left of the killed runs. A study that ends before all
kills are done is followed by another with the next seed. Rows go to ``results/kills.csv``, or to
``results/kills_in_writes.csv``, one a kill.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import sqlite3
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import sqlalchemy
from ConfigSpace import Categorical, ConfigurationSpace, Float

import slayr_py as sl

RESULTS = Path(__file__).resolve().parent / "results"
NAME = "killed"
_TRANSACTIONS = 100  # of a process, in one of which it dies; reading counts too


def space() -> ConfigurationSpace:
    """Two real parameters and a category."""
    made = ConfigurationSpace()
    made.add(Float("x", (-5.0, 10.0)), Float("y", (0.0, 15.0)), Categorical("z", ["a", "b", "c"]))
    return made


def run_study(folder: str, seed: int, trials: int, seconds: float, options: dict[str, Any], die_in: int = 0) -> None:
    """Begin or go on; every evaluation is written down when it begins and when it ends.

    With ``die_in`` the process kills itself when that transaction of the storage is about to be committed.
    """
    os.environ["TMPDIR"] = str(Path(folder) / "tmp")
    tempfile.tempdir = None
    transactions = itertools.count(1)

    def commit(_: sqlalchemy.Connection) -> None:
        if next(transactions) == die_in:
            os.kill(os.getpid(), signal.SIGKILL)

    sqlalchemy.event.listen(sqlalchemy.Engine, "commit", commit)

    def objective(config: dict[str, Any]) -> float:
        write(folder, "begins", config)
        time.sleep(seconds)
        value = (config["x"] - 2) ** 2 / 10 + np.sin(config["y"]) + 0.3 * "abc".index(config["z"])
        write(folder, "ends", config)
        return float(value)

    url = f"sqlite:///{folder}/study.db"
    sl.minimize(objective, space(), trials, seed=seed, storage=url, study_name=NAME, progress=False, **options)


def write(folder: str, what: str, config: dict[str, Any]) -> None:
    """One line, on the disk before the function returns."""
    with open(Path(folder) / "evaluations.txt", "a") as file:
        file.write(f"{what} {json.dumps(config, sort_keys=True)}\n")
        file.flush()
        os.fsync(file.fileno())


def evaluations(folder: Path, what: str) -> list[str]:
    """Configurations whose evaluation began, or ended."""
    path = folder / "evaluations.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return [line.partition(" ")[2] for line in lines if line.startswith(f"{what} ")]


def stored_trials(folder: Path) -> list[optuna.trial.FrozenTrial]:
    """All trials, or none where the killed process has not made the study yet."""
    try:
        return optuna.load_study(study_name=NAME, storage=f"sqlite:///{folder}/study.db").trials
    except Exception:  # no tables, half of them, no study: whatever a process may be killed in
        return []


def written(trials: list[optuna.trial.FrozenTrial]) -> list[str]:
    """Finished trials as text: all but times and the name of the process."""
    lines = []
    for trial in trials:
        if trial.state.is_finished():
            suggestion = {**trial.user_attrs.get("slayr:suggestion", {}), "seconds": None}
            for given_up in suggestion.get("fit", {}).get("abandoned", []):
                given_up.pop("seconds", None)
            draws = trial.user_attrs.get("slayr:fit", {}).get("draws_sha256")
            start = trial.user_attrs.get("slayr:start")
            row = [trial.number, trial.state.name, trial.value, trial.params, suggestion, draws, start]
            lines.append(json.dumps(row, sort_keys=True))
    return lines


def moment(folder: Path, trials: list[optuna.trial.FrozenTrial]) -> str:
    """What the process was doing when it was killed, as far as it can be seen from outside."""
    running = [trial for trial in trials if trial.state.name == "RUNNING"]
    if not trials:
        return "creating the study"
    if not running:
        return "between trials"
    if list((folder / "tmp").glob("slayr-run-*")):
        return "fit"
    config = json.dumps(running[0].params, sort_keys=True)
    if "slayr:suggestion" not in running[0].user_attrs:
        return "before or after the fit, acquisition"
    if config not in evaluations(folder, "begins"):
        return "storing the suggestion"
    return "storing the value" if config in evaluations(folder, "ends") else "objective"


def killed_study(
    folder: Path,
    seed: int,
    trials: int,
    kills: int,
    longest: float,
    writes: bool,
    seconds: float,
    options: dict[str, Any],
) -> tuple[list[dict[str, Any]], int]:
    """Run a study with at most so many kills; give a row for each, and how many evaluations were repeated.

    Raises
    ------
    AssertionError
        Something was lost, altered or repeated.
    """
    (folder / "tmp").mkdir(parents=True)
    context, rng = get_context("forkserver"), np.random.default_rng(seed)
    context.set_forkserver_preload(["slayr_py", "arviz", "cmdstanpy", "optuna", "sklearn"])
    rows: list[dict[str, Any]] = []
    before: list[str] = []
    while True:
        last = len(rows) == kills
        delay, die_in = rng.uniform(0, longest), 0 if last or not writes else int(rng.integers(1, _TRANSACTIONS))
        process = context.Process(target=run_study, args=(str(folder), seed, trials, seconds, options, die_in))
        process.start()
        process.join(None if last or writes else delay)
        if process.exitcode is None:
            os.kill(process.pid, signal.SIGKILL)
            process.join()
        elif process.exitcode != -signal.SIGKILL:
            assert process.exitcode == 0, f"minimize ended with {process.exitcode}"
            break
        now = stored_trials(folder)
        assert written(now)[: len(before)] == before, "a finished trial was lost or altered"
        before = written(now)
        if (folder / "study.db").exists():
            with sqlite3.connect(folder / "study.db") as connection:
                assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        how = {"transaction": die_in} if writes else {"seconds": delay}
        rows.append({"seed": seed, **how, "finished": len(before), "moment": moment(folder, now)})
    ended = evaluations(folder, "ends")
    # A value that was on its way to the storage when the process was killed is the one thing that may be asked again.
    repeated = len(ended) - len(set(ended))
    assert repeated <= sum(row["moment"] == "storing the value" for row in rows), "an evaluation was repeated"
    assert not list((folder / "tmp").iterdir()), f"left behind: {list((folder / 'tmp').iterdir())}"
    assert {path.name for path in folder.iterdir()} == {"tmp", "study.db", "evaluations.txt"}
    return rows, repeated


def compare(folder: Path, seed: int, trials: int, seconds: float, options: dict[str, Any]) -> Path:
    """Run the same study undisturbed and check that it is the same.

    Raises
    ------
    AssertionError
        It is not.
    """
    alone = folder.with_name(f"{folder.name}-alone")
    (alone / "tmp").mkdir(parents=True)
    process = get_context("forkserver").Process(target=run_study, args=(str(alone), seed, trials, seconds, options))
    process.start()
    process.join()
    killed, undisturbed = written(stored_trials(folder)), written(stored_trials(alone))
    assert len(undisturbed) == trials
    for one, other in zip(killed, undisturbed, strict=True):
        assert one == other, f"the killed study has {one}, the undisturbed one {other}"
    return alone


def main(arguments: list[str] | None = None) -> None:
    """Kill, compare, tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--initial", type=int, default=10)
    parser.add_argument("--longest", type=float, default=3.0, help="seconds until a kill, at most")
    parser.add_argument("--writes", action="store_true", help="kill inside the storage's transactions")
    parser.add_argument("--seconds", type=float, default=0.2, help="that an evaluation takes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--method", default="nuts")
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    options = {"n_initial": given.initial, "method": given.method}
    sl.GaussianProcess(space()).prepare()
    rows: list[dict[str, Any]] = []
    repeated, seed = 0, given.seed
    with tempfile.TemporaryDirectory() as place:
        while len(rows) < given.kills:
            folder, left = Path(place) / str(seed), given.kills - len(rows)
            more, again = killed_study(
                folder, seed, given.trials, left, given.longest, given.writes, given.seconds, options
            )
            alone = compare(folder, seed, given.trials, given.seconds, options)
            sizes = [(one / "study.db").stat().st_size for one in (folder, alone)]
            print(
                f"seed {seed}: {len(more)} kills survived, {given.trials} trials equal to the last bit, "
                f"{again} evaluations repeated whose value had not reached the storage, "
                f"study file {sizes[0] / sizes[1]:.2f} times as large",
                flush=True,
            )
            rows, repeated, seed = rows + more, repeated + again, seed + 1
    table = pd.DataFrame(rows)
    given.output.mkdir(parents=True, exist_ok=True)
    table.to_csv(given.output / ("kills_in_writes.csv" if given.writes else "kills.csv"), index=False)
    print(f"\n{len(rows)} of {len(rows)} kills survived, {repeated} evaluations repeated\n")
    print(table["moment"].value_counts().to_string())


if __name__ == "__main__":
    main()
