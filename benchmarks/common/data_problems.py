"""Problems that need data files: two objectives of Oh et al. (2021) and tabulated support vector machines."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer, OrdinalHyperparameter
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
        train = rows[:n_train]
        test = rows[n_train:]
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


def xgboost_error(config: Mapping[str, Any], train: Any, test: Any, n_classes: int) -> float:
    """Return the share of misclassified test rows in the best of 15 boosting rounds."""
    import xgboost  # an optional package

    history: dict[str, dict[str, list[float]]] = {}
    fixed = {"num_class": n_classes, "eval_metric": "merror", "seed": 0, "nthread": 1}
    matrices = [xgboost.DMatrix(X, label=y, nthread=1) for X, y in (train, test)]
    evaluated = [(matrices[1], "test")]
    xgboost.train({**config, **fixed}, matrices[0], 15, evals=evaluated, evals_result=history, verbose_eval=False)
    return float(min(history["test"]["merror"]))


def xgboost_digits(data: Path) -> Problem:
    """Return gradient-boosted trees on images of digits with the search space of Oh et al. (2021), table 2.

    The problem is smaller than in the paper: images of 8 x 8 pixels (5,620 rows) replace Fashion-MNIST, and there are
    15 rounds instead of 50, because the time of the booster "dart" grows with their square. As in the paper, the first
    70% of the rows of each class are for training.
    """
    table = pd.read_csv(data / "optdigits.csv").to_numpy()
    X = table[:, :-1].astype(np.float64)
    y = table[:, -1].astype(int)
    is_train = np.zeros(len(y), dtype=bool)
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        is_train[rows[: int(0.7 * len(rows))]] = True
    space = ConfigurationSpace()
    space.add(
        OrdinalHyperparameter("max_depth", list(range(1, 11))),
        Categorical("booster", ["gbtree", "dart"]),
        Categorical("grow_policy", ["depthwise", "lossguide"]),
        Categorical("objective", ["multi:softmax", "multi:softprob"]),
        Float("eta", (1e-6, 1.0), log=True),
        Float("gamma", (1e-4, 10.0), log=True),
        Float("subsample", (1e-3, 1.0), log=True),
        Float("lambda", (0.0, 5.0)),
    )
    train = (X[is_train], y[is_train])
    test = (X[~is_train], y[~is_train])
    return Problem(space, partial(xgboost_error, train=train, test=test, n_classes=int(y.max()) + 1), float("nan"))


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
    gamma = Integer("gamma", (0, len(gammas) - 1))
    degree = Integer("degree", (2, 10))
    space = ConfigurationSpace()
    space.add(kernel, Integer("log2_C", (int(log2_c.min()), int(log2_c.max()))), gamma, degree)
    space.add(EqualsCondition(gamma, kernel, "rbf"), EqualsCondition(degree, kernel, "polynomial"))
    return Problem(space, partial(table_error, errors=errors), min(errors.values()))
