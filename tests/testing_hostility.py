"""Ways to make a machine hostile, and to look what is left of a study."""

from __future__ import annotations

import os
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import optuna

MAP = {"progress": False, "method": "map", "chains": 1, "warmup": 50, "draws": 50}
"""The mode of the hyperparameters: enough for everything that is not about the fit itself."""

NOBODY = 65534  # the user without rights, on Linux and macOS alike


def stored_values(path: Path) -> list[float | None]:
    """Values of the trials in order, read by Optuna alone, as any other tool would."""
    return [trial.value for trial in optuna.load_study(study_name="s", storage=f"sqlite:///{path}").trials]


def changed(path: Path, *statements: str) -> None:
    """Change a study file behind everybody's back."""
    with sqlite3.connect(path) as database:
        for statement in statements:
            database.execute(statement)
    database.close()


@contextmanager
def disk_with_room_for(size: int) -> Iterator[None]:
    """No file of this process grows beyond so many bytes, as if the disk were full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Not root, who may read and write everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
