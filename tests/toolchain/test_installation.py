"""The choice of the CmdStan, and the atomic assembly of an installation."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap

import pytest

from slayr_py.errors import ToolchainError
from slayr_py.toolchain import doctor, ensure_cmdstan, find_cmdstan
from slayr_py.toolchain.compiler import find_compiler
from slayr_py.toolchain.installation import assemble, installation_path, is_complete
from slayr_py.toolchain.wheel import find_wheel

httpstan = pytest.importorskip("httpstan", reason="no wheel of httpstan for this Python")


@pytest.fixture(autouse=True)
def no_cmdstan(monkeypatch, tmp_path):
    monkeypatch.delenv("CMDSTAN", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def test_assembled_once(own_cache):
    assert find_cmdstan() is None
    messages = []
    made = ensure_cmdstan(messages.append)
    assert made.origin == "assembled" and made.version == "2.35.0" and made.path.parent == own_cache
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


def test_a_killed_assembly_is_repeated(own_cache):
    script = textwrap.dedent("""
        import shutil, time
        import slayr_py.toolchain.installation as installation
        def slow(*args, **kwargs):
            print("half way", flush=True)
            time.sleep(60)
        installation.shutil.copytree = slow
        from slayr_py.toolchain import ensure_cmdstan
        ensure_cmdstan()
    """)
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "half way\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert find_cmdstan() is None
    left = list((own_cache / ".staging").iterdir())
    assert len(left) == 1
    made = ensure_cmdstan()
    assert is_complete(made.path)
    assert not left[0].exists()


def test_simultaneous_processes_share_one_installation(own_cache):
    script = "from slayr_py.toolchain import ensure_cmdstan; print(ensure_cmdstan().path)"
    running = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    outputs = {process.communicate()[0] for process in running}
    assert len(outputs) == 1
    assert len(list(own_cache.glob("cmdstan-*"))) == 1


def test_headers_are_linked_again_after_a_wheel_was_removed(own_cache, tmp_path):
    wheel, compiler = find_wheel(), find_compiler()
    path = assemble(wheel, compiler)
    (path / "include").unlink()
    (path / "include").symlink_to(tmp_path / "removed environment")
    assert not is_complete(path)
    assert assemble(wheel, compiler) == path
    assert is_complete(path)


def test_another_compiler_has_another_installation(own_cache, monkeypatch, tmp_path, write_script):
    first = installation_path(find_wheel(), find_compiler())
    write_script(tmp_path / "bin" / "my++", "echo my++ 1.0\n")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CXX", "my++")
    assert find_compiler().version == "my++ 1.0"
    assert installation_path(find_wheel(), find_compiler()) != first


def test_compiler_version_is_cached(own_cache, monkeypatch):
    first = find_compiler()
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("the compiler was run again"))
    assert find_compiler() == first


def test_error_without_a_compiler_lists_what_to_install(own_cache, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(ToolchainError) as caught:
        ensure_cmdstan()
    for command in (
        "apt-get install g++ make",
        "dnf install gcc-c++ make",
        "xcode-select --install",
        "conda-forge cxx-compiler",
    ):
        assert command in str(caught.value)
    compiler = next(check for check in doctor() if check.name == "C++ compiler")
    assert not compiler.ok and "apt-get install" in compiler.remedy
    monkeypatch.setenv("CXX", "gcc-of-mine")
    with pytest.raises(ToolchainError, match="CXX=gcc-of-mine"):
        find_compiler()


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


def test_doctor_passes(own_cache):
    checks = doctor()
    assert all(check.ok for check in checks), checks
    assert [check.name for check in checks] == [
        "Python",
        "C++ compiler",
        "make",
        "cmdstanpy",
        "httpstan",
        "CmdStan",
        "cache",
    ]


def test_doctor_reports_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SLAYR_CACHE_DIR", str(tmp_path / "file" / "cache"))
    cache = next(check for check in doctor() if check.name == "cache")
    assert not cache.ok and "SLAYR_CACHE_DIR" in cache.remedy
