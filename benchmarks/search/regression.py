"""Regression with kernels that were searched for on the training rows.

    python -m benchmarks.search.regression --datasets diabetes mauna --data DIR --splits 20
    python -m benchmarks.search.regression --datasets mauna-future --data DIR --splits 3
    python -m benchmarks.search.regression --datasets protein-part --data DIR --splits 20 --methods SE greedy random

diabetes      442 rows, 10 inputs, from scikit-learn
mauna         521 monthly means of carbon dioxide; test rows are random
mauna-future  the same; the test rows are the last 20%, and a split is a seed of the search
protein       45,730 rows without 1,711 duplicates, 9 inputs; fits have 100 inducing points
protein-part  the same; the search has exact fits to 500 random training rows, then its best kernel ("sparse") is fitted
              to all training rows with 100 inducing points; averages are left out

80% of the rows are for training, 10% for testing. The remaining 10%, on which Hoang & Kingsford (2020) choose, are
not used: the score chooses on the training rows. "best" is the best kernel of a search at its mode; "draws" and
"nuts" (with --nuts) average over its hyperparameters by importance sampling and by NUTS; "stacked" and "averaged" are
the modes of the five best kernels, weighted by stacking of leave-one-out densities in closed form and by
exp(laplace). Errors are in the units of the target.

Every finished search is appended to regression.csv; run the same command again to resume. --report only prints the
table.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

import slayr_py as sl
from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.results import ResultFile, add_result_arguments, markdown, mean_cell
from benchmarks.search.fitted_kernels import FittedKernel, predict_observations, predictions
from benchmarks.search.kernel_searches import (
    METHODS,
    add_search_arguments,
    fits_until_best,
    kernel_search,
    search_options,
    unit_inputs,
)

DATASETS = ("diabetes", "mauna", "mauna-future", "protein", "protein-part")
PART = 500
"""Training rows of protein-part that a search sees."""
INDUCING = 100
KEYS = ["data", "split", "method", "budget", "base", "score"]
COLUMNS = [*KEYS, "use", "n_train", "rmse", "log_density", "best", "fits", "fits_to_best", "seconds", "expression"]


class Table(NamedTuple):
    """Inputs (n rows) and targets (n,)."""

    inputs: pd.DataFrame
    y: np.ndarray


def load(name: str, data: Path | None) -> Table:
    """Return a data set; all but diabetes are read from the folder ``data``."""
    if name == "diabetes":
        bunch = load_diabetes(as_frame=True)
        return Table(bunch.data.astype(np.float64), bunch.target.to_numpy(dtype=np.float64))
    if data is None:
        raise SystemExit(f"{name} is read from a file; name its folder with --data")
    if name in ("protein", "protein-part"):
        rows = pd.read_csv(data / "protein_casp.csv").drop_duplicates(ignore_index=True).astype(np.float64)
        return Table(rows.drop(columns="RMSD"), rows["RMSD"].to_numpy())
    rows = pd.read_csv(data / "co2_mauna_loa_monthly_1958_2001_from_weekly.csv")
    inputs = rows[["decimal_year_midmonth"]].rename(columns={"decimal_year_midmonth": "year"})
    return Table(inputs, rows["co2_ppm_mean"].to_numpy(dtype=np.float64))


def split(name: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the training rows and the test rows."""
    if name == "mauna-future":
        rows = np.arange(n)
        return rows[: int(0.8 * n)], rows[int(0.8 * n) :]
    rows = np.random.default_rng(seed).permutation(n)
    return rows[: int(0.8 * n)], rows[int(0.9 * n) :]


def run(key: dict[str, Any], table: Table, settings: dict[str, Any], nuts: bool) -> list[dict[str, Any]]:
    """Return the rows of one search."""
    train, test = split(key["data"], len(table.y), key["split"])
    seen = train[:PART] if key["data"] == "protein-part" else train  # the split is a random order
    started = time.perf_counter()
    space, inputs = unit_inputs(table.inputs)
    search = kernel_search(space, key["method"], key["split"] + 1, **settings)
    found = search.run(inputs.iloc[seen], table.y[seen], progress=False)
    row = key | {"n_train": len(train), "fits": len(found.unique), "fits_to_best": fits_until_best(found)}
    row |= {"seconds": round(time.perf_counter() - started, 1), "expression": found.best.expression}
    row["best"] = found.unique[settings["score"]].iloc[0]
    if len(seen) == len(train):
        uses = predictions(found, inputs.iloc[test], nuts=nuts)
    else:
        uses = {"best": FittedKernel(found, found.best.expression).predict(inputs.iloc[test])}
        process = sl.GaussianProcess(space, found.best, inducing=INDUCING)
        posterior = process.fit(inputs.iloc[train], table.y[train], seed=key["split"] + 1, method="map")
        uses["sparse"] = predict_observations(posterior, inputs.iloc[test])
        row["seconds"] = round(time.perf_counter() - started, 1)
    return [row | {"use": use} | predictive.scores(table.y[test]) for use, predictive in uses.items()]


def report(rows: pd.DataFrame) -> str:
    """Return a Markdown table of means and standard errors over splits; nRMSE is the ratio to SE on the same split."""
    heads = ["data", "method", "use", "splits", "RMSE", "nRMSE", "log density", "- SE", "leaves", "fits to best", "s"]
    lines = []
    for data, some in rows.groupby("data", sort=False):
        plain = some[some["method"] == "SE"].drop_duplicates("split").set_index("split")[["rmse", "log_density"]]
        groups = ["method", "budget", "base", "score", "use"]
        for (method, budget, _, score, use), group in some.groupby(groups, sort=False):
            own = group.set_index("split")
            ratio = own["rmse"] / plain["rmse"]
            difference = own["log_density"] - plain["log_density"]
            measures = [own["rmse"], ratio.dropna(), own["log_density"], difference.dropna()]
            cells = [data, f"{method}, {budget}, {score}", use, str(len(own))]
            cells += [mean_cell(m, digits=4) for m in measures]
            factors = own["expression"].str.count(r"[+*]").mean() + 1
            cells += [f"{factors:.1f}", f"{own['fits_to_best'].mean():.0f}", f"{own['seconds'].mean():.0f}"]
            lines.append(cells)
    return markdown(heads, lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=["diabetes"])
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--splits", type=int, default=20, help="splits per data set (default: %(default)s)")
    add_search_arguments(parser, budget=100, base=("SE", "RQ", "PER", "LIN"), single=False)
    parser.add_argument("--nuts", action="store_true", help="also sample the hyperparameters of the best kernel")
    add_result_arguments(parser, __file__)
    options = begin(parser, arguments)
    file = ResultFile(options.output / "regression.csv", KEYS, COLUMNS)
    settings = search_options(options)
    base = " ".join(options.base) + (" single" if options.single else "")
    runs = product(options.datasets, range(options.splits), options.methods, [options.budget], [base], [options.score])
    for values in [] if options.report else file.missing(runs):
        key = dict(zip(KEYS, values, strict=True))
        file.append(run(key, load(key["data"], options.data), settings, options.nuts))
    rows = file.rows()
    print(report(rows[rows["data"].isin(options.datasets)]))


if __name__ == "__main__":
    main()
