"""Programs that a wheel brings along: when they are used, and a wheel that has them."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from slayr_py.errors import ToolchainError
from slayr_py.toolchain import code_hashes, doctor, prebuilt, prebuilt_program, write_manifest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def wheel(tmp_path, monkeypatch, source, own_cache):
    """Install an executable for `source`; return a function that changes its description and finds the program."""
    folder = tmp_path / "prebuilt"
    folder.mkdir()
    header = tmp_path / "f.hpp"
    header.write_text("int a;\n")
    (folder / "programs").write_text("#!/bin/sh\n")
    description = {
        "file": "programs", "system": platform.system(), "machine": platform.machine().lower(), "processor": "any",
        "instructions": [], "stan_version": "2.35.0", "compiler": "clang 22", "command": "clang -O3",
        "sources": {"p": code_hashes(source, (), header)[1]},
    }  # fmt: skip
    monkeypatch.setattr(prebuilt, "PREBUILT", folder)

    def find(*builds: dict):
        write_manifest(folder, "any", [description | build for build in builds])
        return prebuilt_program(source, (), header)

    find.folder = folder
    find.description = description
    find.header = header
    return find


def test_a_prebuilt_program_is_copied_to_the_cache_and_says_where_it_came_from(wheel, own_cache, monkeypatch):
    monkeypatch.setenv("PATH", "")
    program = wheel({})
    assert program.exe.read_text() == "#!/bin/sh\n" and program.exe.name == "p" and own_cache in program.exe.parents
    assert os.access(program.exe, os.X_OK) and program.together
    assert (program.cmdstan.origin, program.cmdstan.version) == ("wheel", "2.35.0")
    assert program.cmdstan.compiler.version == "clang 22" and "processor=any" in program.flags
    assert wheel({}).exe == program.exe
    # A damaged copy is replaced.
    program.exe.write_text("#!/bin/false\n")
    assert wheel({}).exe.read_text() == "#!/bin/sh\n"


@pytest.mark.parametrize(
    "build",
    [{"system": "Plan 9"}, {"machine": "vax"}, {"instructions": ["of another processor"]}, {"sources": {}}],
    ids=lambda build: next(iter(build)),
)
def test_an_executable_for_other_machines_or_programs_is_not_used(wheel, build):
    assert wheel(build) is None
    assert wheel(build, {}) is not None or "sources" in build


def test_an_edited_program_or_header_is_compiled(wheel, source):
    text = source.read_text()
    source.write_text("// a comment\n" + text)
    assert wheel({}) is not None
    wheel.header.write_text("int b;\n")
    assert wheel({}) is None
    wheel.header.write_text("int a;\n")
    source.write_text(text + "generated quantities { }\n")
    assert wheel({}) is None


@pytest.mark.parametrize("settings", [{}, {"NO_SUNDIALS": "TRUE"}], ids=["of this machine", "of another machine"])
def test_programs_for_other_machines_are_linked_without_libraries_of_this_one(tmp_path, write_script, settings):
    shutil.copytree(ROOT / "slayr_py" / "toolchain" / "frontend", tmp_path / "frontend")
    compiler = tmp_path / "compiler"
    write_script(compiler, 'echo "$*" >>calls\nwhile [ "$1" != -o ]; do shift; done\n: >"$2"\n')
    environment = {"PATH": os.environ["PATH"], "CXX": str(compiler), **settings}
    subprocess.run(["sh", tmp_path / "frontend" / "build.sh", "program", "p"], env=environment, check=True)
    link = (tmp_path / "calls").read_text().splitlines()[-1]
    assert link.endswith("-o p") and ("-lsundials" in link) == (not settings)


def test_a_damaged_wheel_is_an_error(wheel, source):
    write_manifest(wheel.folder, "any", [wheel.description])
    manifest = wheel.folder / "manifest.json"
    described = json.loads(manifest.read_text())
    described["builds"][0]["sha256"] = "0" * 64
    manifest.write_text(json.dumps(described))
    with pytest.raises(ToolchainError, match=r"programs is damaged\. Install slayr-py again"):
        prebuilt_program(source, (), wheel.header)
    manifest.write_text("{")
    with pytest.raises(ToolchainError, match=r"manifest\.json cannot be read.*Install slayr-py again"):
        prebuilt_program(source, (), wheel.header)


def test_a_wheel_and_a_cache_on_a_disk_from_which_no_program_runs_is_an_error(wheel, own_cache, monkeypatch):
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_flag=os.ST_NOEXEC))
    with pytest.raises(ToolchainError, match=r"its disk is mounted noexec\. Set SLAYR_CACHE_DIR"):
        wheel({})
    assert not list(own_cache.glob("programs/*"))


def test_nothing_is_missing_without_a_compiler_if_programs_are_installed(wheel, monkeypatch, no_cmdstan, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.delenv("CXX", raising=False)
    assert not all(check.ok for check in doctor())
    wheel({})
    checks = {check.name: check for check in doctor()}
    assert all(check.ok for check in checks.values())
    assert checks["programs"].detail == "installed with the package for any, Stan 2.35.0 (clang 22)"
    assert checks["C++ compiler"].detail.startswith("not needed: no C++ compiler found")


FIT = """
import sys, importlib.util
from ConfigSpace import ConfigurationSpace
import slayr_py as sl
assert importlib.util.find_spec("slayr_py").origin.startswith(sys.argv[1])
gp = sl.GaussianProcess(ConfigurationSpace({"x": (0.0, 1.0)}))
posterior = gp.fit([{"x": i / 5} for i in range(6)], [0.1, 0.7, 0.2, 0.9, 0.4, 0.3], method="laplace", draws=20, seed=1)
cmdstan = posterior.record["cmdstan"]
print(cmdstan["origin"], posterior.record["program"]["likelihood"], cmdstan["command"])
"""


@pytest.mark.stan
def test_a_wheel_with_programs_fits_without_a_compiler(tmp_path):
    """The executable is the one in this machine's cache."""
    from slayr_py.inference.sampling.programs import compiled

    folder = tmp_path / "programs"
    folder.mkdir()
    program = compiled("matern_gp")
    (folder / "matern_gp").write_bytes(program.exe.read_bytes())
    stan = program.source.parent
    _, code = code_hashes(program.source, (stan / "accelerated", stan), program.header)
    build = {
        "file": "matern_gp", "system": platform.system(), "machine": platform.machine().lower(), "processor": "this",
        "instructions": [], "stan_version": "2.35.0", "compiler": "c", "command": "c -O3",
        "sources": {"matern_gp": code},
    }  # fmt: skip
    write_manifest(folder, "linux_this", [build])
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path],
        cwd=ROOT,
        env=os.environ | {"SLAYR_PREBUILT": str(folder)},
        check=True,
    )
    (wheel,) = tmp_path.glob("*-py3-none-linux_this.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    environment = {
        "PYTHONPATH": str(site), "PATH": str(tmp_path / "empty"), "HOME": str(tmp_path), "CXX": "missing",
        "SLAYR_CACHE_DIR": str(tmp_path / "cache"),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", FIT, str(site)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["wheel", "accelerated", "c", "-O3"], done.stderr
