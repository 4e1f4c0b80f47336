"""Leftovers and old programs in the cache, and caches that cannot be written."""

from __future__ import annotations

import os
import time

import pytest

from slayr_py.errors import ToolchainError
from slayr_py.toolchain import compile_program, compile_together, doctor, prepare_build
from slayr_py.toolchain.cache import cache_dir, locked, remove_leftovers


def test_leftovers_of_a_killed_build_are_removed(scripted, source, own_cache):
    dead = own_cache / ".staging" / "q-123.abc"
    dead.mkdir(parents=True)
    (dead / "half").write_text("half")
    compile_program(source)
    assert not dead.exists()


def test_a_build_leaves_a_running_build_of_several_programs_alone(scripted, source, compilations):
    build = prepare_build(source, (), None, None, None)
    assert compile_together([build], on_progress=lambda _: remove_leftovers())
    assert compile_program(source).together and compilations() == 1


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


def test_folders_that_have_not_been_used_are_removed(scripted, source, own_cache, slayr):
    used = compile_program(source).exe.parent
    others = [own_cache / "programs" / "old-1", own_cache / "cmdstan-2.35.0-1", own_cache / "programs" / "busy-1"]
    for folder in others:
        folder.mkdir()
        (folder / "file").write_text("content")
    for folder in (used, *others):
        os.utime(folder, (0, time.time() - 40 * 86400))
    compile_program(source)  # from the cache
    cache = next(check.detail for check in doctor() if check.name == "cache")
    assert cache.endswith("; 3 folders not used for 30 days: slayr toolchain clean")
    assert slayr("toolchain", "clean", "--older-than", 50)[1].startswith("the cache has")
    with locked("busy-1"):
        code, out, _ = slayr("toolchain", "clean")
    assert code == 0 and out.splitlines()[:-1] == [f"removed {others[1]}", f"removed {others[0]}"]
    assert used.is_dir() and [folder.is_dir() for folder in others] == [False, False, True]


def test_an_unknown_home_folder_in_the_setting_is_named(monkeypatch):
    monkeypatch.setenv("SLAYR_CACHE_DIR", "~nobody-has-this-name/slayr")
    with pytest.raises(ToolchainError, match=r"SLAYR_CACHE_DIR=~nobody-has-this-name/slayr is unknown.* absolute path"):
        cache_dir()
