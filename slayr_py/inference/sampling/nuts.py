"""NUTS in rounds: from a cold or warm start, until the effective sample size is reached."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import cmdstanpy
import numpy as np
from typing_extensions import override

from slayr_py.inference.diagnostics.arviz_bridge import convergence
from slayr_py.inference.diagnostics.checks import CHAIN_CHECKS, rhat_limit
from slayr_py.inference.sampling.approximations import chain_starts
from slayr_py.inference.sampling.command import CommonArguments
from slayr_py.inference.sampling.method import FitMethod, Job, Kind
from slayr_py.inference.sampling.numpy_density import is_plain
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
from slayr_py.inference.sampling.resampled_chains import resampled_chains
from slayr_py.inference.sampling.seeds import stan_seed
from slayr_py.inference.sampling.warm_start import WarmStart
from slayr_py.space import FloatArray

SHORT_WARMUP = 20
"""Warm-up iterations after a warm start, in which the chains move away from their initial states.

These iterations adapt neither step size nor metric: they give worse estimates than all draws of the earlier fit.
"""

LARGEST_GROWTH = 16
"""Largest number of draws of all rounds, relative to the first round."""

_MARGIN = 1.1  # factor on the draws still needed, because the ESS that predicts them is an estimate
_STUCK_SHARE = 0.1  # share of divergent transitions above which the step sizes of a warm start do not fit

_STAN_STAGES = (75, 25, 50)  # iterations of Stan's warm-up: before, in (at least) and after the windows of the metric
_LEAST_ADAPTED = 20  # shortest warm-up in which Stan adapts a metric


class Nuts(FitMethod):
    """Hamiltonian Monte Carlo by the No-U-Turn sampler."""

    name = "nuts"
    checks = CHAIN_CHECKS
    has_chains = True

    @override
    def record(self, options: FitOptions) -> dict[str, Any]:
        names = ("chains", "warmup", "draws", "max_treedepth", "target_acceptance", "ess")
        return {name: getattr(options, name) for name in names}

    @override
    def kind(self, start: WarmStart | None) -> Kind:
        return "warm" if start else "cold"

    @override
    def warm_start(
        self, draws: Mapping[str, FloatArray], record: Mapping[str, Any], acceptance_rate: float
    ) -> WarmStart:
        return WarmStart.after(
            draws,
            np.array([chain["step_size"] for chain in record["adaptation"]]),
            acceptance_rate,
            record["arguments"]["target_acceptance"],
        )

    @override
    def sample(self, job: Job) -> Run:
        """Sample ``draws`` per chain and, if ``ess`` is given, continue until every parameter has that bulk ESS.

        Each further round continues from the last draws with the same step sizes and metrics, so that all rounds are
        one run. ``Run.arguments`` has the chain numbers and the draws per chain of each round.

        Chains of a cold start begin at draws of Pathfinder, see `chain_starts`.
        """
        options = job.options
        start = job.start
        settings, origins, calls = _first_round(job)
        draws = options.draws
        tables: list[FloatArray] = []
        rounds: list[int] = []
        adaptation: list[Adaptation] = []
        chain_ids: list[int] = []
        run: Run | None = None
        while True:
            try:
                fit = _sample(job, len(rounds), draws, settings)
            except RuntimeError:
                # A nearly singular covariance can leave a chain at a point where the next round fails to initialise.
                if run is None:
                    raise
                return run
            tables.append(np.transpose(fit.draws(), (1, 0, 2)))
            rounds.append(draws)
            calls.append(call(fit, **origins))
            if run is None:
                adaptation = _adaptation(fit, start)
                chain_ids = [int(chain) for chain in fit.chain_ids]
            table = np.concatenate(tables, axis=1)
            columns = columns_of(fit.column_names)
            sampled = Run(
                variables_of(table, fit.column_names),
                shapes_of(fit.column_names),
                arguments={"chain_ids": chain_ids, "rounds": rounds},
                sampler={label: table[..., columns[name][0]] for name, label in SAMPLER_COLUMNS.items()},
                adaptation=adaptation,
                calls=calls,
            )
            run = resampled_chains(sampled, job.seed) if "log_density" in sampled.variables else sampled
            if not options.ess:
                return run
            worst = convergence(run.unconstrained)
            most = LARGEST_GROWTH * options.draws
            draws = _missing_draws(run, worst, options.ess, most)
            # Stop a warm start early if it cannot reach the ESS: a cold start follows.
            if not draws or (start and _cannot_reach(run, worst, options.ess, most)):
                return run
            settings = _further_round(sampled)
            metric_origin = "start" if start else "adaptation"
            origins = {"init": "the last draws", "stepsize": "adaptation", "metric_file": metric_origin}


def _sample(job: Job, part: int, draws: int, settings: Mapping[str, Any]) -> cmdstanpy.CmdStanMCMC:
    """Run the chains of a round, with a separate seed and folder."""
    common: CommonArguments = {
        **job.common,
        "seed": stan_seed(job.seed, part),
        "output_dir": os.path.join(job.common["output_dir"], str(part)),
    }
    return job.model.sample(
        **common,
        **settings,
        chains=job.options.chains,
        parallel_chains=min(job.options.chains, os.cpu_count() or 1),
        iter_sampling=draws,
        max_treedepth=job.options.max_treedepth,
        show_progress=False,
    )


def _first_round(job: Job) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]:
    """Return the settings of the first round, their places in the record, and the calls that computed them."""
    if start := job.start:
        settings = {
            "inits": [start.point(chain) for chain in range(start.chains)],
            "step_size": start.step_size.tolist(),
            "metric": "dense_e" if start.inverse_metric.ndim == 2 else "diag_e",
            "inv_metric": start.inverse_metric,
            "iter_warmup": SHORT_WARMUP,
            "adapt_engaged": False,
        }
        return settings, dict.fromkeys(("init", "stepsize", "metric_file"), "start"), []
    options = job.options
    settings = {
        "iter_warmup": options.warmup,
        "adapt_delta": options.target_acceptance,
        **_fitting_buffers(options.warmup),
    }
    if not is_plain(job.data):
        return settings, {}, []
    inits, calls = chain_starts(job)
    return settings | {"inits": inits}, {"init": inits}, calls


def _fitting_buffers(warmup: int) -> dict[str, int]:
    """Return the stages of a warm-up that is too short for Stan's: 15%, 75% and 10% of it.

    Stan shortens its stages in the same way, and then never ends a window, so that the metric is not adapted.
    """
    if not _LEAST_ADAPTED <= warmup < sum(_STAN_STAGES):
        return {}
    first, last = int(0.15 * warmup), int(0.1 * warmup)
    return {"adapt_init_phase": first, "adapt_metric_window": warmup - first - last, "adapt_step_size": last}


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


def _missing_draws(run: Run, worst: Mapping[str, float], required: int, most: int) -> int:
    """Return the draws per chain of the next round; 0 if ESS and R-hat suffice or the limit ``most`` is reached."""
    drawn = sum(run.arguments["rounds"])
    ess = worst["ess_bulk_min"]
    agreed = worst["rhat_max"] <= rhat_limit(run.chains, required)
    if (ess >= required and worst["ess_tail_min"] >= required / 2 and agreed) or drawn >= most:
        return 0
    factor = _MARGIN * required / ess - 1 if 0 < ess < required else 0.5
    return max(1, int(np.clip(factor * drawn, 0.5 * drawn, min(2 * drawn, most - drawn))))


def _cannot_reach(run: Run, worst: Mapping[str, float], ess: int, most: int) -> bool:
    """Return whether many transitions diverge, or ``most`` draws would have less than half the required ``ess``."""
    if np.mean(run.sampler["diverging"]) > _STUCK_SHARE:
        return True
    return bool(worst["ess_bulk_min"] * most / sum(run.arguments["rounds"]) < ess / 2)
