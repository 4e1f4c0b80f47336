"""Sources of the program of a user's kernel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from slayr_py.errors import DataError
from slayr_py.inference.sampling.run_folder import run_folder
from slayr_py.kernels import own_program
from slayr_py.toolchain import stan_code


class OwnSources(NamedTuple):
    """What the program of a user's kernel is compiled from.

    Attributes
    ----------
    stan_file
        The program.
    include_paths
        Folders of its includes: the package's programs, and the folder of the user's file.
    code
        The program with its includes.
    users_file
        The user's file.
    """

    stan_file: Path
    include_paths: tuple[Path, Path]
    code: str
    users_file: Path


@contextmanager
def own_sources(program: str, folder: Path) -> Iterator[OwnSources | None]:
    """Write the program of a user's kernel into a temporary folder, and yield its sources.

    None is yielded for a program of the package, whose programs are in ``folder``.

    Raises
    ------
    DataError
        If the user's file does not exist, or has the name of one of the package's programs.
    CompileError
        If an included file does not exist.
    """
    own = own_program(program)
    if own is None:
        yield None
        return
    if (folder / own.file.name).exists():
        raise DataError(f"{own.file} has the name of a program of slayr_py; rename the file")
    with run_folder() as temporary:
        written = temporary / f"{program}.stan"
        written.write_text(own.text, encoding="utf-8")
        paths = (folder, own.file.parent)
        yield OwnSources(written, paths, stan_code(written, paths), own.file)
