"""Run a Stan program by one of four methods and collect what it wrote."""

from __future__ import annotations

import logging
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal, get_args

import cmdstanpy
import numpy as np
import pandas as pd
from cmdstanpy.utils import get_logger
from threadpoolctl import threadpool_limits

from slayr_py.errors import DataError, InferenceError, did_you_mean
from slayr_py.inference.sampling import approximations, nuts
from slayr_py.inference.sampling.command import DIGITS, generated_quantities, last_words
from slayr_py.inference.sampling.output import Run
from slayr_py.inference.sampling.run_folder import run_folder
from slayr_py.inference.sampling.seeds import stan_seed
from slayr_py.inference.sampling.warm_start import WarmStart
from slayr_py.toolchain import CompiledProgram

Method = Literal["nuts", "pathfinder", "laplace", "map"]


def check_options(
    method: str,
    *,
    chains: int,
    warmup: int,
    draws: int,
    target_acceptance: float,
    max_treedepth: int,
    ess: int | None,
) -> dict[str, Any]:
    """Options of a run but its method, as plain numbers.

    Raises
    ------
    DataError
        For an unknown method, or a number that makes no sense.
    """
    if method not in get_args(Method):
        raise DataError(f"unknown method {method!r}{did_you_mean(method, get_args(Method))}")
    counts = {"chains": chains, "warmup": warmup, "draws": draws, "max_treedepth": max_treedepth}
    for name, value in (counts | ({} if ess is None else {"ess": ess})).items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise DataError(f"{name} must be an integer >= 1, got {value!r}")
    if not isinstance(target_acceptance, int | float | np.number) or not 0 < target_acceptance < 1:
        raise DataError(f"target_acceptance must lie in (0, 1), got {target_acceptance!r}")
    plain = {name: int(value) for name, value in counts.items()}
    return plain | {"target_acceptance": float(target_acceptance), "ess": None if ess is None else int(ess)}


def run(
    program: CompiledProgram,
    data: Mapping[str, Any],
    method: Method,
    *,
    seed: int,
    start: WarmStart | None = None,
    progress: Callable[[str], None] | None = None,
    **options: Any,
) -> Run:
    """Run ``program`` on ``data``; the run folder is removed whatever happens.

    All that is random follows from the seed, and BLAS works on one thread, so that the last bits do not depend on the
    number of cores.

    Parameters
    ----------
    start : WarmStart, optional
        Where chains of NUTS begin; other methods do not look at it.
    **options
        Of :func:`check_options`.

    Raises
    ------
    DataError
        For an unknown method or counts that make no sense.
    InferenceError
        If Stan fails; its last words are in the message.
    """
    options = check_options(method, **options)
    arguments: dict[str, Any] = {"method": method, "stan_seed": stan_seed(seed), "seed": int(seed)}
    if method == "nuts":
        arguments |= options | {"start": "warm" if start else "cold"}
    elif method != "map":
        arguments["draws"] = options["chains"] * options["draws"]
    if progress:
        progress("fitting")
    begun = time.perf_counter()
    try:
        with run_folder() as folder, _quiet_cmdstanpy(), threadpool_limits(limits=1, user_api="blas"):
            data_file = folder / "data.json"
            cmdstanpy.write_stan_json(str(data_file), dict(data))
            common: dict[str, Any] = {
                "data": str(data_file),
                "seed": arguments["stan_seed"],
                "output_dir": str(folder),
                "sig_figs": DIGITS,
            }
            model = program.model()
            if method == "nuts":
                result = nuts.sample(model, common, arguments, start)
            else:
                result = _APPROXIMATIONS[method](model, common, arguments)
            return replace(result, seconds=time.perf_counter() - begun)
    except OSError as error:
        raise InferenceError(
            f"Stan's {method} run of {program.name} failed: {error.strerror or error}, in the temporary folder "
            f"{tempfile.gettempdir()}; make room there, or set TMPDIR to another"
        ) from error
    except (RuntimeError, ValueError) as error:
        raise InferenceError(f"Stan's {method} run of {program.name} failed: {last_words(str(error))}") from error


_APPROXIMATIONS: dict[str, Callable[[cmdstanpy.CmdStanModel, dict[str, Any], dict[str, Any]], Run]] = {
    "map": approximations.mode,
    "laplace": approximations.laplace,
    "pathfinder": approximations.pathfinder,
}


def generate(program: CompiledProgram, data: Mapping[str, Any], parameters: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Generated quantities of ``program`` at given parameter draws.

    Parameters
    ----------
    parameters : DataFrame
        One row a draw, columns named as Stan names them (``z_lengthscale[1]`` is ``z_lengthscale.1``).
    """
    with run_folder() as folder, _quiet_cmdstanpy():
        data_file = folder / "data.json"
        cmdstanpy.write_stan_json(str(data_file), dict(data))
        return generated_quantities(str(program.exe), data_file, parameters, stan_seed(seed))


@contextmanager
def _quiet_cmdstanpy() -> Iterator[None]:
    """CmdStanPy logs every chain's start and end; what matters is in the exception or in our own diagnostics."""
    logger = get_logger()
    level, disabled = logger.level, logger.disabled
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            yield
    finally:
        logger.setLevel(level)
        logger.disabled = disabled
