"""Simulate full disks and missing rights, and read and change study files."""

from __future__ import annotations

import os
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import optuna

MAP = {"progress": False, "method": "map", "chains": 1, "warmup": 50, "draws": 50}
"""Options that fit the mode of the hyperparameters, for tests that are not about the fit itself."""

NOBODY = 65534  # the user without rights, on Linux and macOS


def stored_values(path: Path) -> list[float | None]:
    """Return the values of the trials in order, read with Optuna alone."""
    return [trial.value for trial in optuna.load_study(study_name="s", storage=f"sqlite:///{path}").trials]


def changed(path: Path, *statements: str) -> None:
    """Execute SQL statements on a study file."""
    with sqlite3.connect(path) as database:
        for statement in statements:
            database.execute(statement)
    database.close()


@contextmanager
def disk_with_room_for(size: int) -> Iterator[None]:
    """Limit the size of the files of this process to so many bytes, as if the disk were full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Give up the rights of root, who may read and write everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
