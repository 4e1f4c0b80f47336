"""Problems that need data files: the NuSVR objective of Oh et al. (2021) and tabulated support vector machines."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import NuSVR

from benchmarks.common.problems import Problem


def nusvr_error(config: Mapping[str, Any], X: np.ndarray, y: np.ndarray) -> float:
    """Return the root mean squared test error, averaged over five splits with 70% of the rows for training."""
    n_train = int(0.7 * len(y))
    errors = []
    for repeat in range(5):
        rows = np.random.RandomState(repeat**2).permutation(len(y))  # noqa: NPY002 (the paper's splits)
        train, test = rows[:n_train], rows[n_train:]
        model = make_pipeline(StandardScaler(), NuSVR(**config)).fit(X[train], y[train])
        errors.append(np.sqrt(np.mean((model.predict(X[test]) - y[test]) ** 2)))
    return float(np.mean(errors))


def nusvr(data: Path) -> Problem:
    """Return NuSVR on the Boston housing data with the search space of Oh et al. (2021), table 2."""
    table = pd.read_csv(data / "boston_housing.csv").to_numpy(dtype=np.float64)
    space = ConfigurationSpace(
        {
            "kernel": ["linear", "poly", "rbf", "sigmoid"],
            "gamma": ["scale", "auto"],
            "shrinking": [True, False],
        }
    )
    bounds = {"C": (1e-4, 10.0), "tol": (1e-6, 1.0), "nu": (1e-6, 1.0)}
    space.add([Float(name, bound, log=True) for name, bound in bounds.items()])
    return Problem(space, partial(nusvr_error, X=table[:, :-1], y=table[:, -1]), float("nan"))


def table_error(config: Mapping[str, Any], errors: Mapping[tuple[Any, ...], float]) -> float:
    return errors[tuple(config.get(name, -1) for name in ("kernel", "log2_C", "gamma", "degree"))]


def svm_table(data: Path, dataset: str) -> Problem:
    """Return the tabulated error of a support vector machine on a data set (288 configurations, Wistuba et al. 2016).

    The grid values become integers, so that Optuna's samplers know their order as well: log2 of C, the rank of gamma in
    the grid (kernel "rbf" only) and the degree (kernel "polynomial" only).

    Raises
    ------
    ValueError
        The table has no data set of that name.
    """
    rows = pd.read_csv(data / "hpo" / "svm_conditional_wistuba.csv").query("dataset == @dataset")
    if rows.empty:
        raise ValueError(f"there is no data set {dataset!r} in the table")
    gammas = sorted(rows["gamma"].dropna().unique())
    log2_c = np.log2(rows["C"]).astype(int)
    rank = rows["gamma"].map({gamma: i for i, gamma in enumerate(gammas)}).fillna(-1).astype(int)
    keys = zip(rows["kernel"], log2_c, rank, rows["degree"].fillna(-1).astype(int), strict=True)
    errors = dict(zip(keys, 1 - rows["accuracy"], strict=True))

    kernel = Categorical("kernel", ["linear", "polynomial", "rbf"])
    gamma, degree = Integer("gamma", (0, len(gammas) - 1)), Integer("degree", (2, 10))
    space = ConfigurationSpace()
    space.add(kernel, Integer("log2_C", (int(log2_c.min()), int(log2_c.max()))), gamma, degree)
    space.add(EqualsCondition(gamma, kernel, "rbf"), EqualsCondition(degree, kernel, "polynomial"))
    return Problem(space, partial(table_error, errors=errors), min(errors.values()))
