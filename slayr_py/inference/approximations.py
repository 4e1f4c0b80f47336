"""Approximate posteriors: the mode, and draws from Laplace's and Pathfinder's approximations, importance-resampled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cmdstanpy
import numpy as np

from slayr_py.inference.importance import smoothed_resample
from slayr_py.inference.output import Run, columns_of, shapes_of, variables_of
from slayr_py.space.dimension import FloatArray

_MODE_STARTS = 4  # a posterior of length-scales can have several modes: the best of a few starts is reported
_PATHS = 4
_CANDIDATES = 2  # draws of all paths together for each that is kept


def mode(model: cmdstanpy.CmdStanModel, common: dict[str, Any], arguments: dict[str, Any]) -> Run:
    """The mode, as a single draw."""
    fit = _best_mode(model, common)
    table = np.asarray(fit.optimized_params_np)[None, None, :]
    return Run(variables_of(table, fit.column_names), shapes_of(fit.column_names), arguments)


def laplace(model: cmdstanpy.CmdStanModel, common: dict[str, Any], arguments: dict[str, Any]) -> Run:
    """Draws from a normal distribution at the mode."""
    at = _best_mode(model, common)
    fit = model.laplace_sample(**_in_folder(common, "laplace"), mode=at, draws=arguments["draws"], jacobian=True)
    return _reweighted(fit.draws(), fit.column_names, ("log_p__", "log_q__"), arguments)


def pathfinder(model: cmdstanpy.CmdStanModel, common: dict[str, Any], arguments: dict[str, Any]) -> Run:
    """Draws from the best normal distributions on the way to the mode (Zhang et al. 2022)."""
    fit = model.pathfinder(
        **common,
        num_paths=_PATHS,
        num_single_draws=-(-_CANDIDATES * arguments["draws"] // _PATHS),
        draws=-(-_CANDIDATES * arguments["draws"] // _PATHS) * _PATHS,
        psis_resample=False,
        calculate_lp=True,
    )
    return _reweighted(fit.draws(), fit.column_names, ("lp__", "lp_approx__"), arguments)


def _reweighted(table: FloatArray, names: tuple[str, ...], ratio: tuple[str, str], arguments: dict[str, Any]) -> Run:
    """Resample an approximation's draws by their Pareto-smoothed importance ratios."""
    columns = columns_of(names)
    log_ratio = table[:, columns[ratio[0]][0]] - table[:, columns[ratio[1]][0]]
    rows, pareto_k = smoothed_resample(log_ratio, arguments["draws"], np.random.default_rng(arguments["seed"]))
    return Run(variables_of(table[None, rows], names), shapes_of(names), arguments, pareto_k=pareto_k)


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
