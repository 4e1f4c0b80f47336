"""Kernel search on the regression data of Duvenaud et al. (2013), with the protocol of their public program.

    python -m benchmarks.search.cks --data DIR --datasets housing servo

Inputs and targets are standardised on all rows; the rows are shuffled once and divided into ten contiguous folds, of
which the last one is larger. Errors are the mean squared error of the standardised targets (MSE) and the mean
negative log density of a standardised target (NLL) on the test fold, averaged over folds. Servo's nominal inputs,
motor and screw, are coded as integers or, with --coding categories, as categories, which kernels read as one-hot
columns.

The order of the rows is that of MATLAB's randperm before 2011 with its default seed, which the authors' script asks
for. The published numbers are from their paper: a squared exponential kernel with a length-scale for each input, an
additive kernel, and their search to depth 10 with SE and RQ on single inputs.

"best" is the best kernel of a search at its mode; "draws" and "nuts" (with --nuts) average over its hyperparameters
by importance sampling and by NUTS; "stacked" and "averaged" are the modes of the five best kernels, weighted by
stacking of leave-one-out densities in closed form and by exp(laplace). Every finished search is appended to cks.csv;
run the same command again to resume. --report only prints the table.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.results import ResultFile, add_result_arguments, markdown, mean_cell
from benchmarks.search.fitted_kernels import predictions
from benchmarks.search.kernel_searches import (
    METHODS,
    add_search_arguments,
    fits_until_best,
    kernel_search,
    search_options,
    unit_inputs,
)

FOLDS = 10
PAPER = {
    "housing": {"SE-ARD": (0.092, 0.207), "additive": (0.102, 0.194), "search": (0.082, 0.059)},
    "servo": {"SE-ARD": (0.126, 0.429), "additive": (0.110, 0.309), "search": (0.102, 0.265)},
}
"""Mean squared errors and negative log densities of Duvenaud et al. (2013), table 3."""

KEYS = ["data", "coding", "shuffle", "fold", "method", "budget", "base", "score", "restarts", "max_leaves"]
COLUMNS = [*KEYS, "use", "n_train", "mse", "nll", "best", "fits_to_best", "seconds", "expression"]


class Table(NamedTuple):
    """Inputs (n rows) and standardised targets (n,), in the order of the folds."""

    inputs: pd.DataFrame
    y: np.ndarray


def load(name: str, data: Path, coding: str, shuffle: int = 0) -> Table:
    """Return a data set, its rows shuffled as in the paper, or by a seed above 0."""
    rows = pd.read_csv(data / {"housing": "boston_housing.csv", "servo": "servo.csv"}[name])
    n = len(rows)
    order = np.random.default_rng(shuffle).permutation(n) if shuffle else matlab_order(n)
    rows = rows.iloc[order].reset_index(drop=True)
    target = rows.columns[-1]
    inputs = rows.drop(columns=target)
    for column in inputs:
        if pd.api.types.is_numeric_dtype(inputs[column]):
            inputs[column] = inputs[column].astype(np.float64)
        elif coding == "integers":
            inputs[column] = pd.Categorical(inputs[column]).codes.astype(np.float64)
    y = rows[target].to_numpy(dtype=np.float64)
    return Table(inputs, (y - y.mean()) / y.std(ddof=1))


def matlab_order(n: int) -> np.ndarray:
    """Return MATLAB's old randperm(n) with its default seed, which sorts n uniform numbers of the same generator."""
    return np.argsort(np.random.RandomState(5489).random_sample(n), kind="stable")  # noqa: NPY002 (the paper's order)


def fold_rows(n: int, fold: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the training rows and the test rows of a fold."""
    rows = np.arange(n)
    size = n // FOLDS
    test = (rows >= fold * size) & ((rows < (fold + 1) * size) | (fold == FOLDS - 1))
    return rows[~test], rows[test]


def run(key: dict[str, Any], table: Table, settings: dict[str, Any], nuts: bool) -> list[dict[str, Any]]:
    """Return the rows of one search."""
    train, test = fold_rows(len(table.y), key["fold"])
    started = time.perf_counter()
    space, inputs = unit_inputs(table.inputs)
    search = kernel_search(space, key["method"], key["fold"] + 1, **settings)
    found = search.run(inputs.iloc[train], table.y[train], progress=False)
    row = key | {"n_train": len(train), "best": found.unique[settings["score"]].iloc[0]}
    row |= {"fits_to_best": fits_until_best(found), "seconds": round(time.perf_counter() - started, 1)}
    row["expression"] = found.best.expression
    rows = []
    for use, predictive in predictions(found, inputs.iloc[test], nuts=nuts).items():
        scores = predictive.scores(table.y[test])
        rows.append(row | {"use": use, "mse": scores["rmse"] ** 2, "nll": -scores["log_density"]})
    return rows


def report(rows: pd.DataFrame) -> str:
    """Return a Markdown table of means and standard errors over folds, also of differences to SE on the same folds."""
    heads = ["data", "method", "base, fits", "use", "folds", "MSE", "NLL", "MSE - SE", "NLL - SE", "leaves", "s"]
    lines = []
    for (data, coding), some in rows.groupby(["data", "coding"], sort=False):
        plain = some[some["method"] == "SE"].drop_duplicates(["shuffle", "fold"]).set_index(["shuffle", "fold"])
        for key, group in some.groupby([*KEYS[4:], "use"], sort=False):
            method, budget, base, score, restarts, most, use = key
            own = group.set_index(["shuffle", "fold"])
            measures = [own["mse"], own["nll"], *((own[name] - plain[name]).dropna() for name in ("mse", "nll"))]
            cells = [f"{data}, {coding}", f"{method}, {score}, {restarts} starts, {most} leaves"]
            cells += [f"{base}, {budget}", use, str(len(own))]
            cells += [mean_cell(m) for m in measures]
            cells += [f"{own['expression'].str.count('[+*]').mean() + 1:.1f}", f"{own['seconds'].mean():.0f}"]
            lines.append(cells)
        for method, (mse, nll) in PAPER[data].items():
            lines.append([data, f"paper: {method}", "", "", "10", f"{mse:.3f}", f"{nll:.3f}", "", "", "", ""])
    return markdown(heads, lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--datasets", nargs="+", choices=sorted(PAPER), default=["housing", "servo"])
    parser.add_argument("--coding", choices=["integers", "categories"], default="integers", help="of nominal inputs")
    parser.add_argument("--shuffles", nargs="+", type=int, default=[0], help="orders of the rows; 0 is the paper's")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=["SE", "greedy"])
    parser.add_argument("--folds", nargs="+", type=int, default=list(range(FOLDS)), help="folds, from 0")
    add_search_arguments(parser, budget=60, base=("SE", "RQ"), single=True)
    parser.add_argument("--nuts", action="store_true", help="also sample the hyperparameters of the best kernel")
    add_result_arguments(parser, __file__)
    options = begin(parser, arguments)
    file = ResultFile(options.output / "cks.csv", KEYS, COLUMNS)
    settings = search_options(options)
    base = " ".join(options.base) + (" single" if options.single else "")
    fixed = (options.budget, base, options.score, options.restarts, options.max_leaves)
    runs = product(options.datasets, [options.coding], options.shuffles, options.folds, options.methods)
    for values in [] if options.report else file.missing((*each, *fixed) for each in runs):
        key = dict(zip(KEYS, values, strict=True))
        table = load(key["data"], options.data, key["coding"], key["shuffle"])
        file.append(run(key, table, settings, options.nuts))
    rows = file.rows()
    print(report(rows[rows["data"].isin(options.datasets)]))


if __name__ == "__main__":
    main()
