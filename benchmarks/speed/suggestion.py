"""Compare the time per suggestion (fit and search) with Optuna's GP sampler and BoTorch.

    python -m benchmarks.speed.suggestion --sizes 25 50 100
    python -m benchmarks.speed.suggestion --sizes 50 100 --repeats 3 --botorch

Hartmann6, Sobol designs, one core, processor time with that of child processes, which other work on the machine hardly
changes. slayr_py starts from the fit to n - 1 observations with the defaults of the optimisation loop: it carries the
posterior, or runs NUTS from a warm start. Optuna's GP sampler fits a point estimate. BoTorch fits its fully Bayesian
model with its defaults (SAAS prior, one NUTS chain of 512 + 256, thinned to 16 draws) and maximises
qLogNoisyExpectedImprovement as in its tutorials. Since version 0.18 it samples with NumPyro, which compiles the model
at the first suggestion for an n; in a loop n grows, so every suggestion is a first one. All take turns; ``first`` is
the time of the first suggestion for n, ``wall`` the median of the wall-clock time, and ratios are of medians. ``kept``
is the share of fits that were not replaced by a cold fit or by another method, ``ok`` that of fits that passed their
check. Optuna's sampler needs ``pip install torch``, BoTorch ``pip install botorch numpyro``.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optuna
import pandas as pd

import slayr_py as sl
from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.peers import cpu_seconds, fit_saas, hartmann6, one_core
from benchmarks.common.problems import PROBLEMS
from slayr_py.acquisition import suggest
from slayr_py.study import StanGPSampler, space_to_distributions


class Clocks:
    """Processor seconds and wall-clock time since the start, and up to the end of the fit."""

    def __init__(self) -> None:
        self.cpu = cpu_seconds()
        self.wall = time.perf_counter()
        self.fitted: float | None = None

    def fit_ends(self) -> None:
        self.fitted = cpu_seconds()

    def times(self) -> dict[str, float]:
        now = cpu_seconds()
        wall = time.perf_counter() - self.wall
        parts = {} if self.fitted is None else {"fit": self.fitted - self.cpu, "search": now - self.fitted}
        return {"seconds": now - self.cpu, "wall": wall, **parts}


class Slayr:
    """Fit and search of the slayr_py sampler, warm-started from the fit to n - 1 observations."""

    def __init__(self, method: str) -> None:
        self.sampler = StanGPSampler(PROBLEMS["hartmann6"][0], method=method)
        self.sampler.strategy.prepare()
        self.options = self.sampler.options.fit

    def __call__(self, n: int, seed: int) -> dict[str, Any]:
        gp = self.sampler.strategy.surrogate.gp
        (configs, y) = hartmann6(n)
        before = gp.fit(configs[:-1], y[:-1], seed=seed, options=self.options.updated(method="nuts"))
        start = before.warm_start()
        clocks = Clocks()
        posterior = gp.fit(configs, y, seed=seed, start=start, options=self.options)
        clocks.fit_ends()
        found = suggest(posterior, "ei", best=float(y.min()), t=1, rng=np.random.default_rng(seed), exclude=configs)
        times = clocks.times()
        arguments = posterior.record["arguments"]
        return {
            **times,
            "kept": arguments["method"] == self.options.method and arguments.get("start") != "cold",
            "ok": posterior.check().ok,
            "error": found.error,
        }


def optuna_gp(n: int, seed: int) -> dict[str, Any]:
    """Time one suggestion of Optuna's GP sampler."""
    configs, y = hartmann6(n)
    distributions = space_to_distributions(PROBLEMS["hartmann6"][0])
    study = optuna.create_study(sampler=optuna.samplers.GPSampler(seed=seed, n_startup_trials=1))
    for config, value in zip(configs, y, strict=True):
        study.add_trial(optuna.trial.create_trial(params=dict(config), distributions=distributions, value=value))
    clocks = Clocks()
    study.ask(distributions)
    return clocks.times()


def botorch(n: int, seed: int) -> dict[str, Any]:
    """Time one suggestion of BoTorch's fully Bayesian model with log noisy EI."""
    import torch
    from botorch.acquisition import qLogNoisyExpectedImprovement
    from botorch.optim import optimize_acqf

    torch.manual_seed(seed)
    configs, y = hartmann6(n)
    x = torch.tensor(sl.space.Encoder(PROBLEMS["hartmann6"][0]).encode(configs).columns)
    clocks = Clocks()
    model = fit_saas(x, -torch.tensor(y)[:, None], seed)
    clocks.fit_ends()
    acquisition = qLogNoisyExpectedImprovement(model, X_baseline=x, prune_baseline=True)
    bounds = torch.stack([torch.zeros(6), torch.ones(6)]).double()
    optimize_acqf(acquisition, bounds, q=1, num_restarts=10, raw_samples=512)
    return clocks.times()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--repeats", type=int, default=5, help="suggestions per sampler and n")
    parser.add_argument("--sizes", type=int, nargs="+", default=[25, 50, 100], help="values of n")
    parser.add_argument(
        "--botorch", action="store_true", help="also BoTorch's fully Bayesian model, about half a minute per suggestion"
    )
    options = begin(parser, arguments)
    one_core()
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    peers: dict[str, Callable[[int, int], dict[str, Any]]] = {"Optuna GP": optuna_gp}
    if options.botorch:
        peers["BoTorch"] = botorch
    for peer in peers.values():
        peer(10, 99)  # imports and first calls are not measured
    samplers = {"slayr, carried": Slayr("carried"), "slayr, NUTS": Slayr("nuts"), **peers}
    rows = []
    for n in options.sizes:
        for seed in range(options.repeats):
            rows += [{"n": n, "sampler": name, **suggestion(n, seed)} for name, suggestion in samplers.items()]
    groups = pd.DataFrame(rows).groupby(["n", "sampler"], sort=False)
    table = groups["seconds"].agg(["median", "min", "max", "first"])
    table[["fit", "search", "wall", "error"]] = groups[["fit", "search", "wall", "error"]].median()
    for share in ("kept", "ok"):
        table[share] = groups[share].agg(lambda values: values.mean() if values.notna().any() else np.nan)
    for n in options.sizes:
        table.loc[n, "to Optuna"] = (table.loc[n, "median"] / table.loc[(n, "Optuna GP"), "median"]).to_numpy()
    print(table.astype(float).round(2).to_string())


if __name__ == "__main__":
    main()
