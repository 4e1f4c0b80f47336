"""Check the toolchain on this machine and report remedies."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from slayr_py.errors import ToolchainError
from slayr_py.toolchain.building import compile_program
from slayr_py.toolchain.cache import cache_dir, check_owner, is_noexec, make_folder, noexec_error
from slayr_py.toolchain.cleaning import UNUSED_DAYS, cache_size, unused_folders
from slayr_py.toolchain.cmdstan import ensure_cmdstan, find_cmdstan, ignored_cmdstans
from slayr_py.toolchain.compiler import find_compiler, find_make
from slayr_py.toolchain.prebuilt import find_prebuilt
from slayr_py.toolchain.processor import processor_options
from slayr_py.toolchain.wheel import find_wheel

_PROGRAM = "parameters { real z; }\nmodel { z ~ std_normal(); }\n"


@dataclass(frozen=True)
class Check:
    """Result of a check by :func:`doctor`.

    Attributes
    ----------
    name
        Name of the checked program or folder.
    ok
        Whether the check passed.
    detail
        Version and location, or the problem.
    remedy
        How to fix the problem; empty if there is none.
    """

    name: str
    ok: bool
    detail: str
    remedy: str = ""


def doctor(build: bool = False) -> list[Check]:
    """Check compiler, make, CmdStan, httpstan and cache.

    Parameters
    ----------
    build
        Also compile a program of two lines and draw from it, which takes about half a minute the first time.

    Returns
    -------
    list of Check
        Problems should be fixed in this order.
    """
    python = Check("Python", True, f"{platform.python_version()} on {platform.platform()}")
    prebuilt = _check("programs", _prebuilt)
    compilation = _compilation()
    if prebuilt.ok:
        compilation = [_optional(check) for check in compilation]
    cmdstanpy = Check("cmdstanpy", True, importlib.metadata.version("cmdstanpy"))
    checks = [python, *([prebuilt] if find_prebuilt() else []), cmdstanpy, *compilation, _check("cache", _cache)]
    if build:
        checks.append(_check("a compiled program", _compile_and_draw))
    return checks


def _compilation() -> list[Check]:
    """Check what compiles a program."""
    compiler = _check("C++ compiler", _compiler)
    cmdstan = _check("CmdStan", _cmdstan)
    httpstan = _check("httpstan", _httpstan)
    # The wheel is not needed if the user has a CmdStan, and only such a CmdStan needs make.
    if cmdstan.ok and not httpstan.ok:
        httpstan = Check("httpstan", True, "not used: " + httpstan.detail)
    make = _check("make", lambda: str(find_make()))
    if httpstan.ok:
        make = _optional(make)
    return [compiler, make, httpstan, cmdstan, *(Check("CmdStan, ignored", True, text) for text in ignored_cmdstans())]


def _optional(check: Check) -> Check:
    """Return a check that passes, of something that only other programs need."""
    return check if check.ok else Check(check.name, True, f"not needed: {check.detail}")


def _prebuilt() -> str:
    prebuilt = find_prebuilt()
    if prebuilt is None:
        raise ToolchainError("no compiled programs are installed. They are compiled at the first use.")
    return f"installed with the package for {prebuilt.processor}, Stan {prebuilt.stan_version} ({prebuilt.compiler})"


def _check(name: str, find: Callable[[], str]) -> Check:
    try:
        return Check(name, True, find())
    except ToolchainError as error:
        detail, _, remedy = str(error).partition(". ")
        return Check(name, False, detail, remedy)


def _compiler() -> str:
    compiler = find_compiler()
    return f"{compiler.version} ({compiler.path})"


def _httpstan() -> str:
    wheel = find_wheel()
    return f"{wheel.version} ({wheel.folder})"


def _cmdstan() -> str:
    cmdstan = find_cmdstan()
    if cmdstan is not None:
        return f"{cmdstan.version} in {cmdstan.path} ({cmdstan.origin})"
    find_wheel()
    return "none yet; it is assembled from httpstan at the first use"


def _cache() -> str:
    folder = cache_dir()
    try:
        make_folder(folder)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ToolchainError(
            f"{folder} cannot be written: {error.strerror}. "
            "Free disk space or change permissions there, or set SLAYR_CACHE_DIR to another folder."
        ) from error
    if is_noexec(folder):
        raise noexec_error()
    check_owner(folder / "programs", *folder.glob("cmdstan-*"))
    text = f"{folder}, {cache_size() / 1e6:.0f} MB"
    if unused := len(unused_folders(UNUSED_DAYS)):
        folders = "1 folder" if unused == 1 else f"{unused} folders"
        text += f"; {folders} not used for {UNUSED_DAYS} days: slayr toolchain clean"
    return text


def _compile_and_draw() -> str:
    with tempfile.TemporaryDirectory(prefix="slayr-") as folder:
        source = Path(folder) / "doctor.stan"
        source.write_text(_PROGRAM, encoding="utf-8")
        program = compile_program(source, cpp_options=processor_options(ensure_cmdstan()))
        environment = {**os.environ, "STAN_NUM_THREADS": "1"}
        command = [
            str(program.exe),
            "sample",
            "num_samples=10",
            "num_warmup=10",
            "random",
            "seed=1",
            "output",
            "file=draws.csv",
        ]
        run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise ToolchainError(
                f"{program.exe} failed: {(run.stderr or run.stdout).strip()}. Remove {cache_dir()} and try again."
            )
        return f"{program.exe} draws"
