"""Learning curves of scikit-learn's models: spaces, training, and the recorded curves.

A training yields one validation loss for each of `STEPS` steps. `python -m benchmarks.optimisation.record_curves` has
recorded it for `RECORDED` random configurations of each problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine, make_friedman1
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import StandardScaler

from benchmarks.common.problems import HARTMANN_A3, HARTMANN_A6, HARTMANN_P3, HARTMANN_P6, HARTMANN_WEIGHTS
from slayr_py.space import Encoder

STEPS = 27
RECORDED = 200
FOLDER = Path(__file__).parent.parent / "optimisation" / "curves_data"

BOOSTING = ConfigurationSpace(
    space=[
        Float("learning_rate", (0.01, 1.0), log=True),
        Integer("max_depth", (1, 8)),
        Float("subsample", (0.3, 1.0)),
        Integer("min_samples_leaf", (1, 40), log=True),
        Float("max_features", (0.1, 1.0)),
        Float("min_impurity_decrease", (1e-5, 1e-1), log=True),
    ]
)

NETWORK = ConfigurationSpace(
    space=[
        Float("learning_rate", (1e-4, 1e-1), log=True),
        Float("alpha", (1e-6, 1e1), log=True),
        Float("beta", (0.5, 0.99)),
        Integer("units", (4, 64), log=True),
        Integer("layers", (1, 3)),
        Integer("batch", (16, 128), log=True),
        Categorical("activation", ["relu", "tanh"]),
    ]
)

Curve = Iterator[float]


def _split(data: Any, most: int = 600) -> tuple[Any, ...]:
    X, y = data
    rows = np.random.default_rng(0).permutation(len(X))[:most]
    train, test, y_train, y_test = train_test_split(X[rows], y[rows], test_size=0.33, random_state=0)
    scale = StandardScaler().fit(train)
    return scale.transform(train), scale.transform(test), y_train, y_test


def boosting(data: tuple[Any, ...], config: Mapping[str, Any], trees: int = 81) -> Curve:
    """Yield the validation loss after every third tree."""
    train, test, y_train, y_test = data
    is_class = np.issubdtype(y_train.dtype, np.integer)
    kind = GradientBoostingClassifier if is_class else GradientBoostingRegressor
    options = dict(config)
    options["min_impurity_decrease"] *= 1.0 if is_class else float(np.var(y_train))
    model = kind(n_estimators=trees, random_state=0, **options).fit(train, y_train)
    stages = model.staged_predict_proba(test) if is_class else model.staged_predict(test)
    for number, predicted in enumerate(stages):
        if (number + 1) % (trees // STEPS) == 0:
            yield _loss(y_test, predicted, is_class)


def network(data: tuple[Any, ...], config: Mapping[str, Any]) -> Curve:
    """Yield the validation loss after every epoch."""
    train, test, y_train, y_test = data
    is_class = np.issubdtype(y_train.dtype, np.integer)
    centre, scale = (0.0, 1.0) if is_class else (float(y_train.mean()), float(y_train.std()))
    model = (MLPClassifier if is_class else MLPRegressor)(
        hidden_layer_sizes=(int(config["units"]),) * int(config["layers"]),
        activation=config["activation"],
        alpha=config["alpha"],
        learning_rate_init=config["learning_rate"],
        beta_1=config["beta"],
        batch_size=int(config["batch"]),
        random_state=0,
    )
    known = {"classes": np.unique(y_train)} if is_class else {}
    for _ in range(STEPS):
        model.partial_fit(train, y_train if is_class else (y_train - centre) / scale, **known)
        predicted = model.predict_proba(test) if is_class else centre + scale * model.predict(test)
        yield _loss(y_test, predicted, is_class)


def _loss(y: Any, predicted: Any, is_class: bool) -> float:
    if is_class:
        return float(-np.mean(np.log(np.clip(predicted[np.arange(len(y)), y], 1e-6, 1.0))))
    return float(np.log(mean_squared_error(y, predicted)))


def hartmann(data: tuple[int, float], config: Mapping[str, Any]) -> Curve:
    """Yield a Hartmann function whose weights approach their values with the fidelity (after Kandasamy et al. 2017)."""
    dimension, bias = data
    x = np.array([config[f"x{i}"] for i in range(dimension)])
    A, P = (HARTMANN_A6, HARTMANN_P6) if dimension == 6 else (HARTMANN_A3, HARTMANN_P3)
    terms = np.exp(-np.sum(A * np.square(x - P), axis=1))
    for step in range(1, STEPS + 1):
        lacking = 1 - step / STEPS
        yield float(-(HARTMANN_WEIGHTS - bias * lacking * np.array([1.0, -0.6, 0.4, -0.3])) @ terms + lacking**2)


class CurveProblem(NamedTuple):
    """A model on a data set, or a function with a fidelity."""

    name: str
    space: ConfigurationSpace
    train: Callable[[Any, Mapping[str, Any]], Curve]
    load: Callable[[], Any]

    def curve(self, config: Mapping[str, Any]) -> np.ndarray:
        """Train the model: the losses (STEPS,), infinite ones replaced by 1e6."""
        values = np.fromiter(self.train(self.load(), config), np.float64)
        return np.nan_to_num(values, nan=1e6, posinf=1e6)


def _data(loader: Callable[..., Any]) -> Callable[[], Any]:
    return cache(lambda: _split(loader(return_X_y=True)))


@cache
def _friedman() -> Any:
    return _split(make_friedman1(500, noise=1.0, random_state=0))


def _hartmann(name: str, dimension: int, bias: float) -> CurveProblem:
    space = ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(dimension)})
    return CurveProblem(name, space, hartmann, lambda: (dimension, bias))


PROBLEMS = {
    problem.name: problem
    for problem in [
        CurveProblem("boosting-diabetes", BOOSTING, boosting, _data(load_diabetes)),
        CurveProblem("boosting-cancer", BOOSTING, boosting, _data(load_breast_cancer)),
        CurveProblem("boosting-friedman", BOOSTING, boosting, _friedman),
        CurveProblem("network-digits", NETWORK, network, _data(load_digits)),
        CurveProblem("network-cancer", NETWORK, network, _data(load_breast_cancer)),
        CurveProblem("network-wine", NETWORK, network, _data(load_wine)),
        CurveProblem("network-friedman", NETWORK, network, _friedman),
        _hartmann("hartmann6-close", 6, 0.5),
        _hartmann("hartmann6-far", 6, 4.0),
        _hartmann("hartmann3-far", 3, 4.0),
    ]
}


def recorded(name: str, seed: int) -> list[tuple[dict[str, Any], np.ndarray]]:
    """Return configurations and curves (STEPS,) of a problem in random order: recorded ones, or of a function."""
    problem = PROBLEMS[name]
    encoder = Encoder(problem.space)
    rng = np.random.default_rng(seed)
    d = len(encoder.names)
    path = FOLDER / f"{name}.csv"
    rows = np.loadtxt(path, delimiter=",") if path.exists() else rng.random((RECORDED, d))
    encoded, _ = encoder.resolve(encoder.from_uniform(rows[:, :d]))
    configs = [dict(config) for config in encoder.decode(encoded)]
    return [
        (configs[i], rows[i, d:] if path.exists() else problem.curve(configs[i])) for i in rng.permutation(len(configs))
    ]
