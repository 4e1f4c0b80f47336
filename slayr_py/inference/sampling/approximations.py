"""Approximate posteriors: the mode, and draws from Laplace's and Pathfinder's approximations, importance-resampled."""

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
from slayr_py.inference.sampling.command import generated_quantities, log_densities
from slayr_py.inference.sampling.output import Run, call, columns_of, shapes_of, variables_of
from slayr_py.inference.sampling.population import improve
from slayr_py.kernels.contracts import CONTRACTS, Contract
from slayr_py.space.dimension import FloatArray

_MODE_STARTS = 4  # a posterior of length-scales can have several modes: the best of a few starts is reported
_PATHS = 4
_ELBO_DRAWS = 10  # to find the best approximation on a path: Stan's own 25 cost more than the paths
_MODE = {"mode_starts": _MODE_STARTS}


def mode(model: cmdstanpy.CmdStanModel, common: dict[str, Any], arguments: dict[str, Any]) -> Run:
    """The mode, as a single draw."""
    fit, calls = _best_mode(model, common)
    table = np.asarray(fit.optimized_params_np)[None, None, :]
    return Run(variables_of(table, fit.column_names), shapes_of(fit.column_names), arguments | _MODE, calls=calls)


def laplace(model: cmdstanpy.CmdStanModel, common: dict[str, Any], arguments: dict[str, Any]) -> Run:
    """Draws from a normal distribution at the mode."""
    at, calls = _best_mode(model, common)
    fit = model.laplace_sample(**_in_folder(common, "laplace"), mode=at, draws=arguments["draws"], jacobian=True)
    calls.append(call(fit, mode="the best mode"))
    return _reweighted(model, fit, ("log_p__", "log_q__"), common, arguments | _MODE, calls)


def pathfinder(model: cmdstanpy.CmdStanModel, common: dict[str, Any], arguments: dict[str, Any]) -> Run:
    """Draws from the best normal distributions on the way to the mode (Zhang et al. 2022)."""
    single = -(-arguments["draws"] // _PATHS)
    fit = model.pathfinder(
        **common,
        num_paths=_PATHS,
        num_elbo_draws=_ELBO_DRAWS,
        num_single_draws=single,
        draws=_PATHS * single,
        psis_resample=False,
        calculate_lp=True,
    )
    told = {"paths": _PATHS, "elbo_draws": _ELBO_DRAWS}
    return _reweighted(model, fit, ("lp__", "lp_approx__"), common, arguments | told, [call(fit)])


def _reweighted(
    model: cmdstanpy.CmdStanModel,
    fit: cmdstanpy.CmdStanLaplace | cmdstanpy.CmdStanPathfinder,
    ratio: tuple[str, str],
    common: dict[str, Any],
    arguments: dict[str, Any],
    calls: list[dict[str, Any]],
) -> Run:
    """Resample an approximation's draws by Pareto-smoothed importance ratios, after improving them if these are bad."""
    table, names = fit.draws(), fit.column_names
    columns, rng = columns_of(names), np.random.default_rng(arguments["seed"])
    log_ratio = table[:, columns[ratio[0]][0]] - table[:, columns[ratio[1]][0]]
    wanted = arguments["draws"]

    def good(pareto_k: float, ess: float) -> bool:
        return pareto_k <= PARETO_K_LIMIT and ess >= importance_ess_limit(wanted)

    rows, pareto_k, ess = smoothed_resample(log_ratio, wanted, rng)
    variables = variables_of(table[None, rows], names)
    run = Run(variables, shapes_of(names), arguments | {"improved": False}, {}, pareto_k, ess, calls=calls)
    if good(pareto_k, ess):
        return run
    exe, data = str(model.exe_file), Path(common["data"])
    coordinates = np.concatenate([values[0] for values in run.unconstrained.values()], axis=1)
    try:
        better = improve(partial(log_densities, exe, data), coordinates, wanted, good, rng)
    except (ValueError, np.linalg.LinAlgError):
        return run  # its Pareto shape says it all
    header = [f"{name}.{i + 1}" if shape else name for name, shape in run.shapes.items() for i in range(prod(shape))]
    generated = generated_quantities(exe, data, pd.DataFrame(better.draws, columns=header), common["seed"])
    both = variables_of(np.hstack([better.draws, generated])[None], [*header, *generated.columns])
    told = arguments | {"improved": True}
    return Run(_named(both, CONTRACTS[model.name]), run.shapes, told, {}, better.pareto_k, better.ess, calls=calls)


def _named(variables: dict[str, FloatArray], contract: Contract) -> dict[str, FloatArray]:
    """Replace ``theta`` by the hyperparameters under their names."""
    theta = variables.pop("theta")
    lengths = {name.removeprefix("z_"): v.shape[-1] for name, v in variables.items() if name.startswith("z_")}
    return variables | contract.split(theta, lengths)


def _best_mode(
    model: cmdstanpy.CmdStanModel, common: dict[str, Any]
) -> tuple[cmdstanpy.CmdStanMLE, list[dict[str, Any]]]:
    """The best of some modes, and the calls that found them."""
    seeds = np.random.default_rng(common["seed"]).integers(1, 2**31 - 300, _MODE_STARTS)
    best, failure, calls = None, None, []
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
        calls.append(call(fit))
        if best is None or fit.optimized_params_dict["lp__"] > best.optimized_params_dict["lp__"]:
            best = fit
    if best is None:
        raise RuntimeError(f"no mode found from {_MODE_STARTS} starts; {failure}")
    return best, calls


def _in_folder(common: dict[str, Any], name: str) -> dict[str, Any]:
    """Arguments with an output folder of their own: CmdStanPy names files by the second and would overwrite them."""
    return common | {"output_dir": str(Path(common["output_dir"]) / name)}
