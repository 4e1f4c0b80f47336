"""Problems with ordinals: numbers that a user gives as a list of levels, and levels that are words in an order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer, OrdinalHyperparameter

from benchmarks.common.problems import PROBLEMS, Problem
from benchmarks.common.tuning_problems import TUNING

Config = Mapping[str, Any]
WORDS = ["very low", "low", "medium", "high", "very high"]
OPTIMISERS = {"adam": (0.0, 0.0), "sgd": (0.03, 0.9), "rmsprop": (0.012, -0.3)}
"""The loss that an optimiser adds, and the decades by which its best rate is larger."""


def on_levels(
    problem: Problem, ordinals: Mapping[str, Sequence[float]], categories: Mapping[str, Sequence[float]] | None = None
) -> Problem:
    """Return a problem some of whose numbers have levels only, in their order or without one."""
    space = ConfigurationSpace()
    for name, parameter in problem.space.items():
        if name in ordinals:
            space.add(OrdinalHyperparameter(name, list(ordinals[name])))
        elif name in (categories or {}):
            space.add(Categorical(name, list((categories or {})[name])))
        else:
            space.add(parameter)
    return Problem(space, problem.objective, float("nan"))


def grid(problem: Problem, names: Sequence[str], n_levels: int) -> dict[str, list[float]]:
    """Return equidistant levels from bound to bound for parameters of a problem."""
    bounds = {name: (problem.space[name].lower, problem.space[name].upper) for name in names}
    return {name: np.linspace(*bounds[name], n_levels).round(12).tolist() for name in names}


def function_on_levels(
    name: str, ordinals: Sequence[str], n_levels: int, category: str = "", n_categories: int = 0
) -> Problem:
    """Return a test function with ordinals, and with a category whose levels are points of a line without their order.

    No optimiser knows the order of the category.
    """
    problem = PROBLEMS[name]
    categories = {}
    if category:
        levels = grid(problem, [category], n_categories)[category]
        categories[category] = np.random.default_rng(7).permutation(levels).tolist()
    return on_levels(problem, grid(problem, ordinals, n_levels), categories)


def training(config: Config) -> float:
    """Return a formula of the loss of a network: the best rate depends on batch, width and number of layers."""
    batch, width, layers = np.log2(config["batch"]), np.log2(config["width"]), config["layers"]
    added, shift = OPTIMISERS[config.get("optimiser", "adam")]
    rate = np.log10(config["rate"]) - shift
    excess = rate - (-2.6 + 0.25 * (batch - 5) - 0.12 * (width - 6) - 0.1 * layers)
    size = 0.01 * (width + 0.6 * layers - 9.3) ** 2 + 0.003 * (batch - 5) ** 2
    diverged = 0.01 * max(0.0, excess - 0.8) ** 3
    return float(
        0.08 + 0.02 * excess**2 + size + 0.2 * (config["dropout"] - 0.04 * (width - 4)) ** 2 + diverged + added
    )


def training_space(*more: Categorical) -> ConfigurationSpace:
    space = ConfigurationSpace()
    space.add(
        OrdinalHyperparameter("batch", [8, 16, 32, 64, 128, 256, 512]),
        OrdinalHyperparameter("width", [16, 32, 64, 128, 256, 512]),
        Integer("layers", (1, 6)),
        Float("rate", (1e-5, 0.1), log=True),
        Float("dropout", (0.0, 0.7)),
        *more,
    )
    return space


def process(config: Config) -> float:
    """Return the loss of a process with four settings in words and a temperature, two of whose optima are coupled."""
    a, b, c, d = (WORDS.index(config[name]) for name in ("feed", "stirring", "acidity", "cooling"))
    heat = (config["temperature"] - 20) / 70
    coupled = 0.3 * (a - 3.2) ** 2 + 0.4 * (b - 1.1 - 0.3 * a) ** 2 + 8 * (heat - 0.2 - 0.12 * d) ** 2
    return float(coupled + 0.5 * abs(c - 2.7) + 0.2 * d - 0.045 * c * d)


def process_space() -> ConfigurationSpace:
    space = ConfigurationSpace({"temperature": (20.0, 90.0)})
    space.add(*(OrdinalHyperparameter(name, WORDS) for name in ("feed", "stirring", "acidity", "cooling")))
    return space


DECADES = [10.0**power for power in range(-3, 4)]

ORDINALS = {
    "hartmann6, 3 of 6 levels": function_on_levels("hartmann6", ("x1", "x3", "x5"), 6),
    "hartmann3, 1 of 9": function_on_levels("hartmann3", ("x2",), 9),
    "ackley5, 3 of 7": function_on_levels("ackley5", ("x1", "x2", "x3"), 7),
    "styblinski-tang5, 2 of 12": function_on_levels("styblinski-tang5", ("x1", "x4"), 12),
    "hartmann6, 2 of 6, and 4 categories": function_on_levels("hartmann6", ("x1", "x3"), 6, "x5", 4),
    "ackley5, 2 of 7, and 5 categories": function_on_levels("ackley5", ("x1", "x2"), 7, "x3", 5),
    "styblinski-tang5, 2 of 9, and 5 categories": function_on_levels("styblinski-tang5", ("x1", "x4"), 9, "x2", 5),
    "training": Problem(training_space(), training, float("nan")),
    "training, 3 optimisers": Problem(
        training_space(Categorical("optimiser", list(OPTIMISERS))), training, float("nan")
    ),
    "process": Problem(process_space(), process, float("nan")),
    "support vectors": on_levels(
        TUNING["support vectors"],
        {"C": DECADES, "gamma": [0.1 * level for level in DECADES[:6]], "degree": [2, 3, 4, 5, 6]},
    ),
    "network": on_levels(TUNING["network"], {"width": [4, 8, 16, 32, 64, 128], "batch_size": [8, 16, 32, 64, 128]}),
    "histograms": on_levels(
        TUNING["histograms"],
        {
            "max_iter": [5, 10, 20, 40, 60],
            "learning_rate": [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0],
            "max_leaf_nodes": [2, 4, 8, 16, 32, 40],
            "l2_regularization": [1e-6, 1e-4, 1e-2, 1.0, 100.0],
            "min_samples_leaf": [1, 2, 5, 10, 20, 50],
            "max_features": [0.1, 0.2, 0.4, 0.6, 0.8, 1.0],
        },
    ),
}
"""Problems by name; "3 of 6 levels" are three ordinals of six levels each. The minima are not given."""
