from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import platformdirs
import pytest

from slayr_py.toolchain import doctor

httpstan = pytest.importorskip("httpstan", reason="no wheel of httpstan for this Python")
pytestmark = pytest.mark.usefixtures("no_cmdstan")


def test_doctor_passes(own_cache):
    checks = doctor()
    assert all(check.ok for check in checks), checks
    assert [check.name for check in checks] == [
        "Python",
        "cmdstanpy",
        "C++ compiler",
        "make",
        "httpstan",
        "CmdStan",
        "cache",
    ]


def test_doctor_reports_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SLAYR_CACHE_DIR", str(tmp_path / "file" / "cache"))
    cache = next(check for check in doctor() if check.name == "cache")
    assert not cache.ok and "SLAYR_CACHE_DIR" in cache.remedy


def test_doctor_reports_a_cache_on_a_disk_from_which_no_program_runs(own_cache, monkeypatch):
    monkeypatch.setattr(os, "ST_NOEXEC", 8, raising=False)
    monkeypatch.setattr(os, "statvfs", lambda folder: SimpleNamespace(f_flag=8 if folder == own_cache else 0))
    cache = next(check for check in doctor() if check.name == "cache")
    assert not cache.ok and "mounted noexec" in cache.detail and "SLAYR_CACHE_DIR" in cache.remedy


@pytest.mark.parametrize("folder", ["~/.cache/slayr", "~nobody-has-this-name/slayr"])
def test_doctor_reports_a_user_without_a_home_folder(monkeypatch, folder):
    monkeypatch.delenv("SLAYR_CACHE_DIR", raising=False)
    found = Path if folder.startswith("~/") else lambda path: Path(path).expanduser()  # which raises RuntimeError
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda _: found(folder))
    cache = next(check for check in doctor() if check.name == "cache")
    assert not cache.ok and "no home folder" in cache.detail and "SLAYR_CACHE_DIR" in cache.remedy
