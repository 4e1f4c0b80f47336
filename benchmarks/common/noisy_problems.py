"""Eight functions, each with normal noise of three sizes, whose values without noise are known.

The noise has 5%, 20% and 50% of the standard deviation of the function over its space. Branin, Hartmann3, Hartmann6 and
the six-hump camel (Dixon & Szegö 1978); a sphere in four dimensions; a function with many minima in three; a curved
valley in two, on a logarithmic scale; and a laboratory recipe with a material, a share, a rate and a number of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace, Float

from benchmarks.common.problems import PROBLEMS, Problem, box, point

Config = Mapping[str, Any]

SHARES = {"5%": 0.05, "20%": 0.2, "50%": 0.5}
"""Standard deviations of the noise, relative to that of the function."""

_SAMPLE = 2000  # configurations behind the standard deviation of a function
_MATERIALS = {"a": (1.0, 0.2), "b": (0.2, 0.5), "c": (0.0, 0.7), "d": (0.6, 0.4), "e": (2.0, 0.9)}


def sphere(config: Config) -> float:
    return float(np.sum(np.square(point(config, 4) - [0.3, -0.7, 1.1, -0.2])))


def six_hump_camel(config: Config) -> float:
    x, y = config["x1"], config["x2"]
    return float((4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + (4 * y**2 - 4) * y**2)


def many_minima(config: Config) -> float:
    x = point(config, 3) - 0.4
    return float(np.sum(x**2 - 3 * np.cos(2 * np.pi * x)))


def valley(config: Config) -> float:
    x, y = config["x1"], config["x2"]
    return float(np.log1p(100 * (y - x**2) ** 2 + (1 - x) ** 2))


def recipe(config: Config) -> float:
    offset, share = _MATERIALS[config["material"]]
    steps = config["steps"]
    rate = (np.log10(config["rate"]) + 2) ** 2
    return float(offset + 4 * (config["share"] - share) ** 2 + (0.75 + 0.15 * steps) * rate + 0.05 * (steps - 4) ** 2)


def recipe_space() -> ConfigurationSpace:
    space = ConfigurationSpace({"material": list(_MATERIALS), "share": (0.0, 1.0), "steps": (0, 9)})
    space.add(Float("rate", (1e-4, 1.0), log=True))
    return space


FUNCTIONS = {
    "branin": PROBLEMS["branin"],
    "hartmann3": PROBLEMS["hartmann3"],
    "hartmann6": PROBLEMS["hartmann6"],
    "sphere": Problem(box(4, -2.0, 2.0), sphere, 0.0),
    "camel": Problem(ConfigurationSpace({"x1": (-2.0, 2.0), "x2": (-1.0, 1.0)}), six_hump_camel, -1.0316284534898774),
    "many minima": Problem(box(3, -2.0, 2.0), many_minima, -9.0),
    "valley": Problem(box(2, -2.0, 2.0), valley, 0.0),
    "recipe": Problem(recipe_space(), recipe, 0.0),
}


def standard_deviation(space: ConfigurationSpace, function: Callable[[Config], float]) -> float:
    """Return the standard deviation of a function over its space."""
    sampled = ConfigurationSpace(space=dict(space), seed=0)
    return float(np.std([function(dict(config)) for config in sampled.sample_configuration(_SAMPLE)]))


def noisy_problems() -> dict[str, Problem]:
    """Return the problems by name, such as "branin, 5%"."""
    deviations = {name: standard_deviation(each.space, each.objective) for name, each in FUNCTIONS.items()}
    return {
        f"{name}, {size}": problem._replace(noise=share * deviations[name])
        for name, problem in FUNCTIONS.items()
        for size, share in SHARES.items()
    }
