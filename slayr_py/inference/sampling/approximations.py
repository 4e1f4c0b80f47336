"""Approximate posteriors: the mode, and importance-resampled draws of the Laplace and Pathfinder approximations."""

from __future__ import annotations

from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import cmdstanpy
import numpy as np
import pandas as pd

from slayr_py.inference.diagnostics.checks import PARETO_K_LIMIT, importance_ess_limit
from slayr_py.inference.diagnostics.importance import smoothed_resample
from slayr_py.inference.sampling.command import CommonArguments, generated_quantities, log_densities
from slayr_py.inference.sampling.output import Run, call, columns_of, shapes_of, variables_of
from slayr_py.inference.sampling.population import improve
from slayr_py.kernels.contracts import CONTRACTS, Contract
from slayr_py.space.dimension import FloatArray

_MODE_STARTS = 4  # the posterior of length-scales can have several modes: the best of a few starts is used
_PATHS = 4
_ELBO_DRAWS = 10  # draws to find the best approximation on a path: Stan's default of 25 costs more than the paths
_MODE = {"mode_starts": _MODE_STARTS}


def mode(model: cmdstanpy.CmdStanModel, common: CommonArguments) -> Run:
    """Return the mode as a single draw."""
    fit, calls = _best_mode(model, common)
    table = np.asarray(fit.optimized_params_np)[None, None, :]
    return Run(variables_of(table, fit.column_names), shapes_of(fit.column_names), dict(_MODE), calls=calls)


def laplace(model: cmdstanpy.CmdStanModel, common: CommonArguments, n: int, seed: int) -> Run:
    """Return n draws resampled from a normal distribution at the mode."""
    at, calls = _best_mode(model, common)
    fit = model.laplace_sample(**_in_folder(common, "laplace"), mode=at, draws=n, jacobian=True)
    calls.append(call(fit, mode="the best mode"))
    return _reweighted(model, common, fit, ("log_p__", "log_q__"), n, seed, _MODE, calls)


def pathfinder(model: cmdstanpy.CmdStanModel, common: CommonArguments, n: int, seed: int) -> Run:
    """Return n draws resampled from the best normal distributions on paths to the mode (Zhang et al. 2022)."""
    single = -(-n // _PATHS)
    fit = model.pathfinder(
        **common,
        num_paths=_PATHS,
        num_elbo_draws=_ELBO_DRAWS,
        num_single_draws=single,
        draws=_PATHS * single,
        psis_resample=False,
        calculate_lp=True,
    )
    settings = {"paths": _PATHS, "elbo_draws": _ELBO_DRAWS}
    return _reweighted(model, common, fit, ("lp__", "lp_approx__"), n, seed, settings, [call(fit)])


def _reweighted(
    model: cmdstanpy.CmdStanModel,
    common: CommonArguments,
    fit: cmdstanpy.CmdStanLaplace | cmdstanpy.CmdStanPathfinder,
    ratio: tuple[str, str],
    n: int,
    seed: int,
    settings: dict[str, Any],
    calls: list[dict[str, Any]],
) -> Run:
    """Resample n draws by Pareto-smoothed importance ratios; improve the draws first if the ratios are bad."""
    table, names = fit.draws(), fit.column_names
    columns, rng = columns_of(names), np.random.default_rng(seed)
    log_ratio = table[:, columns[ratio[0]][0]] - table[:, columns[ratio[1]][0]]

    def good(pareto_k: float, ess: float) -> bool:
        return pareto_k <= PARETO_K_LIMIT and ess >= importance_ess_limit(n)

    rows, pareto_k, ess = smoothed_resample(log_ratio, n, rng)
    variables, shapes = variables_of(table[None, rows], names), shapes_of(names)
    run = Run(variables, shapes, settings | {"improved": False}, {}, pareto_k, ess, calls=calls)
    if good(pareto_k, ess):
        return run
    exe, data = str(model.exe_file), Path(common["data"])
    coordinates = np.concatenate([values[0] for values in run.unconstrained.values()], axis=1)
    try:
        better = improve(partial(log_densities, exe, data), coordinates, n, good, rng)
    except (ValueError, np.linalg.LinAlgError):
        return run  # its Pareto k fails the diagnostics
    header = [f"{name}.{i + 1}" if shape else name for name, shape in shapes.items() for i in range(prod(shape))]
    generated = generated_quantities(exe, data, pd.DataFrame(better.draws, columns=header), common["seed"])
    both = variables_of(np.hstack([better.draws, generated])[None], [*header, *generated.columns])
    both = _split_theta(both, CONTRACTS[model.name])
    return Run(both, shapes, settings | {"improved": True}, {}, better.pareto_k, better.ess, calls=calls)


def _split_theta(variables: dict[str, FloatArray], contract: Contract) -> dict[str, FloatArray]:
    """Replace ``theta`` by the hyperparameters that it concatenates."""
    theta = variables.pop("theta")
    lengths = {name.removeprefix("z_"): v.shape[-1] for name, v in variables.items() if name.startswith("z_")}
    return variables | contract.split(theta, lengths)


def _best_mode(
    model: cmdstanpy.CmdStanModel, common: CommonArguments
) -> tuple[cmdstanpy.CmdStanMLE, list[dict[str, Any]]]:
    """Return the best mode over several starts, and the calls that found the modes."""
    seeds = np.random.default_rng(common["seed"]).integers(1, 2**31 - 300, _MODE_STARTS)
    best, failure, calls = None, None, []
    for i, seed in enumerate(seeds):
        try:
            # L-BFGS that stops in a failed line search is as close to the mode as rounding allows.
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
        calls.append(call(fit))
        if best is None or fit.optimized_params_dict["lp__"] > best.optimized_params_dict["lp__"]:
            best = fit
    if best is None:
        raise RuntimeError(f"no mode found from {_MODE_STARTS} starts; {failure}")
    return best, calls


def _in_folder(common: CommonArguments, name: str) -> CommonArguments:
    """Return the arguments with a separate output folder: CmdStanPy names files by the second and overwrites them."""
    return common | {"output_dir": str(Path(common["output_dir"]) / name)}
