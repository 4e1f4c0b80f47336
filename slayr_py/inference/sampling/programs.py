"""Where the Stan programs are, in a checkout and in an installed package alike, and with which likelihood they run.

Every program takes its log marginal likelihood from ``functions/*_marginal.stan``. The folder of that name in ``stan/``
defines it in Stan; the one in ``stan/accelerated/`` only declares it, and a C++ header there defines it together with
its derivatives. The order of the include paths decides, never an edit.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Literal, cast, get_args

from slayr_py.errors import CompileError, DataError, ToolchainError
from slayr_py.toolchain import CompiledProgram, compile_program, ensure_cmdstan, processor_options

Likelihood = Literal["accelerated", "readable"]

_PACKAGE = Path(__file__).resolve().parents[2]
_refused: dict[str, str] = {}  # programs whose accelerated likelihood did not compile here, and why


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


def wanted_likelihood() -> Likelihood:
    """The likelihood that ``SLAYR_LIKELIHOOD`` asks for, "accelerated" by default.

    Raises
    ------
    DataError
        If it is neither "accelerated" nor "readable".
    """
    wanted = os.environ.get("SLAYR_LIKELIHOOD", "accelerated")
    if wanted not in get_args(Likelihood):
        raise DataError(f"SLAYR_LIKELIHOOD is {wanted!r}; it must be one of {get_args(Likelihood)}")
    return cast(Likelihood, wanted)


def compiled(
    name: str, progress: Callable[[str], None] | None = None, likelihood: Likelihood | None = None
) -> CompiledProgram:
    """Executable of one of the suite's programs, from the cache where it has been compiled before.

    Parameters
    ----------
    likelihood : {"accelerated", "readable"}, optional
        By default :func:`wanted_likelihood`; if the accelerated one does not compile, the readable one, with a warning.
    """
    folder = program_folder()
    source, header = folder / f"{name}.stan", folder / "accelerated" / "slayr.hpp"
    if (likelihood or wanted_likelihood()) == "accelerated" and name not in _refused:
        try:
            return compile_program(
                source,
                include_paths=(folder / "accelerated", folder),
                cpp_options={"USER_HEADER": header} | processor_options(ensure_cmdstan()),
                on_progress=progress,
            )
        except CompileError as error:
            if likelihood:
                raise
            _refused[name] = str(error)
            warnings.warn(
                f"the accelerated likelihood of {name} does not compile here; the readable one, several times slower, "
                f"takes its place: {error}",
                RuntimeWarning,
                stacklevel=2,
            )
    return compile_program(source, include_paths=(folder,), on_progress=progress)


def program_names() -> tuple[str, ...]:
    """The suite's programs."""
    return tuple(sorted(path.stem for path in program_folder().glob("*.stan")))


def build(jobs: int | None = None) -> Iterator[tuple[str, float]]:
    """Compile every program, side by side, and what all of them are linked with.

    Parameters
    ----------
    jobs : int, optional
        Compilers at a time, one for each core by default. Each takes one to two gigabytes of memory.

    Yields
    ------
    name, seconds
        Of each program as it is done; next to nothing for one that was there.

    Raises
    ------
    ToolchainError, CompileError
    """

    def timed(name: str) -> tuple[str, float]:
        begun = time.perf_counter()
        compiled(name)
        return name, time.perf_counter() - begun

    ensure_cmdstan()
    with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        for done in as_completed([pool.submit(timed, name) for name in program_names()]):
            yield done.result()


def likelihood_in_use(build: bool = False) -> str:
    """What fits run with here, for people; with ``build`` a program is compiled to find out."""
    wanted = wanted_likelihood()
    if build and compiled("matern_gp").header is None and wanted == "accelerated":
        return f"readable, several times slower: the accelerated one does not compile here: {_refused['matern_gp']}"
    return {
        "accelerated": "accelerated: analytic gradients in C++",
        "readable": "readable: automatic differentiation in Stan, as SLAYR_LIKELIHOOD asks",
    }[wanted]
