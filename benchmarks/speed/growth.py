"""Measure how time and memory of fits and suggestions grow with observations, dimensions, levels and draws.

    python -m benchmarks.speed.growth               # about half an hour on one core; n up to 2000
    python -m benchmarks.speed.growth --report      # only draw the figure and print the exponents

The target is a sum of sines on the unit cube; everything runs on one core. Measured are one gradient inside the Stan
program, a cold and a warm fit with the settings of the optimisation loop, the search for the best configuration, and
the peak memory of the processes. Rows are appended to ``results/growth.csv``; stored rows are not measured again. The
figure is ``docs/images/growth.png``. An exponent is the slope between the last two sizes on log scales.
"""

from __future__ import annotations

import resource
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from ConfigSpace import Categorical, ConfigurationSpace, Float

import slayr_py as sl
from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.peers import one_core
from benchmarks.speed.gradient import gradient
from slayr_py.acquisition import suggest
from slayr_py.inference.sampling.programs import compiled

STORED = Path(__file__).parent / "results" / "growth.csv"
FIGURE = Path(__file__).resolve().parents[2] / "docs" / "images" / "growth.png"
BASE = {"n": 100, "dimensions": 6, "levels": 0, "draws": 200}
SWEEPS = {
    "n": [25, 50, 100, 200, 400, 800, 1400, 2000],
    "dimensions": [1, 2, 5, 10, 20, 50],
    "levels": [2, 5, 10, 20, 50],
    "draws": [50, 100, 200, 400, 800, 1600],
}
NAMES = {
    "gradient": "one gradient [ms]",
    "fit": "first fit [s]",
    "warm fit": "warm fit [s]",
    "search": "search [s]",
    "memory": "memory [MB]",
}
_LARGEST_FIT = 400  # above this n only the gradient and the search from a point estimate are measured


def problem(n: int, dimensions: int, levels: int) -> tuple[sl.GaussianProcess, list, np.ndarray]:
    """Return a model and n observations; if ``levels`` is not 0, add three categorical parameters."""
    rng = np.random.default_rng(0)
    space = ConfigurationSpace()
    space.add(*(Float(f"x{i}", (0.0, 1.0)) for i in range(dimensions)))
    if levels:
        space.add(*(Categorical(f"c{i}", range(levels)) for i in range(3)))
    gp = sl.GaussianProcess(space)
    configs = gp.encoder.sobol(n, 0)
    phases = rng.random(dimensions)
    sizes = 1 / (1 + np.arange(dimensions))
    y = [
        float(sum(s * np.sin(5 * c[f"x{i}"] + p) for i, (s, p) in enumerate(zip(sizes, phases, strict=True))))
        + (sum(c[f"c{i}"] / levels for i in range(3)) if levels else 0.0)
        for c in configs
    ]
    return gp, configs, np.array(y)


def measure(n: int, dimensions: int, levels: int, draws: int) -> dict[str, float]:
    """Return the time of each step and the peak memory of this process or of its largest child."""
    warnings.simplefilter("ignore")
    gp, configs, y = problem(n, dimensions, levels)
    train = gp.encoder.encode(configs)
    exe = compiled(gp.kernel.program, likelihood="accelerated").exe
    row = {"gradient": 1e3 * gradient(exe, gp.model.stan_data(train, y - y.mean(), train[:0]))}
    options = {"chains": 4, "warmup": 300, "draws": draws // 4}
    if n <= _LARGEST_FIT:
        started = time.perf_counter()
        first = gp.fit(configs[:-1], y[:-1], seed=1, **options)
        row["fit"] = time.perf_counter() - started
        started = time.perf_counter()
        posterior = gp.fit(configs, y, seed=1, start=first.warm_start(), **options | {"ess": 1})
        row["warm fit"] = time.perf_counter() - started
    else:
        posterior = gp.fit(configs, y, method="map", seed=1)
    started = time.perf_counter()
    suggest(posterior, best=float(y.min()), t=1, rng=np.random.default_rng(0), exclude=configs)
    row["search"] = time.perf_counter() - started
    usages = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return row | {"memory": max(usages) / 1024}


def table() -> pd.DataFrame:
    return pd.read_csv(STORED) if STORED.exists() else pd.DataFrame(columns=["sweep", "size", *NAMES])


def run() -> None:
    for levels in (0, 2):
        problem(2, 2, levels)[0].prepare()  # not in the measured processes, since compilers need more memory
    for sweep, sizes in SWEEPS.items():
        for size in sizes:
            done = table()
            if ((done["sweep"] == sweep) & (done["size"] == size)).any():
                continue
            # A new process per row, since peak memory is a property of the process.
            with ProcessPoolExecutor(1, get_context("spawn"), one_core) as pool:
                row = pool.submit(measure, **BASE | {sweep: size}).result()
            print(sweep, size, {name: round(value, 3) for name, value in row.items()}, flush=True)
            pd.DataFrame([{"sweep": sweep, "size": size, **row}], columns=["sweep", "size", *NAMES]).to_csv(
                STORED, mode="a", header=not STORED.exists(), index=False, float_format="%.4g"
            )


def report() -> None:
    rows = table()
    figure, axes = plt.subplots(2, len(SWEEPS), figsize=(13, 6), sharex="col")
    exponents = {}
    for sweep, (above, below) in zip(SWEEPS, axes.T, strict=True):
        part = rows[rows["sweep"] == sweep].sort_values("size")
        for name, label in NAMES.items():
            axis = below if name == "memory" else above
            seen = part[part[name].notna()]
            axis.loglog(seen["size"], seen[name], "o-", label=label, markersize=3)
            if len(seen) > 1:
                steps = np.diff(np.log(seen[name])) / np.diff(np.log(seen["size"].astype(float)))
                exponents[name, sweep] = steps[-1]
        below.set_xlabel({"n": "observations", "levels": "levels of three categories"}.get(sweep, sweep))
    axes[0, 0].legend(fontsize=7)
    axes[0, 0].set_ylabel("time")
    axes[1, 0].set_ylabel("largest process [MB]")
    figure.tight_layout()
    figure.savefig(FIGURE, dpi=110)
    print("exponents at the largest sizes")
    print(pd.Series(exponents).unstack().reindex(index=NAMES, columns=SWEEPS).round(2).to_string())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--report", action="store_true", help="measure nothing; use the stored rows")
    if not begin(parser, arguments).report:
        run()
    report()


if __name__ == "__main__":
    main()
