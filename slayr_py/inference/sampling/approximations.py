"""Posteriors without chains: the mode, and importance sampling from earlier draws or an approximation."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import Any, cast

import cmdstanpy
import numpy as np
import pandas as pd

from slayr_py.inference.diagnostics.checks import PARETO_K_LIMIT, importance_ess_limit
from slayr_py.inference.diagnostics.importance import smoothed_resample
from slayr_py.inference.sampling.command import CommonArguments, generated_quantities
from slayr_py.inference.sampling.guesses import Guess
from slayr_py.inference.sampling.options import FitOptions
from slayr_py.inference.sampling.output import Run, call, columns_of, shapes_of, variables_of
from slayr_py.inference.sampling.population import Population, improve
from slayr_py.inference.sampling.warm_start import WarmStart
from slayr_py.kernels import program_contracts
from slayr_py.space import FloatArray

MODE_STARTS = 4  # the posterior of length-scales can have several modes: the best of a few starts is used
_PATHS = 4
_ELBO_DRAWS = 10  # draws to find the best approximation on a path: Stan's default of 25 costs more than the paths
_MODE = {"mode_starts": MODE_STARTS}


def mode(model: cmdstanpy.CmdStanModel, common: CommonArguments, guesses: Sequence[Guess]) -> Run:
    """Return the mode as a single draw."""
    fit, calls = best_mode(model, common, guesses)
    table = np.asarray(fit.optimized_params_np)[None, None, :]
    return Run(variables_of(table, fit.column_names), shapes_of(fit.column_names), dict(_MODE), calls=calls)


def laplace(
    model: cmdstanpy.CmdStanModel, common: CommonArguments, options: FitOptions, seed: int, guesses: Sequence[Guess]
) -> Run:
    """Return draws resampled from a normal distribution at the mode."""
    at, calls = best_mode(model, common, guesses)
    fit = model.laplace_sample(
        **_in_folder(common, "laplace"), mode=at, draws=options.chains * options.draws, jacobian=True
    )
    calls.append(call(fit, mode="the best mode"))
    return _reweighted(model, common, fit, ("log_p__", "log_q__"), options, seed, _MODE, calls)


def pathfinder(
    model: cmdstanpy.CmdStanModel, common: CommonArguments, options: FitOptions, seed: int, guesses: Sequence[Guess]
) -> Run:
    """Return draws resampled from the best normal distributions on paths to the mode (Zhang et al. 2022)."""
    single = -(-options.chains * options.draws // _PATHS)
    fit = model.pathfinder(
        **common,
        num_paths=_PATHS,
        inits=cast(Any, guesses[0]) if guesses else None,  # CmdStanPy's annotation has no vectors
        num_elbo_draws=_ELBO_DRAWS,
        num_single_draws=single,
        draws=_PATHS * single,
        psis_resample=False,
        calculate_lp=True,
    )
    settings = {"paths": _PATHS, "elbo_draws": _ELBO_DRAWS}
    return _reweighted(model, common, fit, ("lp__", "lp_approx__"), options, seed, settings, [call(fit)])


def carried(
    model: cmdstanpy.CmdStanModel, common: CommonArguments, options: FitOptions, seed: int, start: WarmStart
) -> Run:
    """Return draws by importance sampling from a mixture fitted to the draws of ``start``."""
    shapes = {name: values.shape[1:] for name, values in start.points.items()}
    density = _Density(model, common, shapes)
    try:
        n = options.chains * options.draws
        found = improve(density, start.draws, n, _limits(options), np.random.default_rng(seed))
    except np.linalg.LinAlgError as error:
        raise ValueError(f"no proposal can be fitted to the {len(start.draws)} earlier draws: {error}") from error
    return density.run(found, {"steps": found.steps}, [])


class _Density:
    """Log density of a program's coordinates, and the hyperparameters and quantities of resampled points.

    Parameters
    ----------
    model : CmdStanModel
    common : CommonArguments
    shapes : dict
        Shapes of the coordinates by name.
    """

    def __init__(
        self, model: cmdstanpy.CmdStanModel, common: CommonArguments, shapes: dict[str, tuple[int, ...]]
    ) -> None:
        self._exe = str(model.exe_file)
        self._data = Path(common["data"])
        self._seed = common["seed"]
        self._density_data = self._data.with_name("density.json")
        data = json.loads(self._data.read_text())
        self._density_data.write_text(json.dumps(data | {"want_density": 1, "want_pointwise": 0}))
        self._pointwise = data["want_pointwise"]
        self._shapes = shapes
        self._contract = program_contracts()[model.name]
        self._header = [f"{z}.{i + 1}" if shape else z for z, shape in shapes.items() for i in range(prod(shape))]
        self._generated = pd.DataFrame()

    def __call__(self, points: FloatArray) -> FloatArray:
        """Return log densities (s,) at points (s, P); minus infinity where undefined."""
        self._generated = self._generate(points, self._density_data)
        values = self._generated["log_density.1"].to_numpy(dtype=np.float64)
        return np.where(np.isnan(values), -np.inf, values)

    def run(self, found: Population, settings: dict[str, Any], calls: list[dict[str, Any]]) -> Run:
        """Return the run of points that were resampled from those of the last call."""
        generated = self._generated.iloc[found.rows].drop(columns="log_density.1")
        if self._pointwise:
            generated = self._generate(found.draws, self._data)
        table = np.hstack([found.draws, generated])[None]
        variables = variables_of(table, [*self._header, *generated.columns])
        theta = variables.pop("theta")
        lengths = {z.removeprefix("z_"): v.shape[-1] for z, v in variables.items() if z.startswith("z_")}
        variables |= self._contract.split(theta, lengths)
        return Run(variables, self._shapes, settings, {}, found.pareto_k, found.ess, calls=calls)

    def _generate(self, points: FloatArray, data: Path) -> pd.DataFrame:
        return generated_quantities(self._exe, data, pd.DataFrame(points, columns=self._header), self._seed)


def _limits(options: FitOptions) -> Callable[[float, float], bool]:
    """Return whether a Pareto shape and an effective number of draws are within the limits of the diagnostics."""
    smallest = importance_ess_limit(options.chains * options.draws, options.method)
    return lambda pareto_k, ess: pareto_k <= PARETO_K_LIMIT and ess >= smallest


def _reweighted(
    model: cmdstanpy.CmdStanModel,
    common: CommonArguments,
    fit: cmdstanpy.CmdStanLaplace | cmdstanpy.CmdStanPathfinder,
    ratio: tuple[str, str],
    options: FitOptions,
    seed: int,
    settings: dict[str, Any],
    calls: list[dict[str, Any]],
) -> Run:
    """Resample draws by Pareto-smoothed importance ratios; improve the draws first if the ratios are bad."""
    table = fit.draws()
    names = fit.column_names
    columns = columns_of(names)
    rng = np.random.default_rng(seed)
    log_ratio = table[:, columns[ratio[0]][0]] - table[:, columns[ratio[1]][0]]
    good = _limits(options)
    n = options.chains * options.draws
    rows, pareto_k, ess = smoothed_resample(log_ratio, n, rng)
    variables = variables_of(table[None, rows], names)
    shapes = shapes_of(names)
    run = Run(variables, shapes, settings | {"improved": False}, {}, pareto_k, ess, calls=calls)
    if good(pareto_k, ess):
        return run
    coordinates = np.concatenate([values[0] for values in run.unconstrained.values()], axis=1)
    try:
        density = _Density(model, common, shapes)
        better = improve(density, coordinates, n, good, rng)
    except (ValueError, np.linalg.LinAlgError):
        return run  # its Pareto k fails the diagnostics
    return density.run(better, settings | {"improved": True}, calls)


def best_mode(
    model: cmdstanpy.CmdStanModel, common: CommonArguments, guesses: Sequence[Guess], iterations: int = 2000
) -> tuple[cmdstanpy.CmdStanMLE, list[dict[str, Any]]]:
    """Return the best mode over several starts, and the calls that found the modes."""
    seeds = np.random.default_rng(common["seed"]).integers(1, 2**31 - 300, MODE_STARTS)
    best = None
    failure = None
    calls = []
    for i, seed in enumerate(seeds):
        try:
            # L-BFGS that stops in a failed line search is as close to the mode as rounding allows.
            fit = model.optimize(
                **_in_folder(common, f"mode-{i}") | {"seed": int(seed)},
                algorithm="lbfgs",
                jacobian=True,
                iter=iterations,
                require_converged=False,
                inits=guesses[i] if i < len(guesses) else None,
            )
        except RuntimeError as error:
            failure = error
            continue
        calls.append(call(fit))
        if best is None or fit.optimized_params_dict["lp__"] > best.optimized_params_dict["lp__"]:
            best = fit
    if best is None:
        raise RuntimeError(f"no mode found from {MODE_STARTS} starts; {failure}")
    return best, calls


def _in_folder(common: CommonArguments, name: str) -> CommonArguments:
    """Return the arguments with a separate output folder: CmdStanPy names files by the second and overwrites them."""
    return common | {"output_dir": str(Path(common["output_dir"]) / name)}
