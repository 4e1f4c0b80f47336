"""Run a Stan program by one of four methods and collect what it wrote.

Symbols
-------
c : chains; s : draws of a chain. Every array of a run begins with these two axes; a method without chains has c = 1.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import cmdstanpy
import numpy as np
import pandas as pd
from cmdstanpy.utils import get_logger

from slayr_py.errors import DataError, InferenceError, did_you_mean
from slayr_py.inference.folder import run_folder
from slayr_py.inference.importance import smoothed_resample
from slayr_py.space.dimension import FloatArray
from slayr_py.toolchain import CompiledProgram

Method = Literal["nuts", "pathfinder", "laplace", "map"]

SAMPLER_COLUMNS = {
    "lp__": "lp",
    "accept_stat__": "acceptance_rate",
    "stepsize__": "step_size",
    "treedepth__": "tree_depth",
    "n_leapfrog__": "n_steps",
    "divergent__": "diverging",
    "energy__": "energy",
}
"""CmdStan's sampler columns and the names ArviZ gives them."""

_MODE_STARTS = 4  # a posterior of length-scales can have several modes: the best of a few starts is reported
_DIGITS = 18  # enough for a double to survive the way through a text file


@dataclass(frozen=True)
class Run:
    """What a program wrote.

    Attributes
    ----------
    variables : dict of str to (c, s, ...) float64
        Parameters, transformed parameters and generated quantities.
    sampler : dict of str to (c, s) float64
        NUTS statistics under ArviZ' names; empty for other methods.
    pareto_k : float
        Shape of the tail of the importance ratios of an approximation; NaN for other methods.
    seconds : float
        Wall-clock time of the run.
    adaptation : list of dict
        Step size and inverse metric of each chain.
    arguments : dict
        What the method was asked, JSON-able.
    """

    variables: dict[str, FloatArray]
    sampler: dict[str, FloatArray]
    pareto_k: float
    seconds: float
    arguments: dict[str, Any]
    adaptation: list[dict[str, Any]] = field(default_factory=list)


