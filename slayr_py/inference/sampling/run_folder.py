"""Private temporary folders for Stan runs and for unfinished files."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from slayr_py.processes import Process, kill_processes_using, this_process

RUNS = "slayr-run-"
"""Prefix of the folders that are removed once their process has ended."""

_ABANDONED = 3600.0  # seconds without a write until the folder of a process on another machine is removed
_REMOVALS = 50  # attempts to remove a folder, a tenth of a second apart


def run_folder() -> AbstractContextManager[Path]:
    """Return a context with a private folder in the system's temporary folder."""
    return private_folder(RUNS, Path(tempfile.gettempdir()))


@contextlib.contextmanager
def private_folder(prefix: str, where: Path) -> Iterator[Path]:
    """Create a folder that only this user can read, and remove it at the end, also after an error.

    A killed process leaves its folder and running chains behind. The next process that creates a folder in ``where``
    kills these chains and removes the folder.
    """
    _remove_abandoned(prefix, where)
    folder = Path(tempfile.mkdtemp(prefix=f"{prefix}{this_process()}-", dir=where))
    try:
        yield folder
    finally:
        # After an interrupt the chains may still write for a moment.
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
            kill_processes_using(folder)
            shutil.rmtree(folder, ignore_errors=True)


def _last_write(folder: Path) -> float:
    return max(path.stat().st_mtime for path in [folder, *folder.rglob("*")])
