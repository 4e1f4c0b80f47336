"""Private folders for Stan runs and for files that are not whole yet, of which nothing stays behind."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from slayr_py.processes import Process, end_processes_about, this_process

RUNS = "slayr-run-"
"""How the names of folders begin that go when their process has ended."""

_ABANDONED = 3600.0  # seconds without a write after which the folder goes of a process that cannot be seen from here
_REMOVALS = 50  # attempts, a tenth of a second apart


def run_folder() -> AbstractContextManager[Path]:
    """A folder for a run, among the system's temporary ones."""
    return private_folder(RUNS, Path(tempfile.gettempdir()))


@contextlib.contextmanager
def private_folder(prefix: str, where: Path) -> Iterator[Path]:
    """A folder that only this user reads, removed whatever happens.

    Only a killed process leaves one behind, and chains that still run; the next one to make such a folder there ends
    them and removes it.
    """
    _remove_abandoned(prefix, where)
    folder = Path(tempfile.mkdtemp(prefix=f"{prefix}{this_process()}-", dir=where))
    try:
        yield folder
    finally:
        # After an interrupt the chains may still be writing for a moment.
        for _ in range(_REMOVALS):
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
            time.sleep(0.1)


def _remove_abandoned(prefix: str, where: Path) -> None:
    for folder in where.glob(f"{prefix}*"):
        with contextlib.suppress(OSError, ValueError):
            owner = Process.parse(folder.name.removeprefix(prefix).rpartition("-")[0])
            if not owner.is_gone and (owner.is_local or _last_write(folder) > time.time() - _ABANDONED):
                continue
            end_processes_about(folder)
            shutil.rmtree(folder, ignore_errors=True)


def _last_write(folder: Path) -> float:
    return max(path.stat().st_mtime for path in [folder, *folder.rglob("*")])
