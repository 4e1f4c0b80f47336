"""Compare held-out error and predictive density on three mixed data sets with published results.

    python -m benchmarks.correctness.regression --data DIR --splits 20 --datasets servo optical meta-data

The regression tables of Oh et al. (2021), supplement, table 7. 80% of the rows are for training; the scale of the real
inputs does not matter; the target is standardised on the training rows. Root mean squared errors and negative log
predictive densities are means over the test rows, then over splits.

The density ``nll`` is that of a new observation including noise, a mixture over draws if hyperparameters are sampled;
"one normal" is the normal distribution of the same mean and variance; "without noise" is that normal distribution with
the variance of the function alone, as computed by the authors' public program. Each row is appended to
``regression.csv``; run the same command again to resume after an interruption.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
from ConfigSpace import Categorical, ConfigurationSpace, Float
from scipy.special import logsumexp
from scipy.stats import norm
from threadpoolctl import threadpool_limits

import slayr_py as sl
from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.results import ResultFile, add_result_arguments, markdown, mean_cell, median_rhat
from benchmarks.common.studies import KERNELS, add_fit_arguments, fit_label, fit_options

KEYS = ["data", "model", "split", "n_train"]
COLUMNS = [*KEYS, "nll", "nll_one_normal", "nll_without_noise", "rmse", "seconds", "rhat"]


class Table(NamedTuple):
    """File and columns of a data set."""

    file: str
    target: str
    nominal: tuple[str, ...]
    dropped: tuple[str, ...] = ()


TABLES = {
    "servo": Table("servo.csv", "class", ("motor", "screw")),
    "optical": Table(
        "optical_interconnection_network.csv",
        "processor_utilization",
        ("node_number", "spatial_distribution", "temporal_distribution"),
        ("channel_waiting_time", "input_waiting_time", "network_response_time", "channel_utilization"),
    ),
    "meta-data": Table("statlog_meta_data.csv", "Norm_error", ("DS_Name", "Cost", "Alg_Name"), ("cancor2", "fract2")),
}

PAPER = {
    "servo": {
        "ModLap": (1.0790, 0.4607, 0.3046, 0.0412),
        "ProdLap": (0.7008, 0.3385, 0.2971, 0.0405),
        "AddLap": (3.7083, 0.5001, 0.5709, 0.0311),
        "ModDif": (503.9973, 486.4679, 0.7308, 0.0910),
        "ProdDif": (0.9579, 0.4758, 0.3023, 0.0408),
        "AddDif": (4.2362, 0.6115, 0.5696, 0.0310),
    },
    "optical": {
        "ModLap": (0.1521, 0.2265, 0.1400, 0.0063),
        "ProdLap": (0.2135, 0.1928, 0.1417, 0.0059),
        "AddLap": (7.5568, 0.4897, 0.2577, 0.0052),
        "ModDif": (10.0005, 0.2934, 0.7881, 0.0069),
        "ProdDif": (0.2132, 0.2050, 0.1413, 0.0060),
        "AddDif": (7.5504, 0.4867, 0.2577, 0.0052),
    },
    "meta-data": {
        "ModLap": (1.1218, 0.2987, 1.0920, 0.1626),
        "ProdLap": (1.3236, 0.3539, 1.0898, 0.1642),
        "AddLap": (1.6805, 0.1847, 1.0199, 0.1588),
        "ModDif": (5.9377, 1.9872, 1.4074, 0.2027),
        "ProdDif": (9.5198, 3.7116, 1.1537, 0.1654),
        "AddDif": (16.0224, 3.9906, 1.0223, 0.1601),
    },
}
"""Negative log density without noise, its standard error, root mean squared error, its standard error."""


def load(data: Path, name: str) -> tuple[ConfigurationSpace, pd.DataFrame, np.ndarray]:
    """Return search space, inputs and target; the space covers all values of training and test rows."""
    table = TABLES[name]
    rows = pd.read_csv(data / table.file, dtype=dict.fromkeys(table.nominal, str))
    rows = rows.drop(columns=list(table.dropped)).dropna(ignore_index=True)
    inputs = rows.drop(columns=table.target)
    space = ConfigurationSpace()
    for column in inputs:
        if column in table.nominal:
            space.add(Categorical(column, sorted(inputs[column].unique())))
        else:
            inputs[column] = inputs[column].astype(np.float64)
            space.add(Float(column, (inputs[column].min(), inputs[column].max())))
    return space, inputs, rows[table.target].to_numpy(dtype=np.float64)


def split(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the training rows and the test rows."""
    rows = np.random.RandomState(seed).permutation(n)  # noqa: NPY002 (the paper's splits)
    return rows[: int(0.8 * n)], rows[int(0.8 * n) :]


