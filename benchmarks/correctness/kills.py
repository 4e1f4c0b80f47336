"""Kill a study at random moments, resume it, and compare it with an uninterrupted study.

    python -m benchmarks.correctness.kills               # 100 kills of studies of 40 trials, about ten minutes
    python -m benchmarks.correctness.kills --kills 20 --trials 15
    python -m benchmarks.correctness.kills --writes      # inside storage transactions, before they commit

A separate process runs ``minimize`` on an SQLite file until SIGKILL ends it after a random time; the next process
resumes the study. After every kill, each finished trial must be in the storage unchanged. At the end, trials,
suggestions and diagnostics must equal those of an uninterrupted study bit for bit, no evaluation whose value was stored
may have been repeated, and the killed runs must not leave files behind. If a study ends before all kills are done,
another one starts with the next seed. There is one row per kill in ``results/kills.csv``, or with ``--writes`` in
``results/kills_in_writes.csv``.
"""

from __future__ import annotations

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
from benchmarks.common.command_line import begin, command_parser

NAME = "killed"
# Imported once, for all processes: some are imported late.
_LIBRARIES = ["benchmarks.correctness.kills", "alembic.command", "alembic.context", "arviz", "cmdstanpy", "networkx"]
_LIBRARIES += ["optuna.storages._rdb.models", "scipy.optimize", "scipy.stats", "sklearn", "slayr_py.study"]
_LIBRARIES += ["sqlalchemy.dialects.sqlite"]
_TRANSACTIONS = 100  # a process dies in one of its first so many transactions; reads count


def space() -> ConfigurationSpace:
    """Return a space of two real parameters and one category."""
    made = ConfigurationSpace()
    made.add(Float("x", (-5.0, 10.0)), Float("y", (0.0, 15.0)), Categorical("z", ["a", "b", "c"]))
    return made


def run_study(folder: str, seed: int, trials: int, seconds: float, options: dict[str, Any], die_in: int = 0) -> None:
    """Start or resume the study, and log every evaluation when it starts and when it ends.

    If ``die_in`` is not 0, the process kills itself just before it commits that storage transaction.
    """
    os.environ["TMPDIR"] = str(Path(folder) / "tmp")
    tempfile.tempdir = None
    transactions = itertools.count(1)

    def commit(_: sqlalchemy.Connection) -> None:
        if next(transactions) == die_in:
            os.kill(os.getpid(), signal.SIGKILL)

    sqlalchemy.event.listen(sqlalchemy.Engine, "commit", commit)

    def objective(config: dict[str, Any]) -> float:
        log(folder, "starts", config)
        time.sleep(seconds)
        value = (config["x"] - 2) ** 2 / 10 + np.sin(config["y"]) + 0.3 * "abc".index(config["z"])
        log(folder, "ends", config)
        return float(value)

    url = f"sqlite:///{folder}/study.db"
    sl.minimize(objective, space(), trials, seed=seed, storage=url, study_name=NAME, progress=False, **options)


def log(folder: str, event: str, config: dict[str, Any]) -> None:
    """Append one line and flush it to disk."""
    with open(Path(folder) / "evaluations.txt", "a") as file:
        file.write(f"{event} {json.dumps(config, sort_keys=True)}\n")
        file.flush()
        os.fsync(file.fileno())


def evaluations(folder: Path, event: str) -> list[str]:
    """Return the configurations whose evaluation has started or ended."""
    path = folder / "evaluations.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return [line.partition(" ")[2] for line in lines if line.startswith(f"{event} ")]


def stored_trials(folder: Path) -> list[optuna.trial.FrozenTrial]:
    """Return all trials; none if the process was killed before the study existed."""
    try:
        return optuna.load_study(study_name=NAME, storage=f"sqlite:///{folder}/study.db").trials
    except Exception:  # no tables, only some tables or no study
        return []


def written(trials: list[optuna.trial.FrozenTrial]) -> list[str]:
    """Return finished trials as text, without times and the name of the process."""
    lines = []
    for trial in trials:
        if trial.state.is_finished():
            suggestion = {**trial.user_attrs.get("slayr:suggestion", {}), "seconds": None}
            for abandoned in suggestion.get("fit", {}).get("abandoned", []):
                abandoned.pop("seconds", None)
            draws = trial.user_attrs.get("slayr:fit", {}).get("draws_sha256")
            start = trial.user_attrs.get("slayr:start")
            row = [trial.number, trial.state.name, trial.value, trial.params, suggestion, draws, start]
            lines.append(json.dumps(row, sort_keys=True))
    return lines


