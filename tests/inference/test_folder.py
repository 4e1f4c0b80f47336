from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from slayr_py.inference.folder import run_folder


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def gone_process() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def age(folder: Path, seconds: float) -> Path:
    folder.mkdir()
    (folder / "draws.csv").write_text("x")
    then = time.time() - seconds
    os.utime(folder / "draws.csv", (then, then))
    os.utime(folder, (then, then))
    return folder


def test_a_folder_is_private_and_goes_even_after_an_error(tmp_path):
    with pytest.raises(KeyboardInterrupt), run_folder() as folder:
        (folder / "draws.csv").write_text("x")
        assert folder.stat().st_mode & 0o077 == 0
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_only_what_a_dead_process_left_long_ago_is_removed(tmp_path):
    dead = gone_process()
    abandoned = age(tmp_path / f"slayr-run-{dead}-a", 7200)
    recent = age(tmp_path / f"slayr-run-{dead}-b", 60)
    living = age(tmp_path / f"slayr-run-{os.getpid()}-c", 7200)
    others = age(tmp_path / "slayr-run-notes", 7200)
    with run_folder():
        pass
    assert not abandoned.exists()
    assert recent.exists() and living.exists() and others.exists()
