"""Models of scikit-learn tuned on its own data: errors on held-out rows, with fixed random numbers.

Such objectives are deterministic but rough: a small change of a parameter changes trees, batches or neighbours. An
evaluation takes tenths of a second on one thread.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer
from sklearn.base import BaseEstimator
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine, make_friedman1
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

from benchmarks.common.problems import Problem

Config = Mapping[str, Any]
LARGEST_LOSS = 5.0  # a diverged model has this value
LEAST_PROBABILITY = 1e-6


class Split(NamedTuple):
    """Training and held-out rows."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def split(X: np.ndarray, y: np.ndarray, seed: int, n_train: int, n: int | None = None) -> Split:
    rows = np.random.RandomState(seed).permutation(len(X))[:n]  # noqa: NPY002 (scikit-learn's generator)
    train, test = rows[:n_train], rows[n_train:]
    return Split(X[train], y[train], X[test], y[test])


@lru_cache
def digits(seed: int, n_train: int, n: int) -> Split:
    X, y = load_digits(return_X_y=True)
    return split(X / 16, y, seed, n_train, n)


@lru_cache
def diabetes() -> Split:
    return split(*load_diabetes(return_X_y=True), 1, 220)


@lru_cache
def cancer() -> Split:
    X, y = load_breast_cancer(return_X_y=True)
    return split((X - X.mean(axis=0)) / X.std(axis=0), y, 2, 200)


@lru_cache
def wine() -> Split:
    X, y = load_wine(return_X_y=True)
    return split((X - X.mean(axis=0)) / X.std(axis=0), y, 3, 70)


@lru_cache
def friedman() -> Split:
    X, y = make_friedman1(700, noise=1.0, random_state=0)
    return Split(X[:300], y[:300], X[300:], y[300:])


def fitted(model: BaseEstimator, data: Split) -> BaseEstimator:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # few iterations are part of the objective
        return model.fit(data.X, data.y)


def root_mean_square(model: BaseEstimator, data: Split) -> float:
    return float(np.sqrt(np.mean((fitted(model, data).predict(data.X_test) - data.y_test) ** 2)))


def log_score(model: BaseEstimator, data: Split) -> float:
    probabilities = np.clip(fitted(model, data).predict_proba(data.X_test), LEAST_PROBABILITY, 1)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return min(float(log_loss(data.y_test, probabilities)), LARGEST_LOSS)


def support_vectors(config: Config) -> float:
    data = digits(0, 500, 1300)
    return float(1 - fitted(SVC(**config), data).score(data.X_test, data.y_test))


def boosting(config: Config) -> float:
    features = {"all": None}.get(config["max_features"], config["max_features"])
    model = GradientBoostingRegressor(**{**config, "max_features": features}, n_estimators=60, random_state=0)
    return float(np.log(root_mean_square(model, friedman())))


def forest(config: Config) -> float:
    return root_mean_square(RandomForestRegressor(**config, n_estimators=20, random_state=0), diabetes())


def network(config: Config) -> float:
    options = {**config, "hidden_layer_sizes": (config["width"],)}
    del options["width"]
    return log_score(MLPClassifier(**options, max_iter=12, random_state=0), digits(4, 300, 1100))


def descent(config: Config) -> float:
    model = SGDClassifier(
        **config, loss="log_loss", penalty="elasticnet", learning_rate="invscaling", max_iter=15, tol=None,
        random_state=0,
    )  # fmt: skip
    return log_score(model, cancer())


def ridge(config: Config) -> float:
    weights = 20 * np.array([*(config[f"w{i}"] for i in range(4)), *np.ones(6)])
    data = diabetes()
    scaled = Split(data.X * weights, data.y - 150, data.X_test * weights, data.y_test - 150)
    return root_mean_square(KernelRidge(kernel="rbf", alpha=config["alpha"], gamma=config["gamma"]), scaled)


