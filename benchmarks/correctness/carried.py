"""Compare carried posteriors with long runs of NUTS, and count the steps of the ladder in loops.

    python -m benchmarks.correctness.carried --seeds 3 --budget 100
    python -m benchmarks.correctness.carried --problems jenatton --seeds 1 --budget 51

Loops on Hartmann6 and Func2C, or other problems, with all defaults. The table has, for the suggestions with more than
15 observations, the shares by method, the largest Pareto k and the smallest effective number of draws of accepted
carried posteriors, and the differences of audits. At five sizes the carried posterior is compared with a run of 4
chains of 1000 + 2000: the largest and the root mean square difference of the means of the coordinates, and that of
their 10% and 90% quantiles, in posterior standard deviations, the median ratio of the standard deviations, and the
root mean square difference of predicted means at 64 configurations in predicted standard deviations. ``--cold`` fits
Sobol designs of 25 and 50 points from nothing, and counts the fits that pass their check.
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
from slayr_py.inference import Posterior
from slayr_py.study import StanGPSampler, posterior_of, suggestion_table
from slayr_py.study.storage.attributes import suggestion_record
from slayr_py.study.storage.suggesting import suggest_all

FIRST = 16  # observations from which suggestions count
REFERENCES = (15, 30, 50, 75, 95)  # observations at which carried posteriors are compared with long runs


def coordinates(posterior: Posterior) -> np.ndarray:
    """Return the draws of all coordinates, (s, P)."""
    parts = posterior.parts[0].contents.coordinates.values()
    return np.concatenate([v.reshape(v.shape[0] * v.shape[1], -1) for v in parts], axis=1)


def compare(posterior: Posterior, reference: Posterior) -> dict[str, float]:
    """Return the differences between the draws and the predictions of two fits."""
    here = coordinates(posterior)
    there = coordinates(reference)
    sd = there.std(axis=0)
    means = (here.mean(axis=0) - there.mean(axis=0)) / sd
    quantiles = (np.quantile(here, (0.1, 0.9), axis=0) - np.quantile(there, (0.1, 0.9), axis=0)) / sd
    configs = posterior.parts[0].model.encoder.sobol(64, 1)
    predicted = [each.predict(configs) for each in (posterior, reference)]
    apart = (predicted[0].mean - predicted[1].mean) / predicted[1].sd
    return {
        "largest": float(np.abs(means).max()),
        "means": rms(means),
        "quantiles": rms(quantiles),
        "sd": float(np.median(here.std(axis=0) / sd)),
        "predictions": rms(apart),
    }


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def loop(problem: str, seed: int, budget: int) -> tuple[pd.DataFrame, list[dict[str, float]]]:
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
        apart.append(compare(posterior, reference))
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
                "references": str([{k: round(v, 2) for k, v in each.items()} for _, apart in loops for each in apart]),
            }
        )
    print(pd.DataFrame(rows).round(3).T.to_string())


if __name__ == "__main__":
    main()
