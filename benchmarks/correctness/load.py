"""Run a study with many processes on PostgreSQL while the server is stopped and processes are killed at random.

    python -m benchmarks.correctness.load                  # 8 processes, 1,000 trials, 3 stops, a kill every 20 trials
    python -m benchmarks.correctness.load --workers 4 --trials 200
    python -m benchmarks.correctness.load --resume         # continue after an interruption

Processes call ``minimize`` on one study of a PostgreSQL server that this program starts in the folder ``--data``. Now
and then one of them is killed by SIGKILL and replaced, and at equal parts of the run the server is stopped without
warning, for a few seconds. Every evaluation appends a line to a log before it returns.

At the end no configuration may occur twice, no value of the log may be missing in the study unless its process was
killed before it was stored, and all trials must be complete. There is one row for every interval of trials in
``results/load.csv``: trials a second, the part of the time of a suggestion that was spent waiting for the search lock,
memory of the largest process, and bytes a trial in the database.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import psutil
import sqlalchemy
from ConfigSpace import Categorical, ConfigurationSpace, Float

from benchmarks.common.command_line import begin, command_parser

NAME = "load"
_ROOT = Path(__file__).resolve().parents[2]


def space() -> ConfigurationSpace:
    """Return a space of three real parameters and one category."""
    made = ConfigurationSpace()
    made.add(Float("x", (-5.0, 10.0)), Float("y", (0.0, 15.0)), Float("w", (0.0, 1.0)))
    made.add(Categorical("z", ["a", "b", "c"]))
    return made


def work(url: str, folder: Path, trials: int, method: str) -> None:
    """Take part in the study until it has all its trials: the process of a worker."""
    import slayr_py as sl
    from slayr_py.study.storage import search_lock

    wait = search_lock._wait_for_turn

    def timed(*arguments: Any) -> None:
        clock = time.monotonic()
        wait(*arguments)
        write(folder / "waits.txt", {"time": time.time(), "seconds": time.monotonic() - clock})

    search_lock._wait_for_turn = timed

    def objective(config: dict[str, Any]) -> float:
        value = (config["x"] - 2) ** 2 / 10 + np.sin(config["y"]) + config["w"] + 0.3 * "abc".index(config["z"])
        write(folder / "evaluations.txt", {"pid": os.getpid(), "config": config, "value": float(value)})
        return float(value)

    sl.minimize(objective, space(), trials, seed=1, storage=url, study_name=NAME, progress=False, method=method)


def write(path: Path, row: dict[str, Any]) -> None:
    """Append one line in one operation of the system, so that lines of several processes do not mix."""
    with open(path, "ab", buffering=0) as file:
        file.write(json.dumps(row).encode() + b"\n")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class Server:
    """A PostgreSQL server in a folder, which can be stopped and started."""

    def __init__(self, folder: Path) -> None:
        found = [shutil.which("initdb"), *sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))]
        self.programs = next(Path(str(path)).resolve().parent for path in found if path)
        self.folder = folder
        # The server refuses to run as root.
        as_root = os.geteuid() == 0
        self.user: dict[str, Any] = {"user": "nobody", "group": "nogroup", "extra_groups": []} if as_root else {}
        if not folder.exists():
            folder.mkdir(parents=True)
            if as_root:
                shutil.chown(folder, "nobody")
            self._call("initdb", "--auth=trust", "--username=slayr", "--no-sync")

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://slayr@/postgres?host={self.folder}"

    def start(self) -> None:
        options = f"-c listen_addresses= -c unix_socket_directories={self.folder} -c fsync=off -c max_connections=200"
        self._call("pg_ctl", "start", "--wait", f"--log={self.folder / 'log'}", "--options", options)

    def stop(self) -> None:
        self._call("pg_ctl", "stop", "--mode=immediate")

    def _call(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), "-D", str(self.folder / "data"), *arguments]
        subprocess.run(command, check=True, cwd=self.folder, stdout=subprocess.DEVNULL, timeout=600, **self.user)

    def query(self, text: str) -> float:
        engine = sqlalchemy.create_engine(self.url)
        with engine.connect() as connection:
            answer = connection.execute(sqlalchemy.text(text)).scalar()
        engine.dispose()
        return float(answer or 0)


class Workers:
    """The processes of the study, which are replaced when they end before the study does."""

    def __init__(self, url: str, folder: Path, trials: int, method: str, n: int) -> None:
        self.command = [sys.executable, "-m", "benchmarks.correctness.load", "--work", url, "--data", str(folder)]
        self.command += ["--trials", str(trials), "--method", method]
        self.log = (folder / "workers.txt").open("ab")
        self.running = [self._start() for _ in range(n)]
        self.killed = 0
        self.failed = 0
        self.largest = 0.0

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self.command, cwd=_ROOT, stderr=self.log, stdout=self.log)

    def kill_one(self, rng: np.random.Generator) -> None:
        i = int(rng.integers(len(self.running)))
        self.running[i].send_signal(signal.SIGKILL)
        self.running[i].wait()
        self.killed += 1
        self.running[i] = self._start()

    def replace_failed(self) -> None:
        """Start a new process for each that has ended with an error."""
        for i, process in enumerate(self.running):
            if process.poll() not in (None, 0):
                self.failed += 1
                self.running[i] = self._start()

    @property
    def done(self) -> bool:
        return all(process.poll() == 0 for process in self.running)

    def memory(self) -> float:
        """Return the memory of the largest process in MB; after the last one has ended, that of the call before."""
        sizes = []
        for process in self.running:
            try:
                sizes.append(psutil.Process(process.pid).memory_info().rss / 2**20)
            except psutil.Error:
                continue
        self.largest = max((size for size in sizes if size), default=self.largest)
        return self.largest

    def end(self) -> None:
        for process in self.running:
            process.kill()
            process.wait()
        self.log.close()


def run(given: Any, folder: Path, server: Server) -> dict[str, int]:
    """Run the study to its end and write a row for every interval; return the numbers of kills and stops."""
    rng = np.random.default_rng(given.seed)
    workers = Workers(server.url, folder, given.trials, given.method, given.workers)
    stops = [round(given.trials * (i + 1) / (given.stops + 1)) for i in range(given.stops)]
    next_kill = given.every
    count = 0
    clock = time.monotonic()
    rows = lines(folder / "rows.txt")
    reported = rows[-1]["trials"] if rows else 0
    made = {"kills": 0, "stops": 0, "errors": 0}
    try:
        while not workers.done:
            time.sleep(1.0)
            workers.replace_failed()
            if not server.query("SELECT count(*) FROM pg_tables WHERE tablename = 'trials'"):
                continue
            count = int(server.query("SELECT count(*) FROM trials WHERE state = 'COMPLETE'"))
            if stops and count >= stops[0]:
                stops = [stop for stop in stops if stop > count]
                server.stop()
                time.sleep(rng.uniform(1.0, 10.0))
                server.start()
                made["stops"] += 1
            if count >= next_kill and count < given.trials:
                workers.kill_one(rng)
                next_kill = count + given.every
            if count - reported >= given.interval or (workers.done and count > reported):
                seconds = time.monotonic() - clock
                waits = [row["seconds"] for row in lines(folder / "waits.txt") if row["time"] > time.time() - seconds]
                busy = seconds * given.workers
                size = server.query("SELECT sum(length(value_json)) FROM trial_user_attributes")
                row = {
                    "trials": count,
                    "trials_a_second": (count - reported) / seconds,
                    "waiting": sum(waits) / busy,
                    "longest_wait": max(waits, default=0.0),
                    "memory_mb": workers.memory(),
                    "attribute_bytes_a_trial": size / count,
                    "database_bytes_a_trial": server.query("SELECT pg_database_size('postgres')") / count,
                }
                write(folder / "rows.txt", row)
                print({key: round(value, 3) for key, value in row.items()}, flush=True)
                reported = count
                clock = time.monotonic()
    finally:
        workers.end()
    return made | {"kills": workers.killed, "errors": workers.failed}


def check(folder: Path, server: Server, trials: int, workers: int, kills: int) -> None:
    """Check the study against the log of the evaluations.

    Raises
    ------
    AssertionError
        If a configuration occurs twice, or a value was lost or altered.
    """
    study = optuna.load_study(study_name=NAME, storage=server.url)
    stored = study.get_trials(deepcopy=False)
    finished = [trial for trial in stored if trial.state.name == "COMPLETE"]
    assert trials <= len(stored) <= trials + workers and len(finished) == len(stored), "a trial is not complete"
    configs = [json.dumps(trial.params, sort_keys=True) for trial in finished]
    assert len(set(configs)) == len(configs), "a configuration occurs twice"
    values = {config: trial.value for config, trial in zip(configs, finished, strict=True)}
    evaluated = [(json.dumps(row["config"], sort_keys=True), row["value"]) for row in lines(folder / "evaluations.txt")]
    lost = [config for config, value in evaluated if values.get(config) != value]
    assert not lost, f"lost or altered: {lost}"
    repeated = len(evaluated) - len(set(evaluated))
    assert repeated <= kills, f"{repeated} evaluations were repeated after {kills} kills"
    print(f"{len(finished)} trials, no configuration twice, no value lost, {repeated} evaluations repeated after kills")


def main(arguments: list[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--workers", type=int, default=8, help="number of processes")
    parser.add_argument("--trials", type=int, default=1000, help="trials of the study")
    parser.add_argument("--stops", type=int, default=3, help="number of times the server is stopped")
    parser.add_argument("--every", type=int, default=20, help="trials between two kills")
    parser.add_argument("--interval", type=int, default=50, help="trials in a row of the table")
    parser.add_argument("--method", default="map", help="fit method")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(tempfile.gettempdir()) / "slayr-load",
        help="folder of the server and the logs",
    )
    parser.add_argument("--resume", action="store_true", help="continue the study in --data")
    parser.add_argument("--work", metavar="URL", help="be one of the processes")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results", help="folder of the rows")
    given = begin(parser, arguments)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if given.work:
        work(given.work, given.data, given.trials, given.method)
        return
    if given.data.exists() and not given.resume:
        shutil.rmtree(given.data)
    given.data.mkdir(parents=True, exist_ok=True)
    given.data.chmod(0o755)
    server = Server(given.data / "server")
    server.start()
    try:
        made = run(given, given.data, server)
        print(made)
        given.output.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(lines(given.data / "rows.txt")).to_csv(given.output / "load.csv", index=False)
        check(given.data, server, given.trials, given.workers, made["kills"])
    finally:
        server.stop()


if __name__ == "__main__":
    main()
