"""Programs that a wheel brings along: one executable for each kind of processor."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slayr_py.errors import ToolchainError
from slayr_py.toolchain.cache import cache_dir, locked, staging
from slayr_py.toolchain.cleaning import mark_used
from slayr_py.toolchain.cmdstan import CmdStan
from slayr_py.toolchain.compiler import Compiler
from slayr_py.toolchain.executables import CompiledProgram, file_hash, is_intact, is_trusted, publish_executable
from slayr_py.toolchain.processor import processor_flags
from slayr_py.toolchain.source import cpp_code, stan_code

PREBUILT = Path(__file__).resolve().parents[1] / "prebuilt"
"""Folder of a wheel with executables and ``manifest.json``, which describes them."""


@dataclass(frozen=True)
class Prebuilt:
    """An executable of a wheel.

    Attributes
    ----------
    file
        The executable, which has all programs and selects one by the name with which it is called.
    processor
        Name of the kind of processor it needs, such as ``"x86_64_v3"``.
    compiler
        Version of the compiler.
    command
        The compiler's command.
    stan_version
        Version of Stan.
    sources
        Hash of each program's source with its header, by the program's name.
    sha256
        Hash of the executable.
    """

    file: Path
    processor: str
    compiler: str
    command: str
    stan_version: str
    sources: Mapping[str, str]
    sha256: str

    def has(self, stan_file: Path, code_hash: str) -> bool:
        """Return whether a program with this code, header included, was compiled."""
        return self.sources.get(stan_file.stem) == code_hash


def find_prebuilt() -> Prebuilt | None:
    """Find the executable of the wheel for this processor; None if there is none.

    Raises
    ------
    ToolchainError
        If the wheel's description of its executables cannot be read.
    """
    manifest = PREBUILT / "manifest.json"
    if not manifest.is_file():
        return None
    try:
        builds: list[dict[str, Any]] = json.loads(manifest.read_text(encoding="utf-8"))["builds"]
        for build in builds:
            if _can_run(build["system"], build["machine"], build["instructions"]):
                return Prebuilt(
                    PREBUILT / build["file"], build["processor"], build["compiler"], build["command"],
                    build["stan_version"], build["sources"], build["sha256"],
                )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ToolchainError(f"{manifest} cannot be read: {error!r}. Install slayr-py again.") from error
    return None


def has_prebuilt(stan_file: Path, include_paths: Sequence[Path], header: Path) -> bool:
    """Return whether the wheel has a program: its code and the code of its header are those of the wheel's build."""
    prebuilt = find_prebuilt()
    return prebuilt is not None and prebuilt.has(stan_file, code_hashes(stan_file, include_paths, header)[1])


def prebuilt_program(stan_file: Path, include_paths: Sequence[Path], header: Path) -> CompiledProgram | None:
    """Return a program from the wheel's executable, which is copied to the cache; None if the wheel does not have it.

    Raises
    ------
    ToolchainError
        If the executable is damaged, or the cache cannot be written, or its disk is mounted noexec.
    """
    prebuilt = find_prebuilt()
    if prebuilt is None:
        return None
    source_hash, code_hash = code_hashes(stan_file, include_paths, header)
    if not prebuilt.has(stan_file, code_hash):
        return None
    name = stan_file.stem
    key = f"{name}-{hashlib.sha256(f'{code_hash}{prebuilt.sha256}'.encode()).hexdigest()[:20]}"
    compiler = Compiler(prebuilt.file, prebuilt.command, prebuilt.compiler)
    cmdstan = CmdStan(PREBUILT, prebuilt.stan_version, "wheel", compiler)
    exe = cache_dir() / "programs" / key / name
    flags = (f"USER_HEADER={header}", f"processor={prebuilt.processor}")
    program = CompiledProgram(exe, name, stan_file, source_hash, cmdstan, flags, ("--allow-undefined",), key)
    if not is_trusted(program):
        with locked(key):
            if not is_intact(exe):
                _copy(prebuilt, program)
    mark_used(exe.parent)
    return program


def code_hashes(stan_file: Path, include_paths: Sequence[Path], header: Path) -> tuple[str, str]:
    """Return the hash of a program's source with its includes, and the hash of the source and the header."""
    code = stan_code(stan_file, (*include_paths, stan_file.parent))
    with_header = f"{code}\0{cpp_code(header)}"
    return hashlib.sha256(code.encode()).hexdigest(), hashlib.sha256(with_header.encode()).hexdigest()


def _copy(prebuilt: Prebuilt, program: CompiledProgram) -> None:
    with staging(program.key) as folder:
        work = folder / program.key
        work.mkdir()
        copied = work / program.name
        try:
            shutil.copyfile(prebuilt.file, copied)
        except FileNotFoundError as error:
            raise ToolchainError(f"{prebuilt.file} does not exist. Install slayr-py again.") from error
        if file_hash(copied) != prebuilt.sha256:
            raise ToolchainError(f"{prebuilt.file} is damaged. Install slayr-py again.")
        copied.chmod(0o755)
        publish_executable(program, work, together=True)


def _can_run(system: str, machine: str, instructions: Sequence[str]) -> bool:
    if platform.system() != system or platform.machine().lower() != machine:
        return False
    return processor_flags().issuperset(instructions)


def write_manifest(folder: Path, platform_tag: str, builds: Sequence[Mapping[str, Any]]) -> None:
    """Describe the executables in a folder for a wheel of a platform.

    The first executable that can run on a machine is used there.
    """
    described = [dict(build) | {"sha256": file_hash(folder / build["file"])} for build in builds]
    text = json.dumps({"platform": platform_tag, "builds": described}, indent=1, sort_keys=True)
    (folder / "manifest.json").write_text(text + "\n", encoding="utf-8")
