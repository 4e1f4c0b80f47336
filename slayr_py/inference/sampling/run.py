"""Run a Stan program by a fit method and collect its output."""

from __future__ import annotations

import errno
import logging
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import cmdstanpy
import pandas as pd
from cmdstanpy.utils import get_logger

from slayr_py.errors import InferenceError
from slayr_py.inference.sampling.command import generated_quantities, last_words
from slayr_py.inference.sampling.method import Job
from slayr_py.inference.sampling.methods import METHODS
from slayr_py.inference.sampling.options import FitOptions
from slayr_py.inference.sampling.output import Run
from slayr_py.inference.sampling.run_folder import run_folder
from slayr_py.inference.sampling.seeds import stan_seed
from slayr_py.inference.sampling.warm_start import WarmStart
from slayr_py.threads import SharedChange, one_thread
from slayr_py.toolchain import CompiledProgram

_NO_PLACE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)
_ROOM = 2**20  # bytes; with less, the temporary folder counts as full
_OF_CMDSTANPY = re.compile("^(Error during|Failed with error|Command and output files)", re.MULTILINE)


def run(
    program: CompiledProgram,
    data: Mapping[str, Any],
    options: FitOptions,
    *,
    seed: int,
    start: WarmStart | None = None,
    progress: Callable[[str], None] | None = None,
) -> Run:
    """Run ``program`` on ``data`` in a temporary folder.

    The seed fixes all random numbers. BLAS runs on one thread, so that the last bits do not depend on the number of
    cores.

    Parameters
    ----------
    options : FitOptions
        ``retries`` is ignored: this is a single run.
    start : WarmStart, optional
        Start of NUTS and "carried" from an earlier fit; other methods ignore it.

    Raises
    ------
    DataError
        If the seed is not an integer >= 0.
    InferenceError
        If Stan fails; the message ends with Stan's last output.
    """
    method = METHODS[options.method]
    arguments: dict[str, Any] = {"method": method.name, "stan_seed": stan_seed(seed), "seed": int(seed)}
    arguments |= {"pointwise": options.pointwise, **method.record(options)}
    if kind := method.kind(start):
        arguments["start"] = kind
    if progress:
        progress("fitting")
    started = time.perf_counter()
    try:
        with ExitStack() as closing, _QUIET_CMDSTANPY, one_thread():
            job = Job(program.model(), data, options, int(seed), start, closing)
            with _console_in_errors(job):
                result = method.sample(job)
            seconds = time.perf_counter() - started
            return replace(result, arguments=arguments | result.arguments, seconds=seconds)
    except OSError as error:
        raise InferenceError(f"Stan's {method.name} run of {program.name} failed: {_reason(error)}") from error
    except (RuntimeError, ValueError) as error:
        raise InferenceError(f"Stan's {method.name} run of {program.name} failed: {last_words(str(error))}") from error


def _reason(error: OSError) -> str:
    """Return what failed, with the folder to change or to make room in."""
    try:
        Path.cwd()
    except OSError:
        return "the working directory does not exist any more; change to another one"
    folder = tempfile.gettempdir()
    reason = error.strerror or str(error)
    if error.filename is not None and not str(error.filename).startswith(folder):
        return f"{reason}: {error.filename}"
    if error.filename is not None or error.errno in _NO_PLACE:
        return f"{reason}, in the temporary folder {folder}; make room there, or set TMPDIR to another folder"
    return reason


def generate(program: CompiledProgram, data: Mapping[str, Any], parameters: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Compute the generated quantities of ``program`` for given draws of its parameters.

    Parameters
    ----------
    parameters : DataFrame
        One row per draw; columns named as Stan names them (``z_lengthscale[1]`` is ``z_lengthscale.1``).
    """
    with run_folder() as folder, _QUIET_CMDSTANPY:
        data_file = folder / "data.json"
        cmdstanpy.write_stan_json(str(data_file), dict(data))
        return generated_quantities(str(program.exe), data_file, parameters, stan_seed(seed))


@contextmanager
def _console_in_errors(job: Job) -> Iterator[None]:
    """Add Stan's console output, which CmdStanPy leaves in files of the run folder, to its errors, and a full disk.

    CmdStan does not report that its output cannot be written. Errors of others have nothing to do with the output.
    """
    try:
        yield
    except (RuntimeError, ValueError) as error:
        is_full = shutil.disk_usage(tempfile.gettempdir()).free < _ROOM  # before the run folder is removed
        if not is_full and not _OF_CMDSTANPY.search(str(error)):
            raise
        consoles = [file.read_text(errors="replace") for file in sorted(job.folder.rglob("*-stdout.txt"))]
        full = [_reason(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))] if is_full else []
        message = str(error).split("Command and output files")[0]
        raise RuntimeError("\n".join([message, *consoles, *full])) from error


def _silence_cmdstanpy() -> Callable[[], object]:
    """Silence CmdStanPy, which logs every chain; exceptions and diagnostics report problems."""
    logger = get_logger()
    level = logger.level
    disabled = logger.disabled
    logger.setLevel(logging.CRITICAL)

    def restore() -> None:
        logger.setLevel(level)
        logger.disabled = disabled

    return restore


_QUIET_CMDSTANPY = SharedChange(_silence_cmdstanpy)
