"""Private folders of runs, and the removal of those whose process has ended."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from slayr_py.inference.sampling.run_folder import run_folder
from slayr_py.processes import Process, this_process


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def gone_process() -> Process:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return this_process()._replace(pid=child.pid)


def age(folder: Path, seconds: float) -> Path:
    folder.mkdir()
    (folder / "draws.csv").write_text("x")
    then = time.time() - seconds
    os.utime(folder / "draws.csv", (then, then))
    os.utime(folder, (then, then))
    return folder


def test_a_folder_is_private_and_removed_after_an_error(tmp_path):
    with pytest.raises(KeyboardInterrupt), run_folder() as folder:
        (folder / "draws.csv").write_text("x")
        assert folder.stat().st_mode & 0o077 == 0
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_folders_of_dead_processes_are_removed(tmp_path):
    dead = gone_process()
    me = this_process()
    abandoned = [
        age(tmp_path / f"slayr-run-{dead}-a", 0),
        age(tmp_path / f"slayr-run-{me._replace(started=me.started - 1)}-b", 0),  # its number was reused
        age(tmp_path / f"slayr-run-{me._replace(host='elsewhere')}-c", 7200),
    ]
    kept = [
        age(tmp_path / f"slayr-run-{me}-d", 7200),
        age(tmp_path / f"slayr-run-{dead._replace(host='elsewhere')}-e", 60),  # its process may still run
        age(tmp_path / "slayr-run-notes", 7200),
    ]
    with run_folder():
        pass
    assert not any(folder.exists() for folder in abandoned)
    assert all(folder.exists() for folder in kept)


def test_chains_of_dead_processes_are_killed(tmp_path):
    folder = age(tmp_path / f"slayr-run-{gone_process()}-a", 0)
    sleep = "import time; time.sleep(60)"
    chain = subprocess.Popen([sys.executable, "-c", sleep, f"file={folder}/draws.csv"])
    other = subprocess.Popen([sys.executable, "-c", sleep, f"{folder}-of-mine"])
    try:
        with run_folder():
            pass
        assert chain.poll() is not None
        assert other.poll() is None
    finally:
        chain.kill()
        other.kill()
        chain.wait()
        other.wait()
