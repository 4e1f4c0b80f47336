"""Scripts in processes of their own, forked from a process that has imported the package and the libraries it needs.

A new interpreter spends most of its time on these imports. Nothing of the package has run when a script starts, except
the import: `ANEW` at the beginning of a script is for tests of what the import does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from pathlib import Path

MODULES = [
    "ConfigSpace",
    "alembic.command",
    "alembic.context",
    "filelock",
    "jinja2",
    "joblib",
    "networkx",
    "optuna.storages._rdb.models",  # the storage imports it late
    "optuna.storages.journal",
    "pandas",
    "platformdirs",
    "psutil",
    "psycopg",
    "scipy.optimize",
    "scipy.signal",
    "scipy.stats.qmc",
    "slayr_py.cli.objective",
    "slayr_py.study",
    "sqlalchemy.dialects.postgresql",
    "sqlalchemy.dialects.sqlite",
    "stanio",
    "threadpoolctl",
    "xarray",
]

ANEW = """
import sys
for name in list(sys.modules):
    if name.partition(".")[0] in ("slayr_py", "cmdstanpy"):
        del sys.modules[name]
"""
"""Lines of a script that imports the package as a new interpreter does."""


def _execute(script: str, arguments: tuple[str, ...], environment: dict[str, str], output: str) -> None:
    # A process that was started by nohup or in the background of a shell ignores these.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    sys.argv = ["-c", *arguments]
    with open(output, "w", buffering=1) as sys.stderr:
        exec(compile(script, "<script>", "exec"), {"__name__": "__main__"})


class Script:
    """A running script; ``wait`` returns its exit code, minus the signal if it was killed by one."""

    def __init__(self, process: ForkServerProcess, output: Path) -> None:
        self._process = process
        self._output = output

    def wait(self, timeout: float = 120.0) -> int:
        self._process.join(timeout)
        assert self._process.exitcode is not None, f"the script still runs after {timeout} s"
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the script's process, not to the processes that it has started."""
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    @property
    def complaints(self) -> str:
        """What it wrote to standard error through Python."""
        return self._output.read_text()


@contextlib.contextmanager
def started(script: str, *arguments: str, **environment: str) -> Iterator[Script]:
    """Start a script with the arguments ``sys.argv[1:]`` and additional environment variables; kill it at the end."""
    context = get_context("forkserver")
    context.set_forkserver_preload(MODULES)
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "stderr"
        process = context.Process(target=_execute, args=(script, arguments, os.environ | environment, str(output)))
        process.start()
        try:
            yield Script(process, output)
        finally:
            process.kill()
            process.join()
            process.close()


def exit_code(script: str, *arguments: str, **environment: str) -> int:
    """Run a script to its end and return its exit code."""
    with started(script, *arguments, **environment) as process:
        return process.wait()


def ends(pid: int) -> bool:
    """Return whether a process ends within a minute."""
    deadline = time.monotonic() + 60
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not alive(pid)


def alive(pid: int) -> bool:
    """Return whether a process runs; one that has ended and waits to be collected does not."""
    if not sys.platform.startswith("linux"):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True
    try:
        with open(f"/proc/{pid}/stat") as status:
            return status.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
