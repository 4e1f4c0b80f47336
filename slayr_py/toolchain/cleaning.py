"""Remove programs and installations of CmdStan from the cache that have not been used for a while."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from filelock import Timeout

from slayr_py.toolchain.cache import cache_dir, cache_error, locked

UNUSED_DAYS = 30
"""Days without use after which `slayr doctor` suggests to remove a folder."""

_DAY = 86400.0  # seconds


def mark_used(folder: Path) -> None:
    """Record the time of the use of a program or an installation: the modification time of its folder."""
    with suppress(OSError):  # a cache that is only read, as in a container image
        os.utime(folder)


def unused_folders(days: float) -> list[Path]:
    """List the programs and the installations of CmdStan that have not been used for a number of days."""
    cache = cache_dir()
    folders = sorted([*cache.glob("programs/*"), *cache.glob("cmdstan-*")])
    latest = time.time() - days * _DAY
    return [folder for folder in folders if _last_use(folder) < latest]


def remove_unused(days: float) -> list[Path]:
    """Remove the folders that :func:`unused_folders` lists, except those that a process is building.

    Raises
    ------
    ToolchainError
        If a folder cannot be removed.
    """
    removed = []
    for folder in unused_folders(days):
        with suppress(Timeout), locked(folder.name, wait=False):
            try:
                shutil.rmtree(folder)
            except OSError as error:
                raise cache_error(error) from error
            removed.append(folder)
    return removed


def cache_size() -> int:
    """Return the size of the cache in bytes; a file with several names counts once."""
    sizes = {}
    for path in cache_dir().rglob("*"):
        with suppress(OSError):
            stat = path.lstat()
            sizes[stat.st_ino] = stat.st_size
    return sum(sizes.values())


def _last_use(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:  # another process has just removed it
        return float("inf")
