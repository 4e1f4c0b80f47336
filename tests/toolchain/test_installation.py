"""The atomic assembly of an installation."""

from __future__ import annotations

import importlib.metadata
import os
import signal
import subprocess
import sys
import textwrap

import pytest
from testing_processes import started

from slayr_py.errors import ToolchainError
from slayr_py.toolchain import ensure_cmdstan, find_cmdstan
from slayr_py.toolchain.compiler import find_compiler
from slayr_py.toolchain.installation import assemble, installation_path, is_complete
from slayr_py.toolchain.wheel import STAN_VERSIONS, find_wheel

httpstan = pytest.importorskip("httpstan", reason="no wheel of httpstan for this Python")
pytestmark = pytest.mark.usefixtures("no_cmdstan")


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
    script = "from slayr_py.toolchain import ensure_cmdstan; ensure_cmdstan()"
    with started(script) as one, started(script) as other:
        assert one.wait() == other.wait() == 0
    (path,) = own_cache.glob("cmdstan-*")
    assert is_complete(path)


def test_headers_are_linked_again_after_a_wheel_was_removed(own_cache, tmp_path):
    wheel = find_wheel()
    compiler = find_compiler()
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


class _Httpstan:
    """The metadata of an installed wheel without its compiler."""

    def __init__(self, folder, version, stan_version):
        self.folder = folder
        self.version = version
        for name in ("stanc", "lib/libtbb.so.2"):
            file = folder / "httpstan" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("content")
        header = folder / "httpstan" / "include" / "stan" / "version.hpp"
        header.parent.mkdir(parents=True)
        parts = zip(("MAJOR", "MINOR", "PATCH"), stan_version.split("."), strict=True)
        header.write_text("".join(f"#define STAN_{name} {number}\n" for name, number in parts))

    def locate_file(self, name):
        return self.folder / name

    def read_text(self, name):
        return "Tag: py3-none-any\n"


@pytest.mark.parametrize(("stan_version", "release"), STAN_VERSIONS.items())
def test_an_installation_has_the_version_of_stan_of_its_wheel(own_cache, monkeypatch, tmp_path, stan_version, release):
    wheel = _Httpstan(tmp_path, f"{release}.0", stan_version)
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: wheel)
    made = ensure_cmdstan()
    assert made.version == stan_version and made.path.name.startswith(f"cmdstan-{stan_version}-")
    assert find_cmdstan() == made


def test_a_wheel_with_another_version_of_stan_is_refused(own_cache, monkeypatch, tmp_path):
    wheel = _Httpstan(tmp_path, "4.15.0", "2.37.0")
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: wheel)
    with pytest.raises(ToolchainError, match=r"contains Stan 2\.37\.0, 2\.35\.0 or 2\.39\.0 is needed"):
        ensure_cmdstan()
