"""Measure the time of kernel searches, and of sparse fits.

    python -m benchmarks.search.speed
    python -m benchmarks.search.speed --strategies greedy --budget 20 --data DIR

A search with each strategy on the same observations: LIN * PER + SE with hyperparameters from the priors and noise of
standard deviation 0.1, one input. "Fits" is the sum of the times of all fits, in the processes that made them; "rest"
is the time of the strategy in the main process. Then fits of 45,730 rows with 100 inducing points, of the protein
data with --data, else of Friedman's function with as many rows and nine inputs: a mode for the search, and
`GaussianProcess(inducing=100)` with draws of the hyperparameters and predictions.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import make_friedman1

import slayr_py as sl
from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.results import markdown
from benchmarks.search.kernel_searches import SEARCHES, fit_expression, kernel_search, unit_inputs
from benchmarks.search.recovery import Problem
from benchmarks.search.regression import load

TRUTH = "LIN * PER + SE"
SPARSE = ("SE", "SE + RQ")
INDUCING = 100


def time_search(strategy: str, n: int, budget: int, jobs: int) -> list[str]:
    """Return a row of the first table."""
    data = Problem(TRUTH, 1, "sd 0.1", 0).data(n)
    options = {"budget": budget, "base": ["SE", "RQ", "PER", "LIN"], "restarts": 3, "jobs": jobs}
    started = time.perf_counter()
    found = kernel_search(data.encoder, strategy, 1, **options).run(data.x, data.y, progress=False)
    seconds = time.perf_counter() - started
    table = found.unique
    rest = seconds - table["seconds"].sum() / jobs
    cells = [strategy, str(len(table)), f"{seconds:.1f}", f"{table['seconds'].sum():.1f}", f"{rest:.1f}"]
    return [*cells, f"{table['seconds'].median():.2f}", f"{table['leaves'].mean():.1f}", found.best.expression]


def time_sparse(expression: str, inputs: pd.DataFrame, y: np.ndarray) -> list[str]:
    """Return a row of the second table."""
    space, scaled = unit_inputs(inputs)
    started = time.perf_counter()
    fit_expression(space, expression, scaled, y, restarts=3, seed=1)
    mode = time.perf_counter()
    posterior = sl.GaussianProcess(space, expression, inducing=INDUCING).fit(scaled, y)
    fitted = time.perf_counter()
    posterior.predict(scaled)
    seconds = [mode - started, fitted - mode, time.perf_counter() - fitted]
    return [expression, str(len(y)), *(f"{s:.1f}" for s in seconds)]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--strategies", nargs="+", choices=SEARCHES, default=list(SEARCHES))
    parser.add_argument("--size", type=int, default=200, help="observations of a search (default: %(default)s)")
    parser.add_argument("--budget", type=int, default=100, help="fits of a search (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="processes of a search (default: %(default)s)")
    parser.add_argument("--data", type=Path, help="folder of the protein data")
    parser.add_argument("--sparse-size", type=int, default=45730, help="rows of a sparse fit (default: %(default)s)")
    options = begin(parser, arguments)
    searches = [time_search(strategy, options.size, options.budget, options.jobs) for strategy in options.strategies]
    print(markdown(["strategy", "fits", "seconds", "fits, s", "rest, s", "median fit", "leaves", "best"], searches))
    if options.data is not None:
        inputs, y = load("protein", options.data)
    else:
        points, y = make_friedman1(options.sparse_size, 9, noise=1.0, random_state=0)
        inputs = pd.DataFrame(points, columns=[f"x{i + 1}" for i in range(9)])
    rows = slice(options.sparse_size)
    fits = [time_sparse(expression, inputs.iloc[rows], y[rows]) for expression in SPARSE]
    heads = ["expression", "n", "modes of it and of SE, s", "draws, s", "predictions at n, s"]
    print("\n" + markdown(heads, fits))


if __name__ == "__main__":
    main()