def neighbours(config: Config) -> float:
    weights = np.array([*(config[f"w{i}"] for i in range(6)), *np.full(7, 0.3)])
    data = wine()
    scaled = Split(data.X * weights, data.y, data.X_test * weights, data.y_test)
    own = {name: config[name] for name in ("n_neighbors", "weights", "p")}
    return log_score(KNeighborsClassifier(**own), scaled)


def histograms(config: Config) -> float:
    return log_score(HistGradientBoostingClassifier(**config, early_stopping=False, random_state=0), cancer())


def _space(parameters: Mapping[str, Any], **categories: list[Any]) -> ConfigurationSpace:
    """Return a space; bounds that are followed by "log" are on a logarithmic scale."""
    space = ConfigurationSpace()
    for name, (lower, upper, *log) in parameters.items():
        kind = Integer if isinstance(lower, int) else Float
        space.add(kind(name, (lower, upper), log=bool(log)))
    space.add([Categorical(name, levels) for name, levels in categories.items()])
    return space


def _problem(objective: Callable[[Config], float], space: ConfigurationSpace) -> Problem:
    return Problem(space, objective, float("nan"))


TUNING = {
    "support vectors": _problem(
        support_vectors,
        _space(
            {"C": (1e-3, 1e3, "log"), "gamma": (1e-4, 10.0, "log"), "degree": (2, 6), "coef0": (0.0, 2.0)},
            kernel=["linear", "poly", "rbf", "sigmoid"],
            shrinking=[True, False],
        ),
    ),
    "boosting": _problem(
        boosting,
        _space(
            {
                "learning_rate": (1e-3, 1.0, "log"),
                "max_depth": (1, 10),
                "subsample": (0.1, 1.0),
                "min_samples_leaf": (1, 50, "log"),
            },
            loss=["squared_error", "absolute_error", "huber"],
            max_features=["all", "sqrt", "log2"],
        ),
    ),
    "forest": _problem(
        forest,
        _space(
            {
                "max_depth": (1, 20),
                "max_features": (0.05, 1.0),
                "min_samples_leaf": (1, 40, "log"),
                "max_samples": (0.1, 0.999),
                "ccp_alpha": (1e-2, 1e3, "log"),
            }
        ),
    ),
    "network": _problem(
        network,
        _space(
            {
                "width": (4, 128, "log"),
                "alpha": (1e-6, 10.0, "log"),
                "learning_rate_init": (1e-4, 0.1, "log"),
                "beta_1": (0.5, 0.99),
                "batch_size": (8, 128, "log"),
            },
            activation=["relu", "tanh", "logistic"],
        ),
    ),
    "descent": _problem(
        descent,
        _space(
            {
                "alpha": (1e-6, 1.0, "log"),
                "l1_ratio": (0.0, 1.0),
                "eta0": (1e-4, 10.0, "log"),
                "power_t": (0.0, 1.0),
            }
        ),
    ),
    "ridge": _problem(
        ridge,
        _space({"alpha": (1e-4, 1e2, "log"), "gamma": (1e-4, 10.0, "log"), **{f"w{i}": (0.0, 2.0) for i in range(4)}}),
    ),
    "neighbours": _problem(
        neighbours,
        _space(
            {"n_neighbors": (1, 30, "log"), "p": (1.0, 5.0), **{f"w{i}": (0.0, 2.0) for i in range(6)}},
            weights=["uniform", "distance"],
        ),
    ),
    "histograms": _problem(
        histograms,
        _space(
            {
                "max_iter": (5, 60, "log"),
                "learning_rate": (1e-2, 1.0, "log"),
                "max_leaf_nodes": (2, 40, "log"),
                "l2_regularization": (1e-6, 1e2, "log"),
                "min_samples_leaf": (1, 60, "log"),
                "max_features": (0.05, 1.0),
            }
        ),
    ),
}
"""Problems by name; their minima are unknown."""
