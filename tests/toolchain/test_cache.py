"""Leftovers in the cache, and caches that cannot be written."""

from __future__ import annotations

import pytest

from slayr_py.errors import ToolchainError
from slayr_py.toolchain import compile_program


def test_leftovers_of_a_killed_build_are_removed(scripted, source, own_cache):
    dead = own_cache / ".staging" / "q-123.abc"
    dead.mkdir(parents=True)
    (dead / "half").write_text("half")
    compile_program(source)
    assert not dead.exists()


def test_a_cache_that_cannot_be_written_raises(scripted, source, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SLAYR_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(ToolchainError, match="SLAYR_CACHE_DIR"):
        compile_program(source)


def test_a_full_disk_raises(scripted, source, monkeypatch):
    import slayr_py.toolchain.executables as executables

    def full(folder, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(executables, "publish", full)
    with pytest.raises(ToolchainError, match="No space left on device"):
        compile_program(source)
    monkeypatch.undo()
