"""Count fits that miss the dominating mode of the posterior.

    python -m benchmarks.correctness.modes --data DIR
    python -m benchmarks.correctness.modes --report

Tables of values that repeat more often than the range of a column suggests, and ordinary ones, are fitted by every
method with all defaults. The reference is the best of four posteriors that are tempered from draws of the prior, by the
mean log density of their draws. A fit misses the mode if the mean log density of its own draws is smaller by more than
`BELOW`, in which a point at the mode is never below its draws. A fit whose checks fail says so, and does not count.
DIR has the monthly means, co2_mauna_loa_monthly_1958_2001_from_weekly.csv; without it their table is left out.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition

import slayr_py as sl
from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.results import ResultFile, add_result_arguments, markdown
from slayr_py.errors import DataError, InferenceError
from slayr_py.inference import Posterior
from slayr_py.inference.sampling.densities import numpy_density
from slayr_py.space import Encoder

METHODS = ("nuts", "pathfinder", "laplace", "map", "carried")
BELOW = 5.0
"""Nats; the mean log density of draws varies by less than one between good fits of the same posterior."""

COLUMNS = ("table", "n", "method", "seed", "ok", "below", "sigma_n", "seconds")
_REFERENCES = 4


class Table(NamedTuple):
    """Observations of a function, and the arguments of its model."""

    space: ConfigurationSpace
    configs: Any
    y: np.ndarray
    model: Mapping[str, Any] = {}


def sampled(columns: int, function: Callable[[np.ndarray], np.ndarray], n: int, noise: float, **model: Any) -> Table:
    """Return noisy values of a function of the unit cube, at uniformly distributed points."""
    rng = np.random.default_rng(n)
    X = rng.uniform(size=(n, columns))
    y = function(X.T) + noise * rng.standard_normal(n)
    space = ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(columns)})
    return Table(space, pd.DataFrame(X, columns=list(space)), y, model)


def sine(n: int, w: float) -> Table:
    return sampled(1, lambda x: np.sin(10 * w * x[0]) + 3 * x[0], n, 0.2)


def two_categories(n: int) -> Table:
    """Return waves of different phases in two levels of a category."""
    rng = np.random.default_rng(n)
    space = ConfigurationSpace({"x": (0.0, 1.0), "level": ["a", "b"]})
    configs = pd.DataFrame({"x": rng.uniform(size=n), "level": rng.choice(["a", "b"], n)})
    phase = np.where(configs["level"] == "a", 0.0, 1.0)
    return Table(space, configs, np.sin(40 * configs["x"].to_numpy() + phase) + 0.2 * rng.standard_normal(n))


def branches(n: int) -> Table:
    """Return waves in a parameter of one branch of a conditional space."""
    rng = np.random.default_rng(n)
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    kind = Categorical("kind", ["wave", "line"])
    other = ConfigurationSpace({"frequency": (0.0, 1.0)})["frequency"]
    space.add(kind, other)
    space.add(EqualsCondition(other, kind, "wave"))
    configs = [dict(config) for config in Encoder(space).sobol(n, 1)]
    y = [config["x"] + np.sin(40 * config.get("frequency", 0.0)) for config in configs]
    return Table(space, configs, np.array(y) + 0.2 * rng.standard_normal(n))


def carbon_dioxide(folder: Path) -> Table:
    """Return two thirds of twelve years of monthly concentrations."""
    months = pd.read_csv(folder / "co2_mauna_loa_monthly_1958_2001_from_weekly.csv").head(144)
    kept = months[np.arange(144) % 3 != 2]
    space = ConfigurationSpace({"t": (1958.0, 1970.5)})
    return Table(space, pd.DataFrame({"t": kept["decimal_year_midmonth"]}), kept["co2_ppm_mean"].to_numpy())


def tables(folder: Path | None) -> dict[str, Table]:
    """Return the tables by name; those whose names begin with "ordinary" have no quick repetitions."""
    found = {
        "sine, 8 waves": sine(60, 5),
        "sine, 9.5 waves": sine(60, 6),
        "sine, 13 waves": sine(80, 8),
        "sine, 16 waves": sine(100, 10),
        "chirp": sampled(1, lambda x: np.sin(60 * x[0] ** 2), 80, 0.1),
        "steps": sampled(1, lambda x: np.floor(8 * x[0]) % 2 + x[0], 60, 0.1),
        "sine, warp": sampled(1, lambda x: np.exp(2 * np.sin(50 * x[0])), 80, 0.1, warp="log"),
        "sine, SE": sampled(1, lambda x: np.sin(60 * x[0]), 80, 0.2, kernel="SE"),
        "sine, SE + LIN": sampled(1, lambda x: np.sin(60 * x[0]) + 3 * x[0], 80, 0.2, kernel="SE + LIN"),
        "signs of a sine": sampled(1, lambda x: 1.0 * (np.sin(40 * x[0]) > 0), 120, 0.0, likelihood="probit"),
        "two columns, one quick": sampled(2, lambda x: np.sin(40 * x[0]) + 2 * x[1] ** 2, 80, 0.1),
        "two columns, a product": sampled(2, lambda x: np.sin(20 * x[0]) * np.cos(6 * x[1]), 100, 0.1),
        "two columns, a diagonal": sampled(2, lambda x: np.sin(15 * (x[0] + x[1])), 120, 0.1),
        "three columns, one quick": sampled(3, lambda x: np.sin(30 * x[0]) + x[1] + x[2] ** 2, 100, 0.1),
        "five columns, one quick": sampled(5, lambda x: np.sin(20 * x[0]) + x[1] + x[2] * x[3], 150, 0.1),
        "two categories": two_categories(100),
        "branches": branches(100),
        "ordinary, a line": sampled(2, lambda x: x[0] + 0.5 * x[1], 30, 0.3),
        "ordinary, a bowl": sampled(3, lambda x: np.sum((x - 0.4) ** 2, axis=0), 40, 0.0),
        "ordinary, noise": sampled(2, lambda x: np.zeros_like(x[0]), 60, 1.0),
        "ordinary, a ridge": sampled(4, lambda x: np.exp(-20 * (x[0] + x[1] - 1) ** 2) + 0.3 * x[2], 60, 0.05),
    }
    return found if folder is None else {"carbon dioxide": carbon_dioxide(folder)} | found


def mean_log_density(posterior: Posterior, reference: Posterior) -> float:
    """Return the mean log density of the draws of a fit, under the data of another one."""
    parts = [np.concatenate(list(v)) for v in posterior.parts[0].contents.coordinates.values()]
    points = np.concatenate([v.reshape(len(v), -1) for v in parts], axis=1)
    points = points[np.linspace(0, len(points) - 1, min(len(points), 500)).astype(int)]
    data = dict(reference.parts[0].data)
    coordinates = reference.parts[0].contents.coordinates
    shapes = {name: values.shape[2:] for name, values in coordinates.items()}
    density = numpy_density(reference.parts[0].model.kernel.program, data)
    assert density is not None
    return float(np.mean(density(data, shapes)(points)))


def fit(table: Table, **options: Any) -> Posterior:
    return sl.GaussianProcess(table.space, **table.model).fit(table.configs, table.y, **options)


def best_reference(table: Table) -> Posterior:
    found = [fit(table, method="carried", seed=1000 + seed, pointwise=False) for seed in range(_REFERENCES)]
    return max(found, key=lambda posterior: mean_log_density(posterior, found[0]))


def run(name: str, table: Table, reference: Posterior, method: str, seed: int) -> dict[str, Any]:
    row: dict[str, Any] = {"table": name, "n": len(table.y), "method": method, "seed": seed}
    started = time.perf_counter()
    try:
        posterior = fit(table, method=method, seed=seed)
    except (DataError, InferenceError) as error:
        print(name, method, seed, error, flush=True)
        return row | {"ok": "error", "below": np.nan, "sigma_n": np.nan, "seconds": time.perf_counter() - started}
    seconds = time.perf_counter() - started
    best = mean_log_density(reference, reference)
    return row | {
        "ok": posterior.check().ok,
        "below": best - mean_log_density(posterior, reference),
        "sigma_n": float(np.median(posterior.idata["posterior"]["sigma_n"])),
        "seconds": seconds,
    }


def report(rows: pd.DataFrame) -> str:
    """Return the numbers of fits by table and method: those that miss the mode with passed checks, of all."""
    missed = (rows["below"] > BELOW) & (rows["ok"].astype(str) == "True")
    failed = rows["ok"].astype(str) != "True"
    lines = []
    for name, ofname in rows.groupby("table", sort=False):
        cells = [str(name), str(int(ofname["n"].iloc[0]))]
        for method in METHODS:
            mine = ofname["method"] == method
            unsaid = int(missed[ofname.index][mine].sum())
            bad = int(failed[ofname.index][mine].sum())
            cells.append(f"{unsaid} of {int(mine.sum())}" + (f", {bad} fail" if bad else ""))
        lines.append(cells)
    totals = [f"{int(missed[rows['method'] == m].sum())} of {int((rows['method'] == m).sum())}" for m in METHODS]
    return markdown(["table", "n", *METHODS], [*lines, ["all", "", *totals]])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--data", type=Path, help="folder of the carbon dioxide")
    parser.add_argument("--tables", nargs="+", help="by default all")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--seeds", type=int, default=5)
    add_result_arguments(parser, __file__)
    options = begin(parser, arguments)
    results = ResultFile(options.output / "modes.csv", ("table", "method", "seed"), COLUMNS)
    if not options.report:
        warnings.simplefilter("ignore")
        for name, table in tables(options.data).items():
            if options.tables and name not in options.tables:
                continue
            runs = [(name, method, seed) for method in options.methods for seed in range(options.seeds)]
            if missing := results.missing(runs):
                reference = best_reference(table)
                for _, method, seed in missing:
                    results.append([run(name, table, reference, method, seed)])
    print(report(results.rows()))


if __name__ == "__main__":
    main()
