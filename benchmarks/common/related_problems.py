"""New problems with data of related ones, for pre-training of covariance functions.

The synthetic problem of Shilton et al. (arXiv 1802.05370, section 5.3); Branin and Hartmann6, whose related functions
have coefficients perturbed by 10%; the tutorial problem of rank-weighted Gaussian process ensembles in BoTorch; and
tables of support vector machines, where one data set is related to another (Wistuba et al. 2016).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from ConfigSpace import ConfigurationSpace

from benchmarks.common import problems
from benchmarks.common.data_problems import svm_table
from benchmarks.common.problems import Problem
from slayr_py.space import Encoder


class Related(NamedTuple):
    """A problem to minimise, and observations of a related one."""

    problem: Problem
    configs: list[dict[str, Any]]
    y: np.ndarray

    def misleading(self, seed: int) -> Related:
        """Return the problem with permuted values of the related one."""
        return self._replace(y=np.random.default_rng(seed).permutation(self.y))


def ring(config: Mapping[str, Any]) -> float:
    radius = float(np.hypot(config["x1"], config["x2"]))
    return float(np.sin(5 * np.pi * radius) * np.exp(-5 * (radius - 0.5) ** 2))


def _radius(config: Mapping[str, Any]) -> float:
    return float(np.hypot(config["x1"], config["x2"]))


def _uniform(space: ConfigurationSpace, n: int, seed: int) -> list[dict[str, Any]]:
    encoder = Encoder(space)
    rng = np.random.default_rng(seed)
    encoded, allowed = encoder.resolve(encoder.from_uniform(rng.random((2 * n + 20, len(encoder.names)))))
    return [dict(config) for config in encoder.decode(encoded[np.flatnonzero(allowed)[:n]])]


def of_radius(seed: int) -> Related:
    space = ConfigurationSpace({"x1": (-1.0, 1.0), "x2": (-1.0, 1.0)})
    configs = _uniform(space, 100, 1000 + seed)
    return Related(Problem(space, ring, -0.8251182), configs, np.array([_radius(c) for c in configs]))


def perturbed_branin(config: Mapping[str, Any], factors: np.ndarray) -> float:
    """Branin with its six coefficients multiplied by factors."""
    a, b, c, r, s, t = np.array([1, 5.1 / (4 * np.pi**2), 5 / np.pi, 6, 10, 1 / (8 * np.pi)]) * factors
    x1 = config["x1"]
    x2 = config["x2"]
    return float(a * (x2 - b * x1**2 + c * x1 - r) ** 2 + s * (1 - t) * np.cos(x1) + s)


def perturbed_hartmann6(config: Mapping[str, Any], factors: np.ndarray) -> float:
    """Hartmann6 with its exponents multiplied by factors, (4, 6)."""
    x = problems.point(config, 6)
    inner = np.sum(factors * problems.HARTMANN_A6 * (x - problems.HARTMANN_P6) ** 2, axis=1)
    return float(-problems.HARTMANN_WEIGHTS @ np.exp(-inner))


def _perturbed(name: str, function: Callable[..., float], size: tuple[int, ...], seed: int) -> Related:
    problem = problems.PROBLEMS[name]
    factors = np.random.default_rng(2000 + seed).uniform(0.9, 1.1, size)
    configs = _uniform(problem.space, 100, 3000 + seed)
    return Related(problem, configs, np.array([function(config, factors) for config in configs]))


def wave(config: Mapping[str, Any], shift: float = 0.0) -> float:
    x = config["x"]
    return float(x * np.sin(x + np.pi + shift) + x / 10)


def ensemble_tutorial(seed: int) -> Related:
    space = ConfigurationSpace({"x": (-10.0, 10.0)})
    rng = np.random.default_rng(4000 + seed)
    configs = []
    values = []
    for i in range(1, 6):
        some = _uniform(space, 20, 5000 + 10 * seed + i)
        configs += some
        values += [wave(config, np.pi * i / 12) + 0.05 * rng.normal() for config in some]
    grid = np.linspace(-10, 10, 200_001)
    return Related(Problem(space, wave, min(wave({"x": x}) for x in grid)), configs, np.array(values))


def svm_transfer(seed: int, data: Path) -> Related:
    """Return the table of one data set, with that of another as related data; seeds are pairs of data sets."""
    names = sorted(pd.read_csv(data / "hpo" / "svm_conditional_wistuba.csv")["dataset"].unique())
    target, source = np.random.default_rng(6000 + seed).permutation(names)[:2]
    problem = svm_table(data, target)
    related = svm_table(data, source)
    keys = list(related.objective.keywords["errors"])  # type: ignore[attr-defined]
    configs = [
        {name: value for name, value in zip(("kernel", "log2_C", "gamma", "degree"), key, strict=True) if value != -1}
        for key in keys
    ]
    # log2_C may be -1 itself.
    configs = [config | {"log2_C": key[1]} for config, key in zip(configs, keys, strict=True)]
    return Related(problem, configs, np.array([related.objective(config) for config in configs]))


def related(name: str, seed: int, data: Path | None = None) -> Related:
    """Return a problem and its related data for one repetition."""
    makers: dict[str, Callable[[int], Related]] = {
        "ring": of_radius,
        "branin": lambda s: _perturbed("branin", perturbed_branin, (6,), s),
        "hartmann6": lambda s: _perturbed("hartmann6", perturbed_hartmann6, (4, 6), s),
        "rgpe": ensemble_tutorial,
    }
    if name == "svm":
        if data is None:
            raise SystemExit("the tables of support vector machines need --data FOLDER")
        return partial(svm_transfer, data=data)(seed)
    return makers[name](seed)


NAMES = ("ring", "branin", "hartmann6", "rgpe", "svm")
