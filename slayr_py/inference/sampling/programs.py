"""Find and compile the Stan programs, with the accelerated or the readable likelihood.

Every program includes its log marginal likelihood from ``functions/*_marginal.stan``. ``stan/functions`` defines it in
Stan. ``stan/accelerated/functions`` only declares it, and a C++ header defines it together with its derivatives. The
order of the include paths selects one of the two.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Literal, cast, get_args

from slayr_py.errors import CompileError, DataError, level_outside
from slayr_py.inference.sampling.own_sources import OwnSources, own_sources
from slayr_py.toolchain import (
    CompiledProgram,
    accelerated_sources,
    check_toolchain,
    compile_accelerated,
    compile_accelerated_together,
    compile_program,
    ensure_cmdstan,
    expand_stan,
    has_prebuilt,
    is_trusted,
    prebuilt_program,
    processor_options,
    program_folder,
    program_names,
)

Implementation = Literal["accelerated", "readable"]

_refused: dict[str, tuple[object, str]] = {}  # accelerated likelihoods that did not compile: their state, the message
_found: dict[tuple[str | None, ...], tuple[object, CompiledProgram]] = {}  # programs that were used, and their state

_VARIABLES = ("CMDSTAN", "CONDA_PREFIX", "CXX", "HOME", "PATH", "SLAYR_CACHE_DIR", "XDG_CACHE_HOME")
"""Environment variables that decide which compiler, CmdStan and cache are used."""


def selected_likelihood() -> Implementation:
    """Return the likelihood that the environment variable ``SLAYR_LIKELIHOOD`` selects, by default "accelerated".

    Raises
    ------
    DataError
        If it is neither "accelerated" nor "readable".
    """
    likelihood = os.environ.get("SLAYR_LIKELIHOOD", "accelerated")
    if likelihood not in get_args(Implementation):
        raise DataError(f"SLAYR_LIKELIHOOD is {likelihood!r}; set it to {' or '.join(get_args(Implementation))}")
    return cast(Implementation, likelihood)


def compiled(
    name: str, progress: Callable[[str], None] | None = None, likelihood: Implementation | None = None
) -> CompiledProgram:
    """Return the executable of a kernel's program; compile it unless it was installed or is in the cache.

    A loop asks for its program at every fit. A program that this process has used is returned without a look at
    compiler and CmdStan while neither the sources nor `_VARIABLES` change and the executable is intact.

    Parameters
    ----------
    likelihood : {"accelerated", "readable"}, optional
        By default :func:`selected_likelihood`. If the accelerated likelihood does not compile, a warning is issued and
        the readable likelihood is used. The program of a user's kernel has only the readable one.

    Raises
    ------
    CompileError
        If the program does not compile; if ``likelihood`` is given, without a fall-back.
    """
    key = (name, likelihood, selected_likelihood())
    with own_sources(name, program_folder()) as own:
        state = [*map(os.environ.get, _VARIABLES), *_sources(program_folder()), None if own is None else own.code]
        before, program = _found.get(key, (None, None))
        if program is None or before != state or not is_trusted(program):
            program = _compiled(name, progress, likelihood, state) if own is None else _compiled_own(own, progress)
            _found[key] = (state, program)
    return program


def _sources(folder: Path) -> Iterator[tuple[str, int, int]]:
    """Yield name, time and size of the files of a folder and of its folders."""
    for entry in os.scandir(folder):
        if entry.is_dir():
            yield from _sources(Path(entry.path))
        else:
            stat = entry.stat()
            yield entry.path, stat.st_mtime_ns, stat.st_size


def _compiled(
    name: str, progress: Callable[[str], None] | None, likelihood: Implementation | None, state: object
) -> CompiledProgram:
    """Compile a program unless it is in the cache.

    An accelerated likelihood that did not compile is tried again if it is asked for by name, or in another ``state`` of
    sources and environment.
    """
    sources = accelerated_sources(name)
    refused = likelihood is None and name in _refused and _refused[name][0] == state
    if (likelihood or selected_likelihood()) == "accelerated" and not refused:
        ready = prebuilt_program(*sources)
        if ready is not None:
            return ready
        try:
            return compile_accelerated(name, progress)
        except CompileError as error:
            if likelihood:
                raise
            _refused[name] = (state, str(error))
            warnings.warn(
                f"the accelerated likelihood of {name} does not compile here; falling back to the readable one, "
                f"which is several times slower: {error}",
                RuntimeWarning,
                stacklevel=level_outside(),
            )
    return compile_program(sources.stan_file, include_paths=(program_folder(),), on_progress=progress)


def program_text(name: str) -> str:
    """Return the text of a kernel's program, with its includes and the readable likelihood.

    Raises
    ------
    CompileError
        If a file of a user's kernel does not exist.
    """
    folder = program_folder()
    with own_sources(name, folder) as own:
        if own is not None:
            return expand_stan(own.stan_file, own.include_paths)
    return expand_stan(folder / f"{name}.stan", (folder,))


def _compiled_own(own: OwnSources, progress: Callable[[str], None] | None) -> CompiledProgram:
    """Compile the program of a user's kernel unless it is in the cache."""
    options = processor_options(ensure_cmdstan())
    try:
        return compile_program(
            own.stan_file, include_paths=own.include_paths, cpp_options=options, on_progress=progress
        )
    except CompileError as error:
        raise CompileError(f"the kernel's Stan file {own.users_file} does not compile; correct it: {error}") from error