def moment(folder: Path, trials: list[optuna.trial.FrozenTrial]) -> str:
    """Return the step at which the process was killed, as far as its files show it."""
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
    if config not in evaluations(folder, "starts"):
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
    """Run a study with at most ``kills`` kills; return one row per kill and the number of repeated evaluations.

    Raises
    ------
    AssertionError
        A trial or value was lost, altered or repeated, or files were left behind.
    """
    (folder / "tmp").mkdir(parents=True)
    context = get_context("forkserver")
    rng = np.random.default_rng(seed)
    context.set_forkserver_preload(_LIBRARIES)
    rows: list[dict[str, Any]] = []
    before: list[str] = []
    while True:
        last = len(rows) == kills
        delay = rng.uniform(0, longest)
        die_in = 0 if last or not writes else int(rng.integers(1, _TRANSACTIONS))
        process = context.Process(target=run_study, args=(str(folder), seed, trials, seconds, options, die_in))
        process.start()
        process.join(None if last or writes else delay)
        if process.exitcode is None:
            os.kill(process.pid, signal.SIGKILL)
            process.join()
        elif process.exitcode != -signal.SIGKILL:
            assert process.exitcode == 0, f"minimize ended with exit code {process.exitcode}"
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
    # Only an evaluation whose value was not yet stored when the process was killed may be repeated.
    repeated = len(ended) - len(set(ended))
    assert repeated <= sum(row["moment"] == "storing the value" for row in rows), "an evaluation was repeated"
    assert not list((folder / "tmp").iterdir()), f"left behind: {list((folder / 'tmp').iterdir())}"
    assert {path.name for path in folder.iterdir()} == {"tmp", "study.db", "evaluations.txt"}
    return rows, repeated


def compare(folder: Path, seed: int, trials: int, seconds: float, options: dict[str, Any]) -> Path:
    """Run the same study without kills, check that both are equal, and return its folder.

    Raises
    ------
    AssertionError
        A trial differs.
    """
    alone = folder.with_name(f"{folder.name}-alone")
    (alone / "tmp").mkdir(parents=True)
    process = get_context("forkserver").Process(target=run_study, args=(str(alone), seed, trials, seconds, options))
    process.start()
    process.join()
    killed = written(stored_trials(folder))
    uninterrupted = written(stored_trials(alone))
    assert len(uninterrupted) == trials
    for one, other in zip(killed, uninterrupted, strict=True):
        assert one == other, f"the killed study has {one}, the uninterrupted one {other}"
    return alone


def main(arguments: list[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--kills", type=int, default=100, help="total number of kills")
    parser.add_argument("--trials", type=int, default=40, help="trials per study")
    parser.add_argument("--initial", type=int, default=10, help="trials of the initial design")
    parser.add_argument("--longest", type=float, default=3.0, help="longest time until a kill in seconds")
    parser.add_argument("--writes", action="store_true", help="kill inside transactions of the storage")
    parser.add_argument("--seconds", type=float, default=0.2, help="seconds per evaluation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--method", default="nuts", help="fit method")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results", help="folder of the rows")
    given = begin(parser, arguments)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    options = {"n_initial": given.initial, "method": given.method}
    sl.GaussianProcess(space()).prepare()
    rows: list[dict[str, Any]] = []
    repeated = 0
    seed = given.seed
    with tempfile.TemporaryDirectory() as place:
        while len(rows) < given.kills:
            folder = Path(place) / str(seed)
            left = given.kills - len(rows)
            more, again = killed_study(
                folder, seed, given.trials, left, given.longest, given.writes, given.seconds, options
            )
            alone = compare(folder, seed, given.trials, given.seconds, options)
            sizes = [(one / "study.db").stat().st_size for one in (folder, alone)]
            print(
                f"seed {seed}: {len(more)} kills survived, {given.trials} trials identical, "
                f"{again} evaluations repeated because their value was not stored yet, "
                f"size of the study file {sizes[0] / sizes[1]:.2f} times that of the uninterrupted study",
                flush=True,
            )
            rows = rows + more
            repeated = repeated + again
            seed = seed + 1
    table = pd.DataFrame(rows)
    given.output.mkdir(parents=True, exist_ok=True)
    table.to_csv(given.output / ("kills_in_writes.csv" if given.writes else "kills.csv"), index=False)
    print(f"\n{len(rows)} of {len(rows)} kills survived, {repeated} evaluations repeated\n")
    print(table["moment"].value_counts().to_string())


if __name__ == "__main__":
    main()
