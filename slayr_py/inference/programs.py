"""Where the Stan programs are, in a checkout and in an installed package alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from slayr_py.errors import ToolchainError
from slayr_py.toolchain import CompiledProgram, compile_program

_PACKAGE = Path(__file__).resolve().parents[1]


def program_folder() -> Path:
    """Folder of the Stan programs.

    Raises
    ------
    ToolchainError
        If the installation lacks them.
    """
    for folder in (_PACKAGE / "stan", _PACKAGE.parent / "stan"):
        if (folder / "functions").is_dir():
            return folder
    raise ToolchainError(f"the Stan programs are missing beside {_PACKAGE}; install slayr-py again")


def compiled(name: str, progress: Callable[[str], None] | None = None) -> CompiledProgram:
    """Executable of one of the suite's programs, from the cache where it has been compiled before."""
    folder = program_folder()
    return compile_program(folder / f"{name}.stan", include_paths=(folder,), on_progress=progress)
