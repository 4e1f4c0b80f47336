"""Seconds a suggestion takes within a loop: the fit and the search together, against Optuna's GP sampler and BoTorch.

    python benchmarks/suggestion_time.py --sizes 25 50 100
    python benchmarks/suggestion_time.py --sizes 100 --botorch

Hartmann6, Sobol designs, one core, wall-clock time. Ours begin where the fit to one observation less ended, with the
defaults of the loop: full NUTS posteriors, or Pathfinder drafts that give way to NUTS where their importance ratios are
bad. Optuna's GP sampler fits a point estimate; BoTorch's fully Bayesian model is fitted with its own defaults, and
qLogNoisyExpectedImprovement maximised as in its tutorials. All take turns; ratios are of medians. ``kept`` is the share
of fits that were neither given up for a cold one nor for another method. Optuna's sampler needs ``pip install torch``,
BoTorch's ``pip install botorch pyro-ppl``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import optuna
import pandas as pd
from peers import hartmann6, one_core
from problems import PROBLEMS

import slayr_py as sl
from slayr_py.acquisition import suggest
from slayr_py.study import StanGPSampler, space_to_distributions


class Ours:
    """The sampler's own fit and search, from a start that the fit to one observation less has left."""

    def __init__(self, method: str) -> None:
        self.sampler = StanGPSampler(PROBLEMS["hartmann6"][0], method=method)
        self.sampler.prepare()
        self.options = self.sampler.fit_options

    def __call__(self, n: int, seed: int) -> dict[str, Any]:
        gp, (configs, y) = self.sampler.gp, hartmann6(n)
        before = gp.fit(configs[:-1], y[:-1], seed=seed, **self.options | {"method": "nuts"})
        start = before.warm_start()
        begun = time.perf_counter()
        posterior = gp.fit(configs, y, seed=seed, start=start, **self.options)
        fitted = time.perf_counter()
        found = suggest(posterior, "ei", best=float(y.min()), t=1, rng=np.random.default_rng(seed), exclude=configs)
        ended = time.perf_counter()
        arguments = posterior.record["arguments"]
        return {
            "seconds": ended - begun,
            "fit": fitted - begun,
            "search": ended - fitted,
            "kept": arguments["method"] == self.options["method"] and arguments.get("start") != "cold",
            "error": found.error,
        }


def optunas(n: int, seed: int) -> dict[str, Any]:
    """Optuna's GP sampler."""
    configs, y = hartmann6(n)
    distributions = space_to_distributions(PROBLEMS["hartmann6"][0])
    study = optuna.create_study(sampler=optuna.samplers.GPSampler(seed=seed, n_startup_trials=1))
    for config, value in zip(configs, y, strict=True):
        study.add_trial(optuna.trial.create_trial(params=dict(config), distributions=distributions, value=value))
    begun = time.perf_counter()
    study.ask(distributions)
    return {"seconds": time.perf_counter() - begun}


def botorchs(n: int, seed: int) -> dict[str, Any]:
    """BoTorch's fully Bayesian model and log noisy EI."""
    import torch
    from botorch.acquisition import qLogNoisyExpectedImprovement
    from botorch.fit import fit_fully_bayesian_model_nuts
    from botorch.models.fully_bayesian import SaasFullyBayesianSingleTaskGP
    from botorch.models.transforms import Standardize
    from botorch.optim import optimize_acqf

    torch.manual_seed(seed)
    configs, y = hartmann6(n)
    x = torch.tensor(sl.space.Encoder(PROBLEMS["hartmann6"][0]).encode(configs).columns)
    begun = time.perf_counter()
    model = SaasFullyBayesianSingleTaskGP(x, -torch.tensor(y)[:, None], outcome_transform=Standardize(1))
    fit_fully_bayesian_model_nuts(model, disable_progbar=True)
    fitted = time.perf_counter()
    acquisition = qLogNoisyExpectedImprovement(model, X_baseline=x, prune_baseline=True)
    bounds = torch.stack([torch.zeros(6), torch.ones(6)]).double()
    optimize_acqf(acquisition, bounds, q=1, num_restarts=10, raw_samples=512)
    ended = time.perf_counter()
    return {"seconds": ended - begun, "fit": fitted - begun, "search": ended - fitted}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=[25, 50, 100])
    parser.add_argument("--botorch", action="store_true", help="also BoTorch, once: minutes a suggestion")
    arguments = parser.parse_args()
    one_core()
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    ways = {"slayr, NUTS": Ours("nuts"), "slayr, Pathfinder": Ours("pathfinder"), "Optuna GP": optunas}
    optunas(10, 99)  # imports and first calls are not what is measured
    rows = []
    for n in arguments.sizes:
        for seed in range(arguments.repeats):
            rows += [{"n": n, "way": name, **way(n, seed)} for name, way in ways.items()]
        if arguments.botorch:
            rows.append({"n": n, "way": "BoTorch", **botorchs(n, 0)})
    groups = pd.DataFrame(rows).groupby(["n", "way"], sort=False)
    table = groups["seconds"].agg(["median", "min", "max"])
    table[["fit", "search", "error"]] = groups[["fit", "search", "error"]].median()
    table["kept"] = groups["kept"].agg(lambda kept: kept.mean() if kept.notna().any() else np.nan)
    for n in arguments.sizes:
        table.loc[n, "to Optuna"] = (table.loc[n, "median"] / table.loc[(n, "Optuna GP"), "median"]).to_numpy()
    print(table.astype(float).round(2).to_string())


if __name__ == "__main__":
    main()