def stan_seed(seed: int) -> int:
    """Seed for CmdStan, distinct for distinct seeds below 2,147,483,398.

    CmdStan's generator reduces a seed modulo 2,147,483,563 and 2,147,483,399 and takes 0 for 1, so seeds are shifted
    by one; larger ones are hashed.

    Raises
    ------
    DataError
        If the seed is not a non-negative integer.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise DataError(f"seed must be an integer >= 0, got {seed!r}")
    if seed < 2_147_483_398:
        return int(seed) + 1
    return int(np.random.SeedSequence(int(seed)).generate_state(1)[0] % 2_147_483_398) + 1


def check_options(
    method: str, *, chains: int, warmup: int, draws: int, target_acceptance: float, max_treedepth: int
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
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise DataError(f"{name} must be an integer >= 1, got {value!r}")
    if not isinstance(target_acceptance, int | float | np.number) or not 0 < target_acceptance < 1:
        raise DataError(f"target_acceptance must lie in (0, 1), got {target_acceptance!r}")
    return {name: int(value) for name, value in counts.items()} | {"target_acceptance": float(target_acceptance)}


def run(
    program: CompiledProgram,
    data: Mapping[str, Any],
    method: Method,
    *,
    chains: int,
    warmup: int,
    draws: int,
    seed: int,
    target_acceptance: float,
    max_treedepth: int,
    progress: Callable[[str], None] | None = None,
) -> Run:
    """Run ``program`` on ``data``; the run folder is removed whatever happens.

    Raises
    ------
    DataError
        For an unknown method or counts that make no sense.
    InferenceError
        If Stan fails; its last words are in the message.
    """
    options = check_options(
        method,
        chains=chains,
        warmup=warmup,
        draws=draws,
        target_acceptance=target_acceptance,
        max_treedepth=max_treedepth,
    )
    arguments: dict[str, Any] = {"method": method, "stan_seed": stan_seed(seed), "seed": int(seed)}
    if method == "nuts":
        arguments |= options
    elif method != "map":
        arguments["draws"] = options["chains"] * options["draws"]
    if progress:
        progress("fitting")
    start = time.perf_counter()
    try:
        with run_folder() as folder, _quiet_cmdstanpy():
            data_file = folder / "data.json"
            cmdstanpy.write_stan_json(str(data_file), dict(data))
            common: dict[str, Any] = {
                "data": str(data_file),
                "seed": arguments["stan_seed"],
                "output_dir": str(folder),
                "sig_figs": _DIGITS,
            }
            return _METHODS[method](program.model(), common, arguments, start)
    except (RuntimeError, ValueError, OSError) as error:
        raise InferenceError(f"Stan's {method} run of {program.name} failed: {_last_words(str(error))}") from error


def generate(program: CompiledProgram, data: Mapping[str, Any], parameters: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Generated quantities of ``program`` at given parameter draws.

    Parameters
    ----------
    parameters : DataFrame
        One row a draw, columns named as Stan names them (``z_lengthscale[1]`` is ``z_lengthscale.1``).
    """
    with run_folder() as folder, _quiet_cmdstanpy():
        data_file, draws_file = folder / "data.json", folder / "draws.csv"
        cmdstanpy.write_stan_json(str(data_file), dict(data))
        parameters.to_csv(draws_file, index=False, float_format="%.17g")
        output = folder / "generated.csv"
        command = [str(program.exe), "id=1", "generate_quantities", f"fitted_params={draws_file}"]
        command += ["data", f"file={data_file}", "random", f"seed={stan_seed(seed)}"]
        command += ["output", f"file={output}", f"sig_figs={_DIGITS}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            words = _last_words(done.stdout + done.stderr)
            raise InferenceError(f"Stan's generated quantities of {program.name} failed: {words}")
        return _read_csv(output)


def _nuts(model: cmdstanpy.CmdStanModel, common: dict[str, Any], arguments: dict[str, Any], start: float) -> Run:
    fit = model.sample(
        **common,
        chains=arguments["chains"],
        parallel_chains=min(arguments["chains"], os.cpu_count() or 1),
        iter_warmup=arguments["warmup"],
        iter_sampling=arguments["draws"],
        adapt_delta=arguments["target_acceptance"],
        max_treedepth=arguments["max_treedepth"],
        show_progress=False,
    )
    table = np.transpose(fit.draws(), (1, 0, 2))
    columns = _columns(fit.column_names)
    sampler = {label: table[..., columns[name][0]] for name, label in SAMPLER_COLUMNS.items()}
    adaptation = []
    for chain in range(arguments["chains"]):
        metric = fit.inv_metric[chain] if fit.inv_metric is not None else []
        size = float(fit.step_size[chain]) if fit.step_size is not None else float("nan")
        adaptation.append({"step_size": size, "inv_metric": np.asarray(metric).tolist()})
    return Run(_variables(table, columns), sampler, np.nan, time.perf_counter() - start, arguments, adaptation)


def _map(model: cmdstanpy.CmdStanModel, common: dict[str, Any], arguments: dict[str, Any], start: float) -> Run:
    fit = _best_mode(model, common)
    table = np.asarray(fit.optimized_params_np)[None, None, :]
    return Run(_variables(table, _columns(fit.column_names)), {}, np.nan, time.perf_counter() - start, arguments)


def _laplace(model: cmdstanpy.CmdStanModel, common: dict[str, Any], arguments: dict[str, Any], start: float) -> Run:
    mode = _best_mode(model, common)
    fit = model.laplace_sample(**_in_folder(common, "laplace"), mode=mode, draws=arguments["draws"], jacobian=True)
    return _reweighted(fit.draws(), fit.column_names, ("log_p__", "log_q__"), arguments, start)


def _pathfinder(model: cmdstanpy.CmdStanModel, common: dict[str, Any], arguments: dict[str, Any], start: float) -> Run:
    paths = 4
    fit = model.pathfinder(
        **common,
        num_paths=paths,
        num_single_draws=arguments["draws"],
        draws=paths * arguments["draws"],
        psis_resample=False,
        calculate_lp=True,
    )
    return _reweighted(fit.draws(), fit.column_names, ("lp__", "lp_approx__"), arguments, start)


_METHODS: dict[str, Callable[[cmdstanpy.CmdStanModel, dict[str, Any], dict[str, Any], float], Run]] = {
    "nuts": _nuts,
    "map": _map,
    "laplace": _laplace,
    "pathfinder": _pathfinder,
}


def _reweighted(
    table: FloatArray, names: tuple[str, ...], ratio: tuple[str, str], arguments: dict[str, Any], start: float
) -> Run:
    """Resample an approximation's draws by their Pareto-smoothed importance ratios."""
    columns = _columns(names)
    log_ratio = table[:, columns[ratio[0]][0]] - table[:, columns[ratio[1]][0]]
    rows, pareto_k = smoothed_resample(log_ratio, arguments["draws"], np.random.default_rng(arguments["seed"]))
    return Run(_variables(table[None, rows], columns), {}, pareto_k, time.perf_counter() - start, arguments)


def _best_mode(model: cmdstanpy.CmdStanModel, common: dict[str, Any]) -> cmdstanpy.CmdStanMLE:
    seeds = np.random.default_rng(common["seed"]).integers(1, 2**31 - 300, _MODE_STARTS)
    best, failure = None, None
    for i, seed in enumerate(seeds):
        try:
            # A line search that cannot improve any more has arrived as closely as rounding allows.
            fit = model.optimize(
                **_in_folder(common, f"mode-{i}") | {"seed": int(seed)},
                algorithm="lbfgs",
                jacobian=True,
                iter=2000,
                require_converged=False,
            )
        except RuntimeError as error:
            failure = error
            continue
        if best is None or fit.optimized_params_dict["lp__"] > best.optimized_params_dict["lp__"]:
            best = fit
    if best is None:
        raise RuntimeError(f"no mode found from {_MODE_STARTS} starts; {failure}")
    return best


def _in_folder(common: dict[str, Any], name: str) -> dict[str, Any]:
    """Arguments with an output folder of their own: CmdStanPy names files by the second and would overwrite them."""
    return common | {"output_dir": str(Path(common["output_dir"]) / name)}


def _columns(names: tuple[str, ...] | list[str]) -> dict[str, list[int]]:
    """Positions of each variable's columns; elements keep CmdStan's column-major order."""
    columns: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        columns.setdefault(re.split(r"[\[.]", name, maxsplit=1)[0], []).append(i)
    return columns


def _variables(table: FloatArray, columns: dict[str, list[int]]) -> dict[str, FloatArray]:
    """Named arrays; a variable with one element stays (c, s, 1) and is squeezed where its shape is known."""
    return {name: np.ascontiguousarray(table[..., i]) for name, i in columns.items() if not name.endswith("__")} | {
        name: table[..., columns[name][0]] for name in ("lp__",) if name in columns
    }


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


def _read_csv(path: Path) -> pd.DataFrame:
    """A table with comment lines, every number read exactly (pandas' quick reader may miss the last bit)."""
    with path.open() as lines:
        header = next(line for line in lines if not line.startswith("#")).strip().split(",")
        return pd.DataFrame(np.loadtxt(lines, delimiter=",", comments="#", ndmin=2), columns=header)


def _last_words(text: str) -> str:
    """What Stan said, each line once, without CmdStanPy's description of its files."""
    lines = [line.strip() for line in text.split("Command and output files")[0].splitlines() if line.strip()]
    return "\n".join(list(dict.fromkeys(lines))[-12:]) or "no message"
