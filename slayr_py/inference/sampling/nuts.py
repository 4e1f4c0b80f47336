"""Hamiltonian Monte Carlo in rounds: one that begins cold or warm, and others that go on until there is enough."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import cmdstanpy
import numpy as np

from slayr_py.inference.diagnostics.arviz_bridge import convergence
from slayr_py.inference.diagnostics.checks import rhat_limit
from slayr_py.inference.sampling.output import SAMPLER_COLUMNS, Run, call, columns_of, shapes_of, variables_of
from slayr_py.inference.sampling.seeds import stan_seed
from slayr_py.inference.sampling.warm_start import WarmStart
from slayr_py.space.dimension import FloatArray

SHORT_WARMUP = 20
"""Iterations in which a warm start leaves where the last fit stood.

They adapt nothing: so few say less of step size and metric than all draws of the last fit did.
"""

MOST = 16
"""Times the draws of the first round that all rounds together may have."""

_MARGIN = 1.1  # more draws than the effective sample size so far asks for: it is an estimate
_STUCK_SHARE = 0.1  # of transitions that diverged, above which the step sizes of a warm start do not fit


def sample(
    model: cmdstanpy.CmdStanModel, common: dict[str, Any], arguments: dict[str, Any], start: WarmStart | None
) -> Run:
    """Sample ``draws`` a chain and, where ``ess`` is given, go on until the smallest bulk effective sample size has it.

    A further round begins where the last one stopped and keeps its step sizes and metrics, so that all are one run.
    ``arguments["rounds"]`` tells afterwards how many draws a chain each of them had.
    """
    tables: list[FloatArray] = []
    calls: list[dict[str, Any]] = []
    how, draws, wanted = _beginning(arguments, start), arguments["draws"], arguments["ess"]
    told = dict.fromkeys(("init", "stepsize", "metric_file"), "start") if start else {}
    rounds: list[int] = []
    run: Run | None = None
    while True:
        try:
            fit = model.sample(
                **common
                | {"seed": stan_seed(arguments["seed"], part=len(rounds)), "output_dir": _folder(common, rounds)},
                **how,
                chains=arguments["chains"],
                parallel_chains=min(arguments["chains"], os.cpu_count() or 1),
                iter_sampling=draws,
                max_treedepth=arguments["max_treedepth"],
                show_progress=False,
            )
        except RuntimeError:
            # Where the covariance is singular but for rounding, a chain may stop at a point at which none can begin.
            if run is None:
                raise
            return run
        tables.append(np.transpose(fit.draws(), (1, 0, 2)))
        rounds.append(draws)
        calls.append(call(fit, **told))
        if len(rounds) == 1:
            adaptation = _adaptation(fit, start)
            arguments = arguments | {"chain_ids": [int(chain) for chain in fit.chain_ids]}
        run = _run(np.concatenate(tables, axis=1), fit.column_names, arguments | {"rounds": rounds}, adaptation, calls)
        if not wanted:
            return run
        worst, most = convergence(run.unconstrained), MOST * arguments["draws"]
        draws = _missing(run, worst, wanted, most)
        # A cold fit follows a warm one that fails, so what is hopeless is not gone on with.
        if not draws or (start and _hopeless(run, worst, wanted, most)):
            return run
        how = _continuation(run)
        told = {"init": "the last draws", "stepsize": "adaptation", "metric_file": "start" if start else "adaptation"}


def _folder(common: dict[str, Any], rounds: list[int]) -> str:
    return os.path.join(common["output_dir"], str(len(rounds)))


def _beginning(arguments: dict[str, Any], start: WarmStart | None) -> dict[str, Any]:
    if start is None:
        return {"iter_warmup": arguments["warmup"], "adapt_delta": arguments["target_acceptance"]}
    return {
        "inits": [start.point(chain) for chain in range(start.chains)],
        "step_size": start.step_size.tolist(),
        "metric": "dense_e" if start.inverse_metric.ndim == 2 else "diag_e",
        "inv_metric": start.inverse_metric,
        "iter_warmup": SHORT_WARMUP,
        "adapt_engaged": False,
    }


def _continuation(run: Run) -> dict[str, Any]:
    last = {name: run.variables[name][:, -1].reshape(-1, *shape) for name, shape in run.shapes.items()}
    return {
        "inits": [{name: values[chain].tolist() for name, values in last.items()} for chain in range(run.chains)],
        "step_size": [chain["step_size"] for chain in run.adaptation],
        "metric": "dense_e" if np.ndim(run.adaptation[0]["inv_metric"]) == 2 else "diag_e",
        "inv_metric": [{"inv_metric": chain["inv_metric"]} for chain in run.adaptation],
        "iter_warmup": 0,
        "adapt_engaged": False,
    }


def _adaptation(fit: cmdstanpy.CmdStanMCMC, start: WarmStart | None) -> list[dict[str, Any]]:
    """Step size and inverse metric of each chain: those it started with, or those that its file tells in six digits."""
    if start:
        sizes, metrics = start.step_size, [start.inverse_metric] * start.chains
    else:
        assert fit.inv_metric is not None and fit.step_size is not None
        sizes, metrics = fit.step_size, list(fit.inv_metric)
    return [
        {"step_size": float(size), "inv_metric": metric.tolist()} for size, metric in zip(sizes, metrics, strict=True)
    ]


def _run(
    table: FloatArray,
    names: tuple[str, ...],
    arguments: dict[str, Any],
    adaptation: list[dict[str, Any]],
    calls: list[dict[str, Any]],
) -> Run:
    columns = columns_of(names)
    sampler = {label: table[..., columns[name][0]] for name, label in SAMPLER_COLUMNS.items()}
    return Run(variables_of(table, names), shapes_of(names), arguments, sampler, adaptation=adaptation, calls=calls)


def _missing(run: Run, worst: Mapping[str, float], wanted: int, most: int) -> int:
    """Draws a chain that are to follow: 0 where there are enough, or too many already."""
    drawn = sum(run.arguments["rounds"])
    ess = worst["ess_bulk_min"]
    agreed = worst["rhat_max"] <= rhat_limit(run.chains, wanted)
    if (ess >= wanted and worst["ess_tail_min"] >= wanted / 2 and agreed) or drawn >= most:
        return 0
    factor = _MARGIN * wanted / ess - 1 if 0 < ess < wanted else 0.5
    return int(np.clip(factor * drawn, 0.5 * drawn, min(2 * drawn, most - drawn)))


def _hopeless(run: Run, worst: Mapping[str, float], wanted: int, most: int) -> bool:
    """Whether so many transitions diverge, or the chains mix so badly, that all draws allowed would hardly do."""
    if np.mean(run.sampler["diverging"]) > _STUCK_SHARE:
        return True
    return bool(worst["ess_bulk_min"] * most / sum(run.arguments["rounds"]) < wanted / 2)
