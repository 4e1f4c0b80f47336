"""Posteriors without chains: the mode, and draws of normal approximations, importance-resampled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import cmdstanpy
import numpy as np
from typing_extensions import override

from slayr_py.inference.diagnostics.checks import APPROXIMATION_CHECKS, importance_limits
from slayr_py.inference.diagnostics.importance import smoothed_resample
from slayr_py.inference.sampling.cold_starts import ColdStart, as_starts, cold_starts
from slayr_py.inference.sampling.command import CommonArguments
from slayr_py.inference.sampling.densities import density_of, numpy_density, run_of
from slayr_py.inference.sampling.density import pointwise
from slayr_py.inference.sampling.method import FitMethod, Job
from slayr_py.inference.sampling.numpy_density import NumpyDensity
from slayr_py.inference.sampling.options import FitOptions
from slayr_py.inference.sampling.output import Run, call, columns_of, shapes_of, variables_of
from slayr_py.inference.sampling.population import improve
from slayr_py.inference.sampling.seeds import stan_seed, starts_seed
from slayr_py.inference.sampling.warm_start import WarmStart
from slayr_py.space import FloatArray

GROWTH = 1.1  # of the number of observations, after which random starts are tried again beside the last mode

_MODE_ITERATIONS = 2000
_DRAWS_OF_STARTS = 100  # of every path, from which initial values of chains are resampled
_STARTS_STREAM = 2  # of the random numbers of a seed; the others belong to approximations and binary likelihoods
_RATIO = ("lp__", "lp_approx__")  # of Pathfinder: columns of the target and of the approximation
_ELBO_DRAWS = 10  # draws per approximation on a path; with Stan's default of 25 they cost more than the paths
_PRIOR_DRAWS = 500  # whose covariance proposals have
_STEPS = 10  # of population Monte Carlo; all of them take less time than NUTS


class Mode(FitMethod):
    """The posterior mode as a single draw."""

    name = "map"
    checks = ()
    point_estimate = True

    @override
    def record(self, options: FitOptions) -> dict[str, Any]:
        return {}

    @override
    def warm_start(
        self, draws: Mapping[str, FloatArray], record: Mapping[str, Any], acceptance_rate: float
    ) -> WarmStart:
        return WarmStart.of_mode(draws, record["arguments"]["searched"])

    @override
    def sample(self, job: Job) -> Run:
        """Climb from the mode of the start; from random starts if there is none, or if one is due.

        The mode of earlier observations leads to the nearest mode, which need not be the highest any more. Random
        starts are due when the number of observations has changed by a tenth since the last ones.
        """
        n = int(job.data["N"])
        if job.start is None:
            return self._climb(job, _cold_starts(job), n)
        searched = job.start.searched
        if searched / GROWTH < n < searched * GROWTH:
            try:
                return self._climb(job, [], searched)
            except RuntimeError:  # the density is not defined at the last mode
                pass
        return self._climb(job, _cold_starts(job)[:-1], n)

    def _climb(self, job: Job, cold: Sequence[ColdStart], searched: int) -> Run:
        fit, calls = best_mode(job, cold)
        table = np.asarray(fit.optimized_params_np)[None, None, :]
        settings = {"mode_starts": len(cold) + bool(job.start), "searched": searched}
        return Run(variables_of(table, fit.column_names), shapes_of(fit.column_names), settings, calls=calls)


class Laplace(FitMethod):
    """Draws resampled from a normal distribution at the mode."""

    name = "laplace"

    @override
    def sample(self, job: Job) -> Run:
        starts = _cold_starts(job)
        mode, calls = best_mode(job, starts)
        fit = job.model.laplace_sample(**_of_proposals(job, "laplace"), mode=mode, draws=job.total_draws, jacobian=True)
        calls.append(call(fit, mode="the best mode"))
        return _resample(job, fit, ("log_p__", "log_q__"), {"mode_starts": len(starts)}, calls)


class Pathfinder(FitMethod):
    """Draws resampled from the best normal distributions on paths to the mode (Zhang et al. 2022)."""

    name = "pathfinder"

    @override
    def sample(self, job: Job) -> Run:
        starts = _cold_starts(job)
        fit, described = _paths(job, starts, -(-job.total_draws // len(starts)), _of_proposals(job, "pathfinder"))
        return _resample(job, fit, _RATIO, {"paths": len(starts), "elbo_draws": _ELBO_DRAWS}, [described])


def chain_starts(job: Job) -> tuple[list[ColdStart], list[dict[str, Any]]]:
    """Return an initial value for each chain of a cold start, and the calls that found them.

    They are draws of Pathfinder (Zhang et al. 2022), whose weights are flattened to their square roots: initial values
    should be more dispersed than the posterior, and no chain should start in a mode that is exp(10) times smaller than
    another one. If Pathfinder fails, they are the points where it has started.
    """
    starts = _cold_starts(job)
    try:
        common = job.for_proposals("starts", corrects=False) | {"seed": starts_seed(job.seed)}
        fit, described = _paths(job, starts, _DRAWS_OF_STARTS, common)
        table = fit.draws()
        log_ratio = _difference(table, columns_of(fit.column_names), *_RATIO)
        rng = np.random.default_rng([job.seed, _STARTS_STREAM])
        rows = smoothed_resample(log_ratio / 2, job.options.chains, rng).rows
    except (RuntimeError, ValueError):
        return [starts[chain % len(starts)] for chain in range(job.options.chains)], []
    return as_starts(variables_of(table[rows], fit.column_names), shapes_of(fit.column_names)), [described]


def _cold_starts(job: Job) -> list[ColdStart]:
    return cold_starts(job.model.name, job.data, np.random.default_rng(stan_seed(job.seed)))


def _paths(
    job: Job, starts: list[ColdStart], single: int, common: CommonArguments
) -> tuple[cmdstanpy.CmdStanPathfinder, dict[str, Any]]:
    """Return draws of all paths of Pathfinder, and the call that has drawn them."""
    fit = job.model.pathfinder(
        **common,
        num_paths=len(starts),
        inits=cast(Any, starts),  # CmdStanPy's annotation has no vectors
        num_elbo_draws=_ELBO_DRAWS,
        num_single_draws=single,
        draws=len(starts) * single,
        psis_resample=False,
        calculate_lp=True,
    )
    return fit, call(fit, init=starts)


def _resample(
    job: Job,
    fit: cmdstanpy.CmdStanLaplace | cmdstanpy.CmdStanPathfinder,
    ratio: tuple[str, str],
    settings: dict[str, Any],
    calls: list[dict[str, Any]],
) -> Run:
    """Improve the draws of an approximation by importance sampling; they are used themselves only if that fails.

    A normal distribution misses the tails of a posterior, and ratios of draws that miss them look good. So a fifth of
    the proposals comes from a distribution as wide as the prior, if the density is written in NumPy.

    ``ratio`` names the columns of the target and of the approximation. A more accurate density of binary observations
    replaces the target.
    """
    table = fit.draws()
    names = fit.column_names
    columns = columns_of(names)
    shapes = shapes_of(names)
    rng = np.random.default_rng(job.seed)
    drawn = np.concatenate([table[:, columns[name]] for name in shapes], axis=1)
    density = density_of(job, shapes)
    if isinstance(density, NumpyDensity) and job.data["binary"]:
        log_ratio = density(drawn) - table[:, columns[ratio[1]][0]]
    else:
        target = "log_density" if "log_density" in columns else ratio[0]
        log_ratio = _difference(table, columns, target, ratio[1])
    rows, pareto_k, ess = smoothed_resample(log_ratio, job.total_draws, rng)
    good = importance_limits(APPROXIMATION_CHECKS, job.total_draws)
    try:
        prior = density.prior_draws(_PRIOR_DRAWS, rng) if isinstance(density, NumpyDensity) else None
        better = improve(density, drawn[rows], job.total_draws, good, rng, most_steps=_STEPS, wide=prior)
    except (ValueError, np.linalg.LinAlgError):
        better = None
    if better is not None and (good(better.pareto_k, better.ess) or not good(pareto_k, ess)):
        return run_of(job, density, shapes, better, settings | {"improved": True}, calls)
    variables = variables_of(table[None, rows], names)
    if job.data["want_pointwise"]:
        variables |= pointwise(job, shapes, drawn[rows])
    return Run(variables, shapes, settings | {"improved": False}, {}, pareto_k, ess, calls=calls)


def _of_proposals(job: Job, folder: str) -> CommonArguments:
    """Return the arguments of a call for proposals; NumPy corrects the density of binary observations if it can."""
    return job.for_proposals(folder, corrects=numpy_density(job.model.name, job.data) is None)


def _difference(table: FloatArray, columns: Mapping[str, list[int]], first: str, second: str) -> FloatArray:
    return np.asarray(table[:, columns[first][0]] - table[:, columns[second][0]])


def best_mode(job: Job, cold: Sequence[ColdStart]) -> tuple[cmdstanpy.CmdStanMLE, list[dict[str, Any]]]:
    """Return the best mode from the start of the job and from ``cold`` ones, and the calls that found the modes."""
    starts: list[tuple[ColdStart, ColdStart | str]] = [(point, point) for point in cold]
    if job.start:
        starts.insert(0, (job.start.centre(), "start"))
    seeds = np.random.default_rng(job.common["seed"]).integers(1, 2**31 - 300, len(starts))
    best = None
    failure = None
    calls = []
    for i, (seed, (inits, origin)) in enumerate(zip(seeds, starts, strict=True)):
        try:
            # L-BFGS that stops in a failed line search is as close to the mode as rounding allows.
            fit = job.model.optimize(
                **_in_folder(job.common, f"mode-{i}") | {"seed": int(seed)},
                algorithm="lbfgs",
                jacobian=True,
                iter=_MODE_ITERATIONS,
                require_converged=False,
                inits=cast(Any, inits),  # CmdStanPy's annotation has no vectors
            )
        except RuntimeError as error:
            failure = error
            continue
        calls.append(call(fit, init=origin))
        if best is None or fit.optimized_params_dict["lp__"] > best.optimized_params_dict["lp__"]:
            best = fit
    if best is None:
        raise RuntimeError(f"no mode found from {len(starts)} starts; {failure}")
    return best, calls


def _in_folder(common: CommonArguments, name: str) -> CommonArguments:
    """Return the arguments with a separate output folder: CmdStanPy names files by the second and overwrites them."""
    return common | {"output_dir": str(Path(common["output_dir"]) / name)}
