"""Executables of Stan programs in the cache: their description and their integrity."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from slayr_py.toolchain.cache import check_executable, check_owner, publish
from slayr_py.toolchain.cmdstan import CmdStan

if TYPE_CHECKING:
    import cmdstanpy


@dataclass(frozen=True)
class CompiledProgram:
    """A compiled Stan program in the cache.

    Attributes
    ----------
    exe
        The executable.
    name
        Name of the program: its file name without ``.stan``.
    source
        The compiled ``.stan`` file.
    source_hash
        SHA-256 of the source with its includes, without comments and layout.
    cmdstan
        The CmdStan of the compilation; its origin is "wheel" if the executable came with the package.
    flags
        Options of make, ``KEY=VALUE``, sorted.
    stanc_options
        Options of stanc, sorted.
    key
        Name of its folder in the cache: the hash of the attributes above, the compiler, and (if the code is for this
        processor only) the processor.
    """

    exe: Path
    name: str
    source: Path
    source_hash: str
    cmdstan: CmdStan
    flags: tuple[str, ...]
    stanc_options: tuple[str, ...]
    key: str

    @property
    def header(self) -> Path | None:
        """C++ header that defines functions that the program declares; None if it was compiled without a header."""
        headers = [flag.partition("=")[2] for flag in self.flags if flag.startswith("USER_HEADER=")]
        return Path(headers[0]) if headers else None

    @property
    def together(self) -> bool:
        """Whether it is one executable with other programs, compiled by `compile_together`."""
        try:
            description = json.loads((self.exe.parent / "program.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return bool(description.get("together"))

    def model(self) -> cmdstanpy.CmdStanModel:
        """Return the program as a model of cmdstanpy, which then needs neither the source nor a compilation."""
        import cmdstanpy

        from slayr_py.toolchain.model import ExecutableModel

        # summary() and diagnose() of its fits use the CmdStan that cmdstanpy is set to when they are called.
        if self.cmdstan.origin != "wheel":
            cmdstanpy.set_cmdstan_path(str(self.cmdstan.path))
        return ExecutableModel(exe_file=str(self.exe))


def is_trusted(program: CompiledProgram) -> bool:
    """Return whether a program can be run as it is: its executable is intact, and others cannot write to it.

    Raises
    ------
    ToolchainError
        If others can write to the program, or the disk of the cache is mounted noexec.
    """
    check_owner(program.exe.parent)
    return is_intact(program.exe)


def is_intact(exe: Path) -> bool:
    """Return whether an executable has the size and the hash that it had when it was built.

    Raises
    ------
    ToolchainError
        If it has, and the disk of the cache is mounted noexec.
    """
    try:
        stat = exe.stat()
        built = json.loads((exe.parent / "program.json").read_text(encoding="utf-8"))["executable"]
        if stat.st_size != built["size"] or _known_hash(exe, stat.st_mtime_ns, stat.st_size) != built["sha256"]:
            return False
    except (OSError, ValueError, KeyError, TypeError):
        return False
    check_executable(exe)
    return os.access(exe, os.X_OK)


@lru_cache(maxsize=64)
def _known_hash(path: Path, mtime_ns: int, size: int) -> str:
    """Return the SHA-256 of a file; a file with the same time and size is read once per process."""
    return file_hash(path)


def publish_executable(program: CompiledProgram, work: Path, together: bool) -> None:
    """Describe the executable in a folder and move the folder to the cache, unless no program can be run there."""
    exe = work / program.name
    check_executable(exe)
    description = {
        "name": program.name,
        "source": str(program.source),
        "source_sha256": program.source_hash,
        "stanc_options": program.stanc_options,
        "flags": program.flags,
        "cmdstan": {
            "path": str(program.cmdstan.path), "version": program.cmdstan.version, "origin": program.cmdstan.origin
        },
        "compiler": {"path": str(program.cmdstan.compiler.path), "version": program.cmdstan.compiler.version},
        "together": together,
        "executable": {"size": exe.stat().st_size, "sha256": file_hash(exe)},
    }  # fmt: skip
    (work / "program.json").write_text(json.dumps(description, indent=1), encoding="utf-8")
    publish(work, program.exe.parent)


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
