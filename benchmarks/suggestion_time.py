"""Seconds a suggestion takes at n = 25, 50, 100: the fit, the acquisition, and Optuna's GP sampler in the same run.

    python benchmarks/suggestion_time.py --repeats 3

Hartmann6, Sobol designs; medians over repeats, in turn. Optuna's GP sampler needs ``pip install torch``.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import optuna
import pandas as pd
from problems import PROBLEMS

import slayr_py as sl
from slayr_py.acquisition import suggest
from slayr_py.space import Encoder
from slayr_py.study import space_to_distributions

LOOP = {"chains": 4, "warmup": 300, "draws": 250}  # what the study's sampler uses by default


def ours(gp: sl.GaussianProcess, configs: list, y: np.ndarray, seed: int) -> dict[str, float]:
    start = time.perf_counter()
    posterior = gp.fit(configs, y, seed=seed, **LOOP)
    fitted = time.perf_counter()
    suggest(posterior, "ei", best=float(y.min()), t=1, rng=np.random.default_rng(seed), exclude=configs)
    return {"fit": fitted - start, "acquisition": time.perf_counter() - fitted}


def optunas(configs: list, y: np.ndarray, seed: int) -> float:
    distributions = space_to_distributions(PROBLEMS["hartmann6"][0])
    study = optuna.create_study(sampler=optuna.samplers.GPSampler(seed=seed, n_startup_trials=1))
    for config, value in zip(configs, y, strict=True):
        study.add_trial(optuna.trial.create_trial(params=dict(config), distributions=distributions, value=value))
    start = time.perf_counter()
    study.ask(distributions)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=[25, 50, 100])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space, objective, _ = PROBLEMS["hartmann6"]
    gp = sl.GaussianProcess(space)
    gp.prepare()
    rows = []
    for n in arguments.sizes:
        configs = Encoder(space).sobol(n, 0)
        y = np.array([objective(config) for config in configs])
        optunas(configs, y, 99)  # imports and first calls are not what is measured
        for seed in range(arguments.repeats):
            rows.append({"n": n, **ours(gp, configs, y, seed), "optuna-gp": optunas(configs, y, seed)})
    table = pd.DataFrame(rows).groupby("n").median()
    table["ratio"] = (table["fit"] + table["acquisition"]) / table["optuna-gp"]
    print(table.round(2).to_string())


if __name__ == "__main__":
    main()
