"""The Stan programs of this package and the options with which they are compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from slayr_py.errors import ToolchainError
from slayr_py.toolchain.cmdstan import ensure_cmdstan
from slayr_py.toolchain.processor import processor_options

_PACKAGE = Path(__file__).resolve().parents[1]


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
    """Return the sources of one of the package's programs with the accelerated likelihood."""
    folder = program_folder()
    accelerated = folder / "accelerated"
    return AcceleratedSources(folder / f"{name}.stan", (accelerated, folder), accelerated / "slayr.hpp")


def accelerated_options(sources: AcceleratedSources) -> dict[str, Any]:
    """Return the options of `compile_program` and `compile_together` for this processor."""
    return {
        "include_paths": sources.include_paths,
        "cpp_options": {"USER_HEADER": sources.header} | processor_options(ensure_cmdstan()),
    }