def scores(posterior: sl.Posterior, inputs: pd.DataFrame, y: np.ndarray) -> dict[str, float]:
    """Return negative log predictive densities and root mean squared error, means over the test rows."""
    predicted = posterior.predict(inputs)
    noise = np.square(posterior.y_sd * posterior.draws["sigma_n"])
    by_draw = norm.logpdf(y, predicted.draw_mean, np.sqrt(np.square(predicted.draw_sd) + noise[:, None]))
    one_normal = norm.logpdf(y, predicted.mean, np.sqrt(np.square(predicted.sd) + noise.mean()))
    return {
        "nll": -float(np.mean(logsumexp(by_draw, axis=0) - np.log(len(noise)))),
        "nll_one_normal": -float(np.mean(one_normal)),
        "nll_without_noise": -float(np.mean(norm.logpdf(y, predicted.mean, predicted.sd))),
        "rmse": float(np.sqrt(np.mean(np.square(predicted.mean - y)))),
    }


def fit_and_score(key: dict[str, Any], data: Path, kernel: str, fit: dict[str, Any]) -> dict[str, Any]:
    """Return the row of one fit."""
    space, inputs, y = load(data, key["data"])
    train, test = split(len(y), key["split"])
    train = train[: key["n_train"]]
    y = (y - y[train].mean()) / y[train].std()
    with threadpool_limits(limits=1):
        start = time.perf_counter()
        gp = sl.GaussianProcess(space, KERNELS[kernel]())
        posterior = gp.fit(inputs.iloc[train], y[train], seed=key["split"], **fit)
        seconds = time.perf_counter() - start
        measured = scores(posterior, inputs.iloc[test], y[test])
    return key | measured | {"seconds": round(seconds, 3), "rhat": posterior.check().rhat_max}


def report(rows: pd.DataFrame) -> str:
    """Return a Markdown table of means and standard errors over splits."""
    heads = ["data", "model", "splits", "nll", "one normal", "without noise", "rmse", "seconds per fit", "R-hat"]
    lines = []
    for name in rows["data"].unique():
        for (model, n_train), group in rows[rows["data"] == name].groupby(["model", "n_train"]):
            measures = [group[c] for c in ("nll", "nll_one_normal", "nll_without_noise", "rmse")]
            cells = [mean_cell(m, digits=4) for m in measures]
            cells += [f"{group['seconds'].mean():.1f}", median_rhat(group)]
            lines.append([f"{name}, n = {n_train}", model, str(len(group)), *cells])
        for method, (nll, nll_error, rmse, rmse_error) in PAPER[name].items():
            cells = ["20", "", "", f"{nll:.4f} ± {nll_error:.4f}", f"{rmse:.4f} ± {rmse_error:.4f}", "", ""]
            lines.append([name, f"paper: {method}", *cells])
    return markdown(heads, lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the three CSV files")
    parser.add_argument(
        "--datasets",
        nargs="+",
        default=["servo"],
        choices=list(TABLES),
        help="data sets; optical and meta-data take hours with NUTS",
    )
    parser.add_argument("--kernels", nargs="+", default=["fm", "product-laplacian"], choices=sorted(KERNELS))
    parser.add_argument("--splits", type=int, default=20, help="random splits per data set")
    parser.add_argument("--max-train", type=int, default=10**6, help="largest number of training rows")
    parser.add_argument("--jobs", type=int, default=1, help="number of parallel fits")
    add_result_arguments(parser, __file__)
    add_fit_arguments(parser, chains=4, warmup=200, draws=100)
    options = begin(parser, arguments)

    file = ResultFile(options.output / "regression.csv", KEYS, COLUMNS)
    fit = fit_options(options)
    models = {f"{kernel}, {fit_label(**fit)}": kernel for kernel in options.kernels}
    n_train = {name: min(int(0.8 * len(load(options.data, name)[2])), options.max_train) for name in options.datasets}
    keys = product(options.datasets, models, range(options.splits))
    todo = [] if options.report else file.missing((name, model, seed, n_train[name]) for name, model, seed in keys)
    jobs = (dict(zip(KEYS, key, strict=True)) for key in todo)
    parallel = joblib.Parallel(n_jobs=options.jobs, return_as="generator_unordered")
    for row in parallel(joblib.delayed(fit_and_score)(key, options.data, models[key["model"]], fit) for key in jobs):
        file.append([row])
    rows = file.rows()
    rows = rows[rows["data"].isin(options.datasets) & rows["model"].isin([*models]) & (rows["split"] < options.splits)]
    print(report(rows))


if __name__ == "__main__":
    main()
