"""Compile Stan programs to executables, cached under the hash of sources, options, compiler and CmdStan."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slayr_py.errors import CompileError, ToolchainError
from slayr_py.toolchain.cache import cache_dir, check_owner, locked, publish, staging
from slayr_py.toolchain.cmdstan import CmdStan, ensure_cmdstan
from slayr_py.toolchain.compiler import find_make
from slayr_py.toolchain.processor import processor_text
from slayr_py.toolchain.source import cpp_code, stan_code

if TYPE_CHECKING:
    import cmdstanpy

Options = Mapping[str, Any]

_LAST_LINES = 30


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
        The CmdStan of the compilation.
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
        """Whether it was compiled as one executable with other programs, by `compile_together`."""
        try:
            description = json.loads((self.exe.parent / "program.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return bool(description.get("together"))

    def model(self) -> cmdstanpy.CmdStanModel:
        """Return the program as a model of cmdstanpy, which then needs neither the source nor a compilation."""
        import cmdstanpy

        # summary() and diagnose() of its fits use the CmdStan that cmdstanpy is set to when they are called.
        cmdstanpy.set_cmdstan_path(str(self.cmdstan.path))
        return cmdstanpy.CmdStanModel(exe_file=str(self.exe))


def compile_program(
    stan_file: str | os.PathLike[str],
    *,
    include_paths: Sequence[str | os.PathLike[str]] = (),
    stanc_options: Options | None = None,
    cpp_options: Options | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> CompiledProgram:
    """Compile a Stan program, or return it from the cache.

    Parameters
    ----------
    stan_file
        The program.
    include_paths
        Folders of included files, searched in this order; the program's own folder comes last.
    stanc_options
        Options of stanc, as in cmdstanpy: ``{"O1": True, "allow-undefined": True}``.
    cpp_options
        Options of make, as in cmdstanpy: ``{"STAN_THREADS": True, "USER_HEADER": "f.hpp"}``. With an assembled
        CmdStan ``{"CXXFLAGS_OPTIM": "-march=native"}`` compiles program and front end for this processor.
    on_progress
        Called with a message before a slow step.

    Raises
    ------
    CompileError
        If stanc or the compiler fails; the message ends with the last lines of their output.
    ToolchainError
        If there is no CmdStan or no compiler, or the cache cannot be written.
    """
    build = prepare_build(stan_file, include_paths, stanc_options, cpp_options, on_progress)
    program = build.program()
    if not is_trusted(program):
        with locked(program.key):
            if not is_intact(program.exe):
                if program.exe.parent.is_dir():
                    warnings.warn(
                        f"the executable {program.exe} is damaged; it is compiled again", RuntimeWarning, stacklevel=2
                    )
                build.run(program, on_progress)
    return program


def prepare_build(
    stan_file: str | os.PathLike[str],
    include_paths: Sequence[str | os.PathLike[str]],
    stanc_options: Options | None,
    cpp_options: Options | None,
    on_progress: Callable[[str], None] | None,
) -> Build:
    """Return the build of a program from the arguments of :func:`compile_program`."""
    source = Path(stan_file).expanduser().absolute()
    if source.suffix != ".stan":
        raise CompileError(f"{source} is not a Stan program; its name must end in .stan")
    options = dict(stanc_options or {})
    options_paths = options.pop("include-paths", ())
    folders = [Path(path).expanduser().absolute() for path in include_paths]
    folders += [
        Path(path).expanduser().absolute()
        for path in ([options_paths] if isinstance(options_paths, str) else options_paths)
    ]
    folders.append(source.parent)

    cmdstan = ensure_cmdstan(on_progress)
    return Build(source, tuple(folders), _stanc_arguments(options, cpp_options), _make_arguments(cpp_options), cmdstan)


def is_trusted(program: CompiledProgram) -> bool:
    """Return whether a program can be run as it is: its executable is intact, and others cannot write to it.

    Raises
    ------
    ToolchainError
        If others can write to the program.
    """
    check_owner(program.exe.parent)
    return is_intact(program.exe)


def is_intact(exe: Path) -> bool:
    """Return whether an executable has the size and the hash that it had when it was built."""
    try:
        stat = exe.stat()
        built = json.loads((exe.parent / "program.json").read_text(encoding="utf-8"))["executable"]
        if stat.st_size != built["size"] or _file_hash(exe, stat.st_mtime_ns, stat.st_size) != built["sha256"]:
            return False
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return os.access(exe, os.X_OK)


@lru_cache(maxsize=64)
def _file_hash(path: Path, mtime_ns: int, size: int) -> str:
    """Return the SHA-256 of a file; a file with the same time and size is read once per process."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


