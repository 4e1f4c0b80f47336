from __future__ import annotations

import shutil
import subprocess
from importlib.resources import files

import pytest

from slayr_py.errors import ToolchainError
from slayr_py.toolchain import doctor, ensure_cmdstan
from slayr_py.toolchain.compiler import find_compiler

httpstan = pytest.importorskip("httpstan", reason="no wheel of httpstan for this Python")
pytestmark = pytest.mark.usefixtures("no_cmdstan")


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


def test_paths_of_headers_may_have_apostrophes(write_script, tmp_path):
    log = tmp_path / "log"
    record = f'printf "%s\\n" "$@" >> "{log}"; for word; do last=$word; done; touch "$last"\n'  # the output is last
    write_script(tmp_path / "g++", record)
    cmdstan = tmp_path / "o'brien"
    (cmdstan / "frontend").mkdir(parents=True)
    with (cmdstan / "frontend" / "build.sh").open("wb") as script:
        script.write((files("slayr_py") / "toolchain" / "frontend" / "build.sh").read_bytes())
    headers = {"USER_HEADER": f"{cmdstan}/own's.hpp", "MATH_HEADER": f"{cmdstan}/math.hpp"}
    settings = {"CXX": str(tmp_path / "g++"), "STAN_THREADS": "true", "PATH": "/usr/bin:/bin", **headers}
    command = [shutil.which("sh") or "sh", "frontend/build.sh", "program", "it's"]
    subprocess.run(command, cwd=cmdstan, env=settings, check=True, capture_output=True)
    words = log.read_text().splitlines()
    assert set(headers.values()) <= set(words) and "it's.hpp" in words and f"-Wl,-rpath,{cmdstan}/lib" in words
