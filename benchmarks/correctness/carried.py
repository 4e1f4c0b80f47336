"""Compare carried posteriors with long runs of NUTS, and count the steps of the ladder in loops.

    python -m benchmarks.correctness.carried --seeds 3 --budget 100

Loops on Hartmann6 and Func2C with all defaults. The table has, for the suggestions with more than 15 observations, the
shares by method, the largest Pareto k and the smallest effective number of draws of accepted carried posteriors, and
the differences of audits. At five sizes the carried posterior is compared with a run of 4 chains of 1000 + 2000: the
largest difference of a mean of a coordinate in posterior standard deviations. ``--cold`` fits Sobol designs of 25 and
50 points from nothing, and counts the fits that pass their check.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence

import numpy as np
import optuna
import pandas as pd

from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.problems import PROBLEMS
from slayr_py.study import StanGPSampler, posterior_of, suggestion_table
from slayr_py.study.model.loop_fits import largest_difference
from slayr_py.study.storage.attributes import suggestion_record
from slayr_py.study.storage.suggesting import suggest_all

FIRST = 16  # observations from which suggestions count
REFERENCES = (15, 30, 50, 75, 95)  # observations at which carried posteriors are compared with long runs


def loop(problem: str, seed: int, budget: int) -> tuple[pd.DataFrame, list[float]]:
    """Run one loop; return its table of suggestions and the differences from long runs."""
    space, objective, *_ = PROBLEMS[problem]
    study = optuna.create_study(sampler=StanGPSampler(space, seed=seed))
    for _ in range(budget):
        trial = study.ask()
        study.tell(trial, float(objective(suggest_all(trial, space))))
    table = suggestion_table(study)
    table["why"] = [str(suggestion_record(trial).get("fit", {}).get("abandoned")) for trial in study.trials]
    apart = []
    for row in table[(table["method"] == "carried") & table["observations"].isin(REFERENCES)].itertuples():
        posterior = posterior_of(study, row.number)
        configs = [trial.params for trial in study.trials[: row.number]]
        y = [trial.value for trial in study.trials[: row.number]]
        reference = study.sampler.strategy.surrogate.gp.fit(
            configs, y, warmup=1000, draws=2000, seed=1000, pointwise=False
        )
        apart.append(largest_difference(posterior, reference)[0])
    return table, apart


def cold_fits(problem: str, seeds: int) -> str:
    """Return how many cold fits with the loop's options pass their check."""
    space, objective, *_ = PROBLEMS[problem]
    passed = []
    for seed in range(seeds):
        sampler = StanGPSampler(space, seed=seed)
        for n in (25, 50):
            configs = sampler.strategy.encoder.sobol(n, seed)
            y = [objective(config) for config in configs]
            passed.append(
                sampler.strategy.surrogate.gp.fit(configs, y, seed=seed, options=sampler.options.fit).check().ok
            )
    return f"{problem}: {sum(passed)} of {len(passed)} cold fits pass their check"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--problems", nargs="+", default=["hartmann6", "func2c"])
    parser.add_argument("--seeds", type=int, default=3, help="loops per problem")
    parser.add_argument("--budget", type=int, default=100, help="evaluations per loop")
    parser.add_argument("--cold", type=int, default=0, help="number of designs for cold fits")
    options = begin(parser, arguments)
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    rows = []
    for problem in options.problems:
        if options.cold:
            print(cold_fits(problem, options.cold), flush=True)
        loops = [loop(problem, seed, options.budget) for seed in range(options.seeds)]
        table = pd.concat([each for each, _ in loops])
        table = table[table["observations"] >= FIRST]
        carried = table[table["method"] == "carried"]
        audits = [float(found) for why in table["why"] for found in re.findall(r"differs by ([\d.]+)", why)]
        failed = (table["method"] == "nuts").to_numpy() & ~table["why"].str.contains("audit").to_numpy()
        rows.append(
            {
                "problem": problem,
                "suggestions": len(table),
                "carried": len(carried) / len(table),
                "NUTS, not carried": failed.mean(),
                "check passed": table["ok"].eq(True).mean(),
                "largest k": carried["pareto_k"].max(),
                "smallest ESS": carried["ess_bulk_min"].min(),
                "audits, median": np.median(audits),
                "audits, largest": np.max(audits),
                "references": str([round(value, 2) for _, apart in loops for value in apart]),
            }
        )
    print(pd.DataFrame(rows).round(3).T.to_string())


if __name__ == "__main__":
    main()