@dataclass(frozen=True)
class Build:
    """Sources, options and CmdStan, which determine an executable."""

    source: Path
    folders: tuple[Path, ...]
    stanc_options: tuple[str, ...]
    flags: tuple[str, ...]
    cmdstan: CmdStan

    def program(self) -> CompiledProgram:
        """Return the program, which may not be compiled yet."""
        source_hash = hashlib.sha256(stan_code(self.source, self.folders).encode()).hexdigest()
        name = re.sub(r"\W", "_", self.source.stem)
        key = hashlib.sha256()
        # The path of the header does not matter; _environment adds its content.
        flags = ["USER_HEADER" if flag.startswith("USER_HEADER=") else flag for flag in self.flags]
        for part in (source_hash, name, *self.stanc_options, "", *flags, "", *self._environment()):
            key.update(part.encode() + b"\0")
        folder = f"{name}-{key.hexdigest()[:20]}"
        exe = cache_dir() / "programs" / folder / name
        return CompiledProgram(
            exe, name, self.source, source_hash, self.cmdstan, self.flags, self.stanc_options, folder
        )

    def _environment(self) -> list[str]:
        compiler = self.cmdstan.compiler
        parts = [str(self.cmdstan.path), self.cmdstan.version, str(compiler.path), compiler.name, compiler.version]
        parts += [cpp_code(Path(flag.partition("=")[2])) for flag in self.flags if flag.startswith("USER_HEADER=")]
        if any("native" in flag for flag in self.flags):
            parts.append(processor_text())
        return parts

    def run(self, program: CompiledProgram, on_progress: Callable[[str], None] | None) -> None:
        """Compile the program and publish it in the cache."""
        with staging(program.key) as folder:
            work = folder / program.key
            work.mkdir()
            stan = self.translate(work)
            if on_progress is not None:
                on_progress(f"compiling {program.name} (about half a minute, once)")
            self.make(work / program.name)
            stan.unlink(missing_ok=True)
            self.publish(program, work)

    def translate(self, work: Path) -> Path:
        """Translate the program to C++, ``work / "name.hpp"``; return the copy of its source."""
        name = self.program().name
        stan = work / f"{name}.stan"
        stan.write_bytes(self.source.read_bytes())
        includes = ",".join(str(path) for path in self.folders)
        _call(
            [
                str(self.cmdstan.path / "bin" / "stanc"),
                *self.stanc_options,
                f"--filename-in-msg={self.source.name}",
                f"--include-paths={includes}",
                f"--o={work / f'{name}.hpp'}",
                str(stan),
            ],
            work,
            f"stanc refused {self.source}",
        )
        return stan

    def publish(self, program: CompiledProgram, work: Path, together: bool = False) -> None:
        """Describe the executable in a folder and move the folder to the cache."""
        if self.program().key != program.key:
            raise CompileError(f"{self.source} changed while it was compiled; compile it again")
        exe = work / program.name
        description = _description(program) | {"together": together}
        description["executable"] = {
            "size": exe.stat().st_size,
            "sha256": hashlib.sha256(exe.read_bytes()).hexdigest(),
        }
        (work / "program.json").write_text(json.dumps(description, indent=1), encoding="utf-8")
        publish(work, program.exe.parent)

    def make(self, exe: Path) -> None:
        """Run CmdStan's make; only one process at a time compiles the front end."""
        cmdstan = self.cmdstan.path
        # Make cannot use blanks; a relative name avoids blanks in the path of the cache.
        target = os.path.relpath(exe, cmdstan)
        if " " in target:
            raise ToolchainError(
                f"make cannot use {target}, which has blanks in its name. Set SLAYR_CACHE_DIR to another folder."
            )
        make = [str(find_make()), *self.flags]
        with ExitStack() as waiting:
            if self.cmdstan.origin == "assembled" and not _frontend_exists(make, cmdstan):
                lock = waiting.enter_context(ExitStack())
                lock.enter_context(locked(f"{cmdstan.name}-frontend"))
                if _frontend_exists(make, cmdstan):
                    lock.close()
            _call([*make, f"-j{os.cpu_count() or 1}", target], cmdstan, f"the C++ compiler failed on {self.source}")


def _frontend_exists(make: list[str], cmdstan: Path) -> bool:
    objects = _call([*make, "-s", "objects"], cmdstan, "make failed").split()
    return all((cmdstan / name).is_file() for name in (*objects, "bin/stansummary", "bin/diagnose"))


def _call(command: list[str], folder: Path, message: str) -> str:
    """Run a tool and return its output; if this process is interrupted, kill the tool and its children."""
    # A make that runs this process (a test run, a package build) must not pass its MAKEFLAGS on.
    environment = {
        name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    }
    environment["LC_ALL"] = "C"
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            umask=0o022,  # others must not be able to write to objects in the cache
        )
    except OSError as error:
        raise ToolchainError(f"cannot run {command[0]}: {error.strerror}") from error
    try:
        output, _ = process.communicate()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    if process.returncode != 0:
        lines = output.strip().splitlines()[-_LAST_LINES:]
        raise CompileError(f"{message}:\n" + "\n".join(lines))
    return output


def _stanc_arguments(options: Options, cpp_options: Options | None) -> tuple[str, ...]:
    arguments = {
        f"--{key}" if value is True else f"--{key}={value}"
        for key, value in options.items()
        if value not in (None, False)
    }
    if (cpp_options or {}).get("USER_HEADER"):
        arguments.add("--allow-undefined")
    return tuple(sorted(arguments))


def _make_arguments(options: Options | None) -> tuple[str, ...]:
    arguments = []
    for key, value in (options or {}).items():
        if value is None or value is False:
            continue
        if key == "USER_HEADER":
            value = Path(value).expanduser().absolute()
        arguments.append(f"{key}={'TRUE' if value is True else value}")
    return tuple(sorted(arguments))


def _description(program: CompiledProgram) -> dict[str, object]:
    return {
        "name": program.name,
        "source": str(program.source),
        "source_sha256": program.source_hash,
        "stanc_options": program.stanc_options,
        "flags": program.flags,
        "cmdstan": {"path": str(program.cmdstan.path), "version": program.cmdstan.version},
        "compiler": {"path": str(program.cmdstan.compiler.path), "version": program.cmdstan.compiler.version},
    }
