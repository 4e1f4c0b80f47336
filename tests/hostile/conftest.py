"""A small space and an intact study, with point estimates for fits."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ConfigSpace import ConfigurationSpace
from testing_hostility import MAP

import slayr_py as sl


@pytest.fixture(scope="session")
def plane() -> ConfigurationSpace:
    return ConfigurationSpace({"x": (-5.0, 10.0), "y": (0.0, 15.0)})


@pytest.fixture(scope="session")
def go_on(plane) -> Callable[..., sl.study.Result]:
    """Start or resume the study "s" in an SQLite file; by default all trials belong to the initial design."""

    def run(path: Path, budget: int, objective: Callable[[Any], Any] = lambda c: c["x"], **options: Any) -> Any:
        options = {"n_initial": 20, "seed": 1, **MAP, **options}
        return sl.minimize(objective, plane, budget=budget, storage=f"sqlite:///{path}", study_name="s", **options)

    return run


@pytest.fixture(scope="session")
def sound_study(tmp_path_factory, go_on) -> Path:
    path = tmp_path_factory.mktemp("sound") / "study.db"
    go_on(path, 3)
    return path


@pytest.fixture
def study_file(tmp_path, sound_study) -> Path:
    """A copy of an intact study of three trials, for a test to damage."""
    return Path(shutil.copy(sound_study, tmp_path / "study.db"))


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can enter; pytest's own folders are private."""
    folder = Path(tempfile.mkdtemp(prefix="slayr-hostile-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)
