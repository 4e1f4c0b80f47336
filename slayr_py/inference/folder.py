"""Private folders for Stan runs, of which nothing stays behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_PREFIX = "slayr-run-"
_ABANDONED = 3600.0  # seconds without a write after which the folder of a dead process goes
_REMOVALS = 50  # attempts, a tenth of a second apart


@contextlib.contextmanager
def run_folder() -> Iterator[Path]:
    """A folder that only this user reads, removed whatever happens.

    Only a killed process leaves one behind; the next run, of any process, removes it after an hour.
    """
    remove_abandoned()
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    try:
        yield folder
    finally:
        # After an interrupt the chains may still be writing for a moment.
        for _ in range(_REMOVALS):
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
            time.sleep(0.1)


def remove_abandoned() -> None:
    """Remove run folders of processes that are gone and have written nothing for an hour."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError, ValueError):
            process = int(folder.name.removeprefix(_PREFIX).split("-")[0])
            written = max(path.stat().st_mtime for path in [folder, *folder.rglob("*")])
            if not _alive(process) and time.time() - written > _ABANDONED:
                shutil.rmtree(folder, ignore_errors=True)


def _alive(process: int) -> bool:
    if os.name == "nt":  # signal 0 would interrupt the process there; its folders are left to the system
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
