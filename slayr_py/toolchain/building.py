"""Compile Stan programs to executables, cached under the hash of sources, options, compiler and CmdStan."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slayr_py.errors import CompileError, ToolchainError, level_outside
from slayr_py.toolchain.cache import cache_dir, locked, staging
from slayr_py.toolchain.cleaning import mark_used
from slayr_py.toolchain.cmdstan import CmdStan, ensure_cmdstan
from slayr_py.toolchain.compiler import compiler_environment, find_make
from slayr_py.toolchain.executables import CompiledProgram, is_intact, is_trusted, publish_executable
from slayr_py.toolchain.math_header import math_header
from slayr_py.toolchain.processor import processor_text
from slayr_py.toolchain.source import cpp_code, stan_code
from slayr_py.toolchain.tools import run_tool

Options = Mapping[str, Any]

_USED_MATH = "USED_MATH=TRUE"


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
        CmdStan, ``{"CXXFLAGS_OPTIM": "-march=native"}`` compiles program and front end for this processor, and
        ``{"USED_MATH": True}`` compiles faster, with the parts of Stan Math that the program names only.
    on_progress
        Called with a message before a slow step.

    Raises
    ------
    CompileError
        If stanc or the compiler fails; the message ends with the last lines of their output.
    ToolchainError
        If there is no CmdStan or no compiler, or the cache cannot be written, or its disk is mounted noexec.
    """
    return compile_build(prepare_build(stan_file, include_paths, stanc_options, cpp_options, on_progress), on_progress)


def compile_build(build: Build, on_progress: Callable[[str], None] | None) -> CompiledProgram:
    """Compile a program unless it is in the cache; errors are those of :func:`compile_program`."""
    program = build.program()
    if not is_trusted(program):
        with locked(program.key):
            if not is_intact(program.exe):
                if program.exe.parent.is_dir():
                    warnings.warn(
                        f"the executable {program.exe} is damaged; it is compiled again",
                        RuntimeWarning,
                        stacklevel=level_outside(),
                    )
                build.run(program, on_progress)
    mark_used(program.exe.parent)
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
        """Translate the program to C++, ``work / "name.hpp"``; return the copy of its source.

        The C++ code quotes the paths of includes. Links beside it make it the same wherever the programs are, so that
        two builds of a wheel have the same bytes.
        """
        name = self.program().name
        stan = work / f"{name}.stan"
        stan.write_bytes(self.source.read_bytes())
        with _linked(self.folders, work) as includes:
            run_tool(
                [
                    str(self.cmdstan.path / "bin" / "stanc"),
                    *self.stanc_options,
                    f"--filename-in-msg={self.source.name}",
                    f"--include-paths={','.join(includes)}",
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
        publish_executable(program, work, together)

    def make(self, exe: Path) -> None:
        """Compile the translated program ``exe.hpp``."""
        if self.cmdstan.origin == "assembled":
            self._run_script(exe)
        else:
            self._run_make(exe)

    def _run_script(self, exe: Path) -> None:
        """Run the script of an assembled CmdStan; only one process at a time compiles the front end."""
        cmdstan = self.cmdstan.path
        settings = dict(flag.split("=", 1) for flag in self.flags)
        settings |= {"CXX": self.cmdstan.compiler.name, **compiler_environment()}
        if _USED_MATH in self.flags:
            settings["MATH_HEADER"] = str(self._write_math_header(exe, settings.get("USER_HEADER")))

        def frontend_exists() -> bool:
            objects = run_tool([*script, "objects"], cmdstan, "the build script failed", settings).split()
            return all((cmdstan / name).is_file() for name in (*objects, "bin/stansummary", "bin/diagnose"))

        script = ["sh", str(cmdstan / "frontend" / "build.sh")]
        with ExitStack() as waiting:
            if not frontend_exists():
                lock = waiting.enter_context(ExitStack())
                lock.enter_context(locked(f"{cmdstan.name}-frontend"))
                if frontend_exists():
                    lock.close()
            program = [*script, "program", os.path.relpath(exe, cmdstan)]
            message = f"the C++ compiler failed on {self.source}"
            try:
                run_tool(program, cmdstan, message, settings)
            except CompileError as error:
                # Some function may need a file of Stan Math that the program does not name.
                if settings.pop("MATH_HEADER", None) is None:
                    raise
                run_tool(program, cmdstan, message, settings)
                warnings.warn(
                    f"{self.source.name} does not compile with the parts of Stan Math that it names and was compiled "
                    f"again with all of them, in twice the time: {error}",
                    RuntimeWarning,
                    stacklevel=level_outside(),
                )

    def _write_math_header(self, exe: Path, header: str | None) -> Path:
        sources = [exe.with_name(f"{exe.name}.hpp")]
        if header:
            sources.append(Path(header))
        path = exe.parent / "used_math.hpp"
        path.write_text(math_header(self.cmdstan.path / "include", sources), encoding="utf-8")
        return path

    def _run_make(self, exe: Path) -> None:
        cmdstan = self.cmdstan.path
        # Make cannot use blanks; a relative name avoids blanks in the path of the cache.
        target = os.path.relpath(exe, cmdstan)
        if " " in target:
            raise ToolchainError(
                f"make cannot use {target}, which has blanks in its name. Set SLAYR_CACHE_DIR to another folder."
            )
        make = [str(find_make()), *self.flags, f"-j{os.cpu_count() or 1}", target]
        run_tool(make, cmdstan, f"the C++ compiler failed on {self.source}")


@contextmanager
def _linked(folders: Sequence[Path], work: Path) -> Iterator[list[str]]:
    """Link folders into the working directory of stanc under their names; yield the relative paths."""
    place = work / "include"
    place.mkdir()
    links: dict[str, Path] = {}
    try:
        for folder in dict.fromkeys(folders):
            own = folder.name.replace(",", "_")  # stanc separates the folders by commas
            name = f"{own}-{len(links)}" if own in links or not own else own
            links[name] = place / name
            links[name].symlink_to(folder, target_is_directory=True)
        yield [f"{place.name}/{name}" for name in links]
    finally:
        shutil.rmtree(place)


def _stanc_arguments(options: Options, cpp_options: Options | None) -> tuple[str, ...]:
    arguments = {
        f"--{key}" if value is True else f"--{key}={value}"
        for key, value in options.items()
        if value is not None and value is not False
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
