"""Compare priors of the noise and of the length-scales on designed data with and without noise.

    python -m benchmarks.correctness.noise
    python -m benchmarks.correctness.noise --models "LogNormal(-4, 1), 0.2" scikit-learn --sizes 20 40
    python -m benchmarks.correctness.noise --real

Six functions in 1 to 6 dimensions are observed at Sobol designs of n points with normal noise, whose standard
deviation is a share of the function's standard deviation over its space. A fit has 2 chains of NUTS with 150 + 150
iterations, no warp and no retries. Errors and densities are in standard deviations of the function, at 200 quasi-random
points with fresh noise. A model is named by its prior of ``sigma_n``, and the median of its prior of the length-scales
over sqrt(D); the scale of the length-scales is 1 unless a second number says otherwise. With ``--real``, models are
compared on splits of scikit-learn's diabetes data, through the regressor. Each row is appended to ``noise.csv`` or
``noise_real.csv``; run the same command again to resume after an interruption.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from ConfigSpace import ConfigurationSpace
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.peers import cpu_seconds
from benchmarks.common.problems import PROBLEMS, Problem
from benchmarks.common.results import ResultFile, add_result_arguments, markdown
from benchmarks.correctness.noise_models import MODELS, REAL_MODELS
from slayr_py.space import Encoder

TEST_POINTS = 200
LEVEL = 0.9
NOISES = (0.0, 0.1, 0.5, 1.0)
TRAINING = 60
"""Rows of the diabetes data to train on; the others are for testing."""

KEYS = ["model", "function", "noise", "n", "seed"]
MEASURES = ["sigma_n", "inside", "coverage", "log_density", "rmse", "ok", "seconds"]
REAL_KEYS = ["model", "split"]
REAL_MEASURES = ["noise_sd", "rmse_train", "rmse", "coverage", "log_density", "ok", "seconds"]


def _cube(names: str) -> ConfigurationSpace:
    return ConfigurationSpace(dict.fromkeys(names, (0.0, 1.0)))


def forrester(config: Mapping[str, Any]) -> float:
    return float((6 * config["a"] - 2) ** 2 * np.sin(12 * config["a"] - 4))


def waves(config: Mapping[str, Any]) -> float:
    """The roughest function: its length-scales are about a tenth of the range."""
    return float(np.sin(12 * config["a"]) * np.cos(9 * config["b"]))


def sine(config: Mapping[str, Any]) -> float:
    return float(np.sin(5 * config["a"]) + config["b"] ** 2 - config["c"] * config["a"] / 2)


def friedman(config: Mapping[str, Any]) -> float:
    a, b, c, d, e = (config[name] for name in "abcde")
    return float(10 * np.sin(np.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e)


FUNCTIONS = {
    "forrester": Problem(_cube("a"), forrester, np.nan),
    "branin": PROBLEMS["branin"],
    "waves": Problem(_cube("ab"), waves, -1.0),
    "sine": Problem(_cube("abc"), sine, np.nan),
    "friedman": Problem(_cube("abcde"), friedman, np.nan),
    "hartmann6": PROBLEMS["hartmann6"],
}


class Data(NamedTuple):
    """A function with standard deviation 1 at a design and at points to predict."""

    encoder: Encoder
    train: list[Any]
    values: np.ndarray
    test: list[Any]
    latent: np.ndarray


@cache
def scale(function: str) -> float:
    """Return the standard deviation of a function over its space."""
    problem = FUNCTIONS[function]
    return float(np.std([problem.objective(config) for config in Encoder(problem.space).sobol(1024, 0)]))


@lru_cache(maxsize=10)
def data(function: str, n: int, seed: int) -> Data:
    """Return the values of a function at a scrambled Sobol design, and at points of another one."""
    problem = FUNCTIONS[function]
    encoder = Encoder(problem.space)
    train = encoder.sobol(n, 1000 + seed)
    test = encoder.sobol(TEST_POINTS, 5000 + seed)
    values, latent = (
        np.array([problem.objective(config) for config in configs]) / scale(function) for configs in (train, test)
    )
    return Data(encoder, train, values, test, latent)


def predictive(cumulative: np.ndarray, log_density: np.ndarray, error: np.ndarray) -> dict[str, float]:
    """Return the coverage of central intervals, the mean log density of observations, and the root mean square."""
    return {
        "coverage": float(np.mean(np.abs(cumulative - 0.5) <= LEVEL / 2)),
        "log_density": float(np.mean(log_density)),
        "rmse": float(np.sqrt(np.mean(np.square(error)))),
    }


def measure(model: str, function: str, noise: float, n: int, seed: int) -> dict[str, Any]:
    """Fit a model to one data set; without noise ``sigma_n`` is not a ratio and has no coverage."""
    encoder, train, values, test, latent = data(function, n, seed)
    rng = np.random.default_rng([seed, n])
    y = values + noise * rng.normal(size=n)
    fresh = latent + noise * rng.normal(size=TEST_POINTS)
    started = cpu_seconds()
    fitted = MODELS[model](encoder, train, y, test, seed)
    low, median, high = np.quantile(fitted.sigma_n, [(1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2])
    about = {
        "sigma_n": float(median / noise if noise else median),
        "inside": float(low <= noise <= high) if noise and len(fitted.sigma_n) > 1 else np.nan,
        "ok": fitted.ok,
        "seconds": cpu_seconds() - started,
    }
    row = about | predictive(fitted.cumulative(fresh), fitted.log_density(fresh), fitted.mean - latent)
    return dict(zip(KEYS, (model, function, noise, n, seed), strict=True)) | _rounded(row)


def measure_real(model: str, split: int) -> dict[str, Any]:
    """Fit a model to a part of the diabetes data; the targets keep their units."""
    table, targets = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    table = table.astype(float)
    space = ConfigurationSpace({name: (table[name].min(), table[name].max()) for name in table})
    rows, others = train_test_split(np.arange(len(table)), train_size=TRAINING, random_state=split)
    order = np.concatenate([rows, others])
    configs = table.iloc[order].to_dict("records")
    y = targets.to_numpy()[order]
    started = cpu_seconds()
    fitted = REAL_MODELS[model](Encoder(space), configs[:TRAINING], y[:TRAINING], configs, split)
    seconds = cpu_seconds() - started
    error = fitted.mean - y
    held_out = (values[TRAINING:] for values in (fitted.cumulative(y), fitted.log_density(y), error))
    row = {
        "noise_sd": float(np.median(fitted.sigma_n)),
        "rmse_train": float(np.sqrt(np.mean(np.square(error[:TRAINING])))),
        "ok": fitted.ok,
        "seconds": seconds,
    }
    return {"model": model, "split": split} | _rounded(row | predictive(*held_out))


def _rounded(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in row.items()}


def _mean(values: pd.Series, digits: int = 2) -> str:
    return f"{values.mean():.{digits}f}" if values.notna().any() else ""


def _heads(by: Sequence[str]) -> list[str]:
    measured = ["fits", "`sigma_n` / truth", "held", "coverage", "log density", "RMSE", "ok", "s"]
    return [*by, *measured]


def table(rows: pd.DataFrame, by: Sequence[str]) -> str:
    """Return a row for each group: quartiles of median / truth, shares, and means."""
    lines = []
    for key, group in rows.groupby(list(by), sort=False):
        quartiles = group["sigma_n"].quantile([0.25, 0.5, 0.75])
        ratio = " / ".join(f"{value:.2f}" for value in quartiles)
        cells = [str(part) for part in key] + [str(len(group)), ratio, _mean(group["inside"])]
        cells += [_mean(group["coverage"], 3), _mean(group["log_density"], 3), _mean(group["rmse"], 3)]
        lines.append([*cells, _mean(group["ok"].astype(float)), _mean(group["seconds"])])
    return markdown(_heads(by), lines)


def overview(rows: pd.DataFrame) -> str:
    """Return a row for each model: its results for every noise, separated by slashes."""
    lines = []
    for model, group in rows.groupby("model", sort=False):
        of_noise = dict(iter(group.groupby("noise")))
        noisy = [part for noise, part in of_noise.items() if noise]
        cells = [str(model), str(len(group)), " / ".join(f"{part['sigma_n'].median():.2f}" for part in noisy)]
        cells.append(" / ".join(_mean(part["inside"]) for part in noisy))
        for name in ("coverage", "log_density", "rmse"):
            cells.append(" / ".join(_mean(part[name]) for part in of_noise.values()))
        lines.append([*cells, _mean(group["ok"].astype(float)), _mean(group["seconds"])])
    return markdown(_heads(["model"]), lines)


def report(rows: pd.DataFrame) -> None:
    """Print results over the data sets that all reported models have: an overview, then by n and noise."""
    print(overview(rows))
    print()
    print(table(rows.sort_values(["n", "noise"], kind="stable"), ["n", "noise", "model"]))


def report_real(rows: pd.DataFrame) -> None:
    """Print the means over splits of the diabetes data."""
    lines = []
    for model, group in rows.groupby("model", sort=False):
        cells = [str(model), str(len(group)), *(_mean(group[name], 1) for name in ("noise_sd", "rmse_train", "rmse"))]
        cells += [_mean(group["coverage"]), _mean(group["log_density"]), _mean(group["ok"].astype(float))]
        lines.append([*cells, _mean(group["seconds"], 1)])
    heads = ["model", "splits", "noise sd", "training RMSE", "test RMSE", "coverage", "log density", "ok", "s"]
    print(markdown(heads, lines))


def common(rows: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    """Return the rows of the data sets that all these models have been fitted to, in the order of the models."""
    rows = rows[rows["model"].isin(models)].sort_values("model", key=lambda names: names.map([*models].index))
    counts = rows.groupby(KEYS[1:])["model"].transform("nunique")
    return rows[counts == rows["model"].nunique()]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--models", nargs="+", choices=[*MODELS, *REAL_MODELS], metavar="MODEL", help="default: all")
    parser.add_argument("--functions", nargs="+", choices=list(FUNCTIONS), default=list(FUNCTIONS))
    parser.add_argument("--noises", type=float, nargs="+", default=list(NOISES), help="shares of the function's sd")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 20, 40, 100], help="values of n")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(5)))
    parser.add_argument("--real", action="store_true", help="the diabetes data instead")
    add_result_arguments(parser, __file__)
    given = begin(parser, arguments)
    models = [name for name in (REAL_MODELS if given.real else MODELS) if name in (given.models or [name])]
    warnings.simplefilter("ignore", ConvergenceWarning)
    if given.real:
        runs = [(model, seed) for seed, model in product(given.seeds, models)]
        results = ResultFile(given.output / "noise_real.csv", REAL_KEYS, [*REAL_KEYS, *REAL_MEASURES])
        measured = measure_real
    else:
        order = product(given.seeds, given.sizes, given.noises, given.functions, models)
        runs = [(model, function, noise, n, seed) for seed, n, noise, function, model in order]
        results = ResultFile(given.output / "noise.csv", KEYS, [*KEYS, *MEASURES])
        measured = measure
    if not given.report:
        with threadpool_limits(1):
            for run in results.missing(runs):
                results.append([measured(*run)])
    rows = results.rows()
    if given.real:
        report_real(rows[rows["model"].isin(models)])
    else:
        report(common(rows, models))


if __name__ == "__main__":
    main()
