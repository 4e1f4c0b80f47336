"""NUTS in rounds: the first from a cold or warm start, further ones until the effective sample size is reached."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import cmdstanpy
import numpy as np

from slayr_py.inference.diagnostics.arviz_bridge import convergence
from slayr_py.inference.diagnostics.checks import rhat_limit
from slayr_py.inference.sampling.approximations import best_mode
from slayr_py.inference.sampling.command import CommonArguments
from slayr_py.inference.sampling.guesses import BEST_MODE, Guess
from slayr_py.inference.sampling.options import FitOptions
from slayr_py.inference.sampling.output import (
    SAMPLER_COLUMNS,
    Adaptation,
    Run,
    call,
    columns_of,
    shapes_of,
    variables_of,
)
from slayr_py.inference.sampling.seeds import stan_seed
from slayr_py.inference.sampling.warm_start import WarmStart
from slayr_py.space import FloatArray

SHORT_WARMUP = 20
"""Warm-up iterations after a warm start, in which the chains move away from their initial states.

Nothing is adapted in them: so few iterations give worse estimates of step size and metric than all draws of the fit
that the start comes from.
"""

MOST = 16
"""Largest ratio of the draws of all rounds to those of the first round."""

_MARGIN = 1.1  # factor on the draws still needed, because the ESS that predicts them is an estimate
_GUESS_ITERATIONS = 100  # of the optimiser that finds the periods at which chains start
_STUCK_SHARE = 0.1  # share of divergent transitions above which the step sizes of a warm start do not fit


def sample(
    model: cmdstanpy.CmdStanModel,
    common: CommonArguments,
    options: FitOptions,
    seed: int,
    start: WarmStart | None,
    guesses: Sequence[Guess] = (),
) -> Run:
    """Sample ``draws`` per chain and, if ``ess`` is given, continue until every parameter has that bulk ESS.

    Each further round continues from the last draws with the same step sizes and metrics, so that all rounds are one
    run. ``Run.arguments`` has the chain numbers and the draws per chain of each round.

    A cold start with ``guesses`` of periods starts all chains at the periods of the best of the modes found from them.
    """
    tables: list[FloatArray] = []
    calls: list[dict[str, Any]] = []
    rounds: list[int] = []
    settings = _first_round(options, start)
    draws = options.draws
    recorded_elsewhere = dict.fromkeys(("init", "stepsize", "metric_file"), "start") if start else {}
    if guesses and not start:
        inits, calls = _at_the_best_mode(model, common, guesses)
        settings["inits"] = [inits] * options.chains
        recorded_elsewhere = {"init": BEST_MODE}
    chain_ids: list[int] = []
    adaptation: list[Adaptation] = []
    run: Run | None = None
    while True:
        folder = os.path.join(common["output_dir"], str(len(rounds)))
        placed: CommonArguments = {**common, "seed": stan_seed(seed, part=len(rounds)), "output_dir": folder}
        try:
            fit = model.sample(
                **placed,
                **settings,
                chains=options.chains,
                parallel_chains=min(options.chains, os.cpu_count() or 1),
                iter_sampling=draws,
                max_treedepth=options.max_treedepth,
                show_progress=False,
            )
        except RuntimeError:
            # A nearly singular covariance can leave a chain at a point where the next round fails to initialise.
            if run is None:
                raise
            return run
        tables.append(np.transpose(fit.draws(), (1, 0, 2)))
        rounds.append(draws)
        calls.append(call(fit, **recorded_elsewhere))
        if len(rounds) == 1:
            adaptation = _adaptation(fit, start)
            chain_ids = [int(chain) for chain in fit.chain_ids]
        table = np.concatenate(tables, axis=1)
        columns = columns_of(fit.column_names)
        run = Run(
            variables_of(table, fit.column_names),
            shapes_of(fit.column_names),
            arguments={"chain_ids": chain_ids, "rounds": rounds},
            sampler={label: table[..., columns[name][0]] for name, label in SAMPLER_COLUMNS.items()},
            adaptation=adaptation,
            calls=calls,
        )
        if not options.ess:
            return run
        worst = convergence(run.unconstrained)
        most = MOST * options.draws
        draws = _missing_draws(run, worst, options.ess, most)
        # Stop a warm start early if it cannot reach the ESS: a cold start follows.
        if not draws or (start and _cannot_reach(run, worst, options.ess, most)):
            return run
        settings = _further_round(run)
        metric_origin = "start" if start else "adaptation"
        recorded_elsewhere = {"init": "the last draws", "stepsize": "adaptation", "metric_file": metric_origin}


def _at_the_best_mode(
    model: cmdstanpy.CmdStanModel, common: CommonArguments, guesses: Sequence[Guess]
) -> tuple[Guess, list[dict[str, Any]]]:
    """Return the periods of the best mode as initial values, and the calls that found it."""
    try:
        best, calls = best_mode(model, common, guesses, _GUESS_ITERATIONS)
    except RuntimeError:
        return guesses[0], []
    return {name: np.atleast_1d(best.stan_variable(name)).tolist() for name in guesses[0]}, calls


def _first_round(options: FitOptions, start: WarmStart | None) -> dict[str, Any]:
    if start is None:
        return {"iter_warmup": options.warmup, "adapt_delta": options.target_acceptance}
    return {
        "inits": [start.point(chain) for chain in range(start.chains)],
        "step_size": start.step_size.tolist(),
        "metric": "dense_e" if start.inverse_metric.ndim == 2 else "diag_e",
        "inv_metric": start.inverse_metric,
        "iter_warmup": SHORT_WARMUP,
        "adapt_engaged": False,
    }


def _further_round(run: Run) -> dict[str, Any]:
    last = {name: run.variables[name][:, -1].reshape(-1, *shape) for name, shape in run.shapes.items()}
    return {
        "inits": [{name: values[chain].tolist() for name, values in last.items()} for chain in range(run.chains)],
        "step_size": [chain["step_size"] for chain in run.adaptation],
        "metric": "dense_e" if np.ndim(run.adaptation[0]["inv_metric"]) == 2 else "diag_e",
        "inv_metric": [{"inv_metric": chain["inv_metric"]} for chain in run.adaptation],
        "iter_warmup": 0,
        "adapt_engaged": False,
    }


def _adaptation(fit: cmdstanpy.CmdStanMCMC, start: WarmStart | None) -> list[Adaptation]:
    """Return step size and inverse metric of each chain: from the start, or from CmdStan's file (six digits)."""
    if start:
        sizes = start.step_size
        metrics = [start.inverse_metric] * start.chains
    else:
        assert fit.inv_metric is not None and fit.step_size is not None
        sizes = fit.step_size
        metrics = list(fit.inv_metric)
    return [
        {"step_size": float(size), "inv_metric": metric.tolist()} for size, metric in zip(sizes, metrics, strict=True)
    ]


def _missing_draws(run: Run, worst: Mapping[str, float], wanted: int, most: int) -> int:
    """Return the draws per chain of the next round; 0 if ESS and R-hat suffice or the limit ``most`` is reached."""
    drawn = sum(run.arguments["rounds"])
    ess = worst["ess_bulk_min"]
    agreed = worst["rhat_max"] <= rhat_limit(run.chains, wanted)
    if (ess >= wanted and worst["ess_tail_min"] >= wanted / 2 and agreed) or drawn >= most:
        return 0
    factor = _MARGIN * wanted / ess - 1 if 0 < ess < wanted else 0.5
    return int(np.clip(factor * drawn, 0.5 * drawn, min(2 * drawn, most - drawn)))


def _cannot_reach(run: Run, worst: Mapping[str, float], wanted: int, most: int) -> bool:
    """Return whether many transitions diverge, or all ``most`` draws would give less than half the wanted ESS."""
    if np.mean(run.sampler["diverging"]) > _STUCK_SHARE:
        return True
    return bool(worst["ess_bulk_min"] * most / sum(run.arguments["rounds"]) < wanted / 2)