def check_programs() -> None:
    """Check that every program is installed or can be compiled here, without compiling or writing anything.

    Raises
    ------
    ToolchainError
        If a compiler or CmdStan is needed and missing.
    """
    if not all_prebuilt():
        check_toolchain()


def all_prebuilt() -> bool:
    """Return whether the selected likelihood of every program was installed with the package."""
    return selected_likelihood() == "accelerated" and all(
        has_prebuilt(*accelerated_sources(name)) for name in program_names()
    )


def build(jobs: int | None = None) -> Iterator[tuple[str, float]]:
    """Compile all programs: as one executable if the cache has none of them, otherwise the missing ones in parallel.

    Parameters
    ----------
    jobs : int, optional
        Number of compilers that run at a time; one per core by default. Each needs one to two gigabytes of memory.

    Yields
    ------
    name, seconds
        Each program when it is ready; almost 0 seconds if it was in the cache.

    Raises
    ------
    ToolchainError, CompileError
    """

    def timed(name: str) -> tuple[str, float]:
        started = time.perf_counter()
        compiled(name)
        return name, time.perf_counter() - started

    if not all_prebuilt():
        ensure_cmdstan()
    started = time.perf_counter()
    if _compile_all_together():
        seconds = time.perf_counter() - started
        yield from ((name, seconds) for name in program_names())
        return
    with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        for done in as_completed([pool.submit(timed, name) for name in program_names()]):
            yield done.result()


def _compile_all_together() -> bool:
    """Compile all programs as one executable; return whether that was possible and necessary."""
    if selected_likelihood() == "readable" or all_prebuilt():
        return False
    try:
        return compile_accelerated_together(program_names())
    except CompileError:  # `compiled` falls back to the readable likelihood of each program that does not compile
        return False


def likelihood_in_use(build: bool) -> str:
    """Describe the likelihood that fits use; ``build=True`` compiles a program to find out."""
    selected = selected_likelihood()
    if all_prebuilt():
        return "accelerated: analytic gradients in C++, installed with the package"
    if build and compiled("matern_gp").header is None and selected == "accelerated":
        return f"readable, several times slower: the accelerated one does not compile here: {_refused['matern_gp'][1]}"
    return {
        "accelerated": "accelerated: analytic gradients in C++",
        "readable": "readable: automatic differentiation in Stan, selected by SLAYR_LIKELIHOOD",
    }[selected]
