"""Kernel searches by the name of a method, their options on the command line, and inputs as search spaces."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd
from ConfigSpace import Categorical, ConfigurationSpace, Float

from benchmarks.search.fixed_length import FixedLength
from benchmarks.search.printed import printed
from slayr_py.search import STRATEGIES, KernelSearch, SearchResult

FIXED_LENGTHS = {f"fixed-{length}": FixedLength(length) for length in (2, 4, 8)}
STRATEGIES.update(printed=printed, **FIXED_LENGTHS)

SINGLE = ("SE", "MAT52", "SE-starts")
SEARCHES = ("greedy", "random", "model", "generative", "printed", *FIXED_LENGTHS)
METHODS = (*SINGLE, *SEARCHES)
"""A single kernel on all inputs (``SE-starts`` has as many starts as a search has fits); a search by its strategy;
``printed`` and ``fixed-L`` are the strategies of
`benchmarks.search.printed` and `benchmarks.search.fixed_length`."""


def add_search_arguments(parser: argparse.ArgumentParser, budget: int, base: tuple[str, ...], single: bool) -> None:
    """Add the options of a search with the given defaults."""
    parser.add_argument("--budget", type=int, default=budget, help="fits of a search (default: %(default)s)")
    parser.add_argument("--base", nargs="+", default=list(base), help="base kernels (default: %(default)s)")
    parser.add_argument(
        "--single",
        action=argparse.BooleanOptionalAction,
        default=single,
        help="base kernels on single inputs as well (default: %(default)s)",
    )
    parser.add_argument("--score", default="laplace", help="score to maximise (default: %(default)s)")
    parser.add_argument("--restarts", type=int, default=3, help="starts of each fit (default: %(default)s)")
    parser.add_argument("--max-leaves", type=int, default=10, help="largest expression (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="processes of a search (default: %(default)s)")


def search_options(options: argparse.Namespace) -> dict[str, Any]:
    names = ("budget", "base", "single", "score", "restarts", "max_leaves", "jobs")
    return {name: getattr(options, name) for name in names}


def kernel_search(space: Any, method: str, seed: int, **options: Any) -> KernelSearch:
    """Return the search of a method; ``options`` are those of `KernelSearch`."""
    settings = {**options, "seed": seed}
    if method in SINGLE:
        restarts = options["budget"] if method == "SE-starts" else options["restarts"]
        settings |= {"base": [method.partition("-")[0]], "budget": 1, "single": False, "restarts": restarts}
    else:
        settings["strategy"] = method
    return KernelSearch(space, **settings)


def fit_expression(space: Any, expression: str, configs: Any, y: np.ndarray, restarts: int, seed: int) -> SearchResult:
    """Fit one expression; the result also has a fit of the squared exponential kernel."""
    search = KernelSearch(space, ["SE"], budget=2, restarts=restarts, seed=seed, single=False, jobs=1, max_leaves=64)
    return search.run(configs, y, progress=False, first=[expression])


def fits_until_best(found: SearchResult) -> int:
    """Return the number of fits when the best expression was found."""
    table = found.table
    return int(table.loc[table["expression"] == found.best.expression, "fit"].iloc[0])


def unit_inputs(inputs: pd.DataFrame) -> tuple[ConfigurationSpace, pd.DataFrame]:
    """Return a search space of the inputs, and the inputs with every column of numbers rescaled to [0, 1]."""
    space = ConfigurationSpace()
    scaled = inputs.copy()
    for name in inputs:
        values = inputs[name]
        if pd.api.types.is_numeric_dtype(values):
            space.add(Float(str(name), (0.0, 1.0)))
            scaled[name] = (values - values.min()) / np.ptp(values)
        else:
            space.add(Categorical(str(name), sorted(values.unique())))
    return space, scaled
