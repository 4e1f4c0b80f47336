"""The choice of the CmdStan, and its assembly where none is installed."""

from __future__ import annotations

import shutil

import pytest

from slayr_py.errors import ToolchainError
from slayr_py.toolchain import doctor, ensure_cmdstan, find_cmdstan
from slayr_py.toolchain.wheel import find_wheel

httpstan = pytest.importorskip("httpstan", reason="no wheel of httpstan for this Python")
pytestmark = pytest.mark.usefixtures("no_cmdstan")


def test_assembled_once(own_cache):
    assert find_cmdstan() is None
    messages = []
    made = ensure_cmdstan(messages.append)
    assert made.origin == "assembled" and made.path.parent == own_cache
    assert made.version == find_wheel().stan_version
    assert len(messages) == 1
    assert ensure_cmdstan(messages.append) == made == find_cmdstan()
    assert len(messages) == 1


def test_an_assembled_installation_in_cmdstan_counts_as_assembled(own_cache, monkeypatch):
    made = ensure_cmdstan()
    monkeypatch.setenv("CMDSTAN", str(made.path))
    assert find_cmdstan().origin == "assembled"


def test_cmdstan_of_the_environment_variable(scripted, monkeypatch, tmp_path):
    monkeypatch.setenv("CMDSTAN", str(scripted))
    assert find_cmdstan().origin == "CMDSTAN"
    monkeypatch.setenv("CMDSTAN", str(tmp_path / "nowhere"))
    with pytest.raises(ToolchainError, match="nowhere cannot be used: there is no such folder"):
        find_cmdstan()


def test_cmdstan_installed_by_cmdstanpy(scripted, monkeypatch, tmp_path):
    monkeypatch.delenv("CMDSTAN", raising=False)
    installed = tmp_path / "home" / ".cmdstan"
    for version in ("2.34.1", "2.36.0"):
        folder = installed / f"cmdstan-{version}"
        shutil.copytree(scripted, folder)
        (folder / "makefile").write_text(f"CMDSTAN_VERSION := {version}\n")
    assert find_cmdstan().path.name == "cmdstan-2.36.0"
    ignored = [check.detail for check in doctor() if check.name == "CmdStan, ignored"]
    assert len(ignored) == 1 and "its version is 2.34.1, 2.35 or newer is needed" in ignored[0]


def test_error_without_a_wheel_suggests_installing_cmdstan(own_cache, monkeypatch):
    import importlib.metadata as metadata

    real = metadata.distribution

    def without_httpstan(name):
        if name == "httpstan":
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "distribution", without_httpstan)
    with pytest.raises(ToolchainError, match="python -m cmdstanpy.install_cmdstan"):
        ensure_cmdstan()
    assert find_cmdstan() is None
