"""The Stan programs of this package and the options with which they are compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from slayr_py.errors import ToolchainError
from slayr_py.toolchain.building import Build, compile_build, prepare_build
from slayr_py.toolchain.cmdstan import ensure_cmdstan
from slayr_py.toolchain.executables import CompiledProgram
from slayr_py.toolchain.processor import processor_options
from slayr_py.toolchain.together import compile_together

_PACKAGE = Path(__file__).resolve().parents[1]  # the folder of `slayr_py`


def program_folder() -> Path:
    """Return the folder of the Stan programs, in a checkout or an installed package.

    Raises
    ------
    ToolchainError
        If they are missing.
    """
    for folder in (_PACKAGE / "stan", _PACKAGE.parent / "stan"):
        if (folder / "functions").is_dir():
            return folder
    raise ToolchainError(f"the Stan programs are missing beside {_PACKAGE}; install slayr-py again")


def program_names() -> tuple[str, ...]:
    """Return the names of the package's programs."""
    return tuple(sorted(path.stem for path in program_folder().glob("*.stan")))


class AcceleratedSources(NamedTuple):
    """What a program with the accelerated likelihood is compiled from.

    Attributes
    ----------
    stan_file
        The program.
    include_paths
        Folders of its includes, in the order of the search.
    header
        C++ header that defines the likelihood.
    """

    stan_file: Path
    include_paths: tuple[Path, Path]
    header: Path


def accelerated_sources(name: str) -> AcceleratedSources:
    """Return the sources of one of the package's programs with the accelerated likelihood.

    The header of `matern_gp` is `matern.hpp`: with all likelihoods, a compilation would take several seconds more.
    """
    folder = program_folder()
    accelerated = folder / "accelerated"
    return AcceleratedSources(
        folder / f"{name}.stan", (accelerated, folder), accelerated / f"{name.removesuffix('_gp')}.hpp"
    )


def compile_accelerated(name: str, on_progress: Callable[[str], None] | None = None) -> CompiledProgram:
    """Compile one of the package's programs with the accelerated likelihood for this processor, unless it is cached.

    Raises
    ------
    CompileError, ToolchainError
    """
    return compile_build(_accelerated_build(name, on_progress), on_progress)


def compile_accelerated_together(names: Sequence[str]) -> bool:
    """Compile programs as one executable; return False without compiling if one of them is in the cache.

    Raises
    ------
    CompileError, ToolchainError
    """
    return compile_together([_accelerated_build(name) for name in names])


def _accelerated_build(name: str, on_progress: Callable[[str], None] | None = None) -> Build:
    sources = accelerated_sources(name)
    options = {"USER_HEADER": sources.header} | processor_options(ensure_cmdstan(on_progress))
    return prepare_build(sources.stan_file, sources.include_paths, None, options, on_progress)
