"""Compare optimisers of noisy objectives by the configuration that they recommend.

    python -m benchmarks.optimisation.noise --samplers slayr optuna-gp botorch --seeds 5
    python -m benchmarks.optimisation.noise --samplers slayr optuna-gp botorch --report

All problems of benchmarks.common.noisy_problems, with the same initial design, and the same noise in trial t of a seed,
for all samplers. After 25 and 50 evaluations a run has the regret of three configurations, by the values without noise
and relative to the standard deviation of the function. They are the best evaluated one, which a user cannot know, the
one with the best observation, and the recommended one. slayr_py recommends the evaluated configuration with the best
posterior mean. For the others it is the mean of a model of BoTorch (`benchmarks.optimisation.peers`).

Printed are geometric means of the recommended one's regret, which counts as 1e-4 if it is smaller, over all problems of
a size of noise. In brackets is the mean difference of the logarithms from the first sampler in the same runs, with its
standard error. The runs are stored; another call makes those that are missing.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import optuna
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.noisy_problems import SHARES, noisy_problems
from benchmarks.common.problems import Problem
from benchmarks.common.results import ResultFile, add_result_arguments, markdown
from benchmarks.common.versions import write_versions
from benchmarks.optimisation.peers import BoTorch, Slayr, initial_design, peer
from slayr_py.study.results.latest_fits import posterior_of_all
from slayr_py.study.results.recommendation import recommend

COLUMNS = ["problem", "sampler", "seed", "evaluations", "evaluated", "observed", "recommended", "seconds"]
"""Regrets of three configurations, and processor seconds of all suggestions."""

AFTER = (25, 50)
"""Numbers of evaluations at which a run is compared."""

_SMALLEST = 1e-4  # regret, in standard deviations of the function; smaller ones make no difference


def run(name: str, problem: Problem, sampler: str, seed: int) -> list[dict[str, Any]]:
    """Make a run and return its rows."""
    kind, start = peer(sampler)
    optimiser = start(problem, seed)
    design = [] if kind.own_design else initial_design(problem.space, seed)
    told = BoTorch(problem, seed)
    unit = problem.noise / SHARES[name.split(", ")[1]]
    exact: list[float] = []
    seconds = 0.0
    rows = []
    for number in range(max(AFTER)):
        clock = time.process_time()
        params = design[number] if number < len(design) else optimiser.ask()
        seconds += time.process_time() - clock
        exact.append(problem.objective(params))
        value = exact[-1] + problem.noise * float(np.random.default_rng([seed, number]).normal())
        optimiser.tell(params, value)
        told.tell(params, value)
        if number + 1 in AFTER:
            chosen = {
                "evaluated": min(exact),
                "observed": exact[int(np.argmin(told.values))],
                "recommended": problem.objective(recommendation(optimiser, told)),
            }
            regrets = {column: (found - problem.minimum) / unit for column, found in chosen.items()}
            key = {"problem": name, "sampler": sampler, "seed": seed, "evaluations": number + 1}
            rows.append(key | regrets | {"seconds": round(seconds, 2)})
    return rows


def recommendation(optimiser: object, told: BoTorch) -> Mapping[str, Any]:
    """Return the evaluated configuration with the best posterior mean."""
    if isinstance(optimiser, Slayr):
        return recommend(optimiser.study, posterior_of_all(optimiser.study)).config
    return told.recommended()


def table(rows: pd.DataFrame, samplers: Sequence[str]) -> str:
    """Return the geometric means of the regret, and the differences from the first sampler."""
    logs = rows.assign(
        log=np.log(np.maximum(rows["recommended"], _SMALLEST)), size=rows["problem"].str.split(", ").str[1]
    )
    lines = []
    for evaluations in AFTER:
        for size in [*SHARES, "all"]:
            here = logs[(logs["evaluations"] == evaluations) & ((logs["size"] == size) | (size == "all"))]
            paired = here.pivot_table(index=["problem", "seed"], columns="sampler", values="log")
            paired = paired.reindex(columns=list(samplers)).dropna()
            differences = paired.sub(paired[samplers[0]], axis=0)
            errors = differences.std() / np.sqrt(len(paired))
            cells = [f"{np.exp(paired[samplers[0]].mean()):.3f}"]
            cells += [
                f"{np.exp(paired[each].mean()):.3f} ({differences[each].mean():+.2f} ± {errors[each]:.2f})"
                for each in samplers[1:]
            ]
            lines.append([str(evaluations), size, str(len(paired)), *cells])
    return markdown(["evaluations", "noise", "runs", *samplers], lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--samplers", nargs="+", default=["slayr", "optuna-gp", "botorch"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sizes", nargs="+", choices=SHARES, default=list(SHARES), help="of the noise")
    add_result_arguments(parser, __file__)
    given = begin(parser, arguments)
    results = ResultFile(given.output / "noise.csv", COLUMNS[:3], COLUMNS)
    if not given.report:
        os.environ["OMP_NUM_THREADS"] = "1"  # for torch, which is loaded later
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        write_versions(results.path, ("optuna", "torch", "gpytorch", "botorch"))
        problems = {name: each for name, each in noisy_problems().items() if name.split(", ")[1] in given.sizes}
        runs = [(name, sampler, seed) for seed in range(given.seeds) for sampler in given.samplers for name in problems]
        for name, sampler, seed in results.missing(runs):
            with warnings.catch_warnings(), threadpool_limits(limits=1):
                warnings.simplefilter("ignore")
                results.append(run(name, problems[name], sampler, seed))
    rows = results.rows()
    print(table(rows[rows["sampler"].isin(given.samplers)], given.samplers))


if __name__ == "__main__":
    main()
