"""Problems with several objectives, all minimised, most of them with the reference points of BoTorch's test functions.

BraninCurrin: Belakaria, Deshwal & Doppa (2019), *Max-value Entropy Search for Multi-Objective Bayesian Optimization*,
NeurIPS. ZDT1 to ZDT3: Zitzler, Deb & Thiele (2000), *Comparison of Multiobjective Evolutionary Algorithms*, Evol.
Comput. 8:173. DTLZ2: Deb, Thiele, Laumanns & Zitzler (2002), *Scalable Multi-Objective Optimization Test Problems*,
CEC. WFG4 and WFG9: see `benchmarks.common.wfg`. C2-DTLZ2: Jain & Deb (2014), *An Evolutionary Many-Objective
Optimization Algorithm*, part II, IEEE Trans. Evol. Comput. 18:602. VehicleSafety (three objectives): Tanabe & Ishibuchi
(2020), *An Easy-to-use Real-world Multi-objective Optimization Problem Suite*, Appl. Soft Comput. 89:106078, RE3-5-4;
the linear terms are those of Liao et al. (2008). "forest" is the test error and the size of a random forest on
scikit-learn's digits. "branin-currin-noisy" has noise with the standard deviations of Daulton, Balandat & Bakshy
(2021), *Parallel Bayesian Optimization of Multiple Noisy Objectives with Expected Hypervolume Improvement*, NeurIPS;
its hypervolume is that of the values without noise. The tables are from the package `bocode` (see
`benchmarks.common.bocode_problems`): the value of the nearest row, and a cost of this row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from ConfigSpace import ConfigurationSpace, Float, Integer

from benchmarks.common.bocode_problems import Design
from benchmarks.common.problems import branin, point
from benchmarks.common.wfg import wfg
from slayr_py.acquisition import hypervolume

Values = tuple[float, ...]


class Tradeoff(NamedTuple):
    """Objectives, their search space, and what their hypervolume is compared with."""

    space: ConfigurationSpace
    objective: Callable[[Mapping[str, Any]], Values]
    reference: tuple[float, ...]
    largest: float
    """Hypervolume of the front, or of the best one known, within the reference point."""
    constraints: Callable[[Mapping[str, Any]], dict[str, float]] | None = None
    """Values by name; a configuration is feasible if none is positive."""
    noise: tuple[float, ...] | None = None
    """Standard deviations of the normal noise of the objectives."""


def branin_currin(config: Mapping[str, Any]) -> Values:
    x1, x2 = point(config, 2)
    slope = 1 - np.exp(-1 / (2 * x2)) if x2 > 0 else 1.0
    currin = slope * (2300 * x1**3 + 1900 * x1**2 + 2092 * x1 + 60) / (100 * x1**3 + 500 * x1**2 + 4 * x1 + 20)
    return branin({"x1": 15 * x1 - 5, "x2": 15 * x2}), float(currin)


def zdt(config: Mapping[str, Any], number: int, dimension: int) -> Values:
    x = point(config, dimension)
    g = 1 + 9 * np.mean(x[1:])
    ratio = x[0] / g
    shapes = {1: np.sqrt(ratio), 2: ratio**2, 3: np.sqrt(ratio) + ratio * np.sin(10 * np.pi * x[0])}
    return float(x[0]), float(g * (1 - shapes[number]))


def dtlz2(config: Mapping[str, Any], objectives: int, dimension: int) -> Values:
    x = point(config, dimension)
    radius = 1 + np.sum((x[objectives - 1 :] - 0.5) ** 2)
    angles = x[: objectives - 1] * np.pi / 2
    values = []
    for i in range(objectives):
        value = radius * np.prod(np.cos(angles[: objectives - 1 - i]))
        values.append(float(value * np.sin(angles[objectives - 1 - i]) if i > 0 else value))
    return tuple(values)


def c2_dtlz2_constraints(config: Mapping[str, Any], radius: float = 0.2) -> dict[str, float]:
    f = np.array(dtlz2(config, 2, 4))
    corners = min(float((f[i] - 1) ** 2 + f[1 - i] ** 2 - radius**2) for i in range(2))
    middle = float(np.sum((f - 1 / np.sqrt(2)) ** 2) - radius**2)
    return {"ring": min(corners, middle)}


def vehicle_safety(config: Mapping[str, Any]) -> Values:
    """Return the mass, the acceleration and the intrusion of a frontal structure with five thicknesses."""
    a, b, c, d, e = point(config, 5)
    mass = 1640.2823 + 2.3573285 * a + 2.3220035 * b + 4.5688768 * c + 7.7213633 * d + 4.4559504 * e
    acceleration = (
        6.5856 + 1.15 * a - 1.0427 * b + 0.9738 * c + 0.8364 * d - 0.3695 * a * d + 0.0861 * a * e + 0.3628 * b * d
    )
    acceleration += -0.1106 * a**2 - 0.3437 * c**2 + 0.1764 * d**2
    intrusion = -0.0551 + 0.0181 * a + 0.1024 * b + 0.0421 * c - 0.0073 * a * b + 0.024 * b * c - 0.0118 * b * d
    intrusion += -0.0204 * c * d - 0.008 * c * e - 0.0241 * b**2 + 0.0109 * d**2
    return float(mass), float(acceleration), float(intrusion)


@cache
def _digits() -> tuple[np.ndarray, ...]:
    """Return 600 images for training and the other 1,197 for the test, with their digits."""
    from sklearn.datasets import load_digits

    images, digits = load_digits(return_X_y=True)
    order = np.random.RandomState(0).permutation(len(digits))  # noqa: NPY002 (the same on every version of NumPy)
    train = order[:600]
    test = order[600:]
    return images[train], digits[train], images[test], digits[test]


def forest(config: Mapping[str, Any]) -> Values:
    """Return the test error in percent, and the decimal logarithm of the number of nodes, of a random forest."""
    from sklearn.ensemble import RandomForestClassifier

    images, digits, new_images, new_digits = _digits()
    fitted = RandomForestClassifier(**config, random_state=0, n_jobs=1).fit(images, digits)
    nodes = sum(tree.tree_.node_count for tree in fitted.estimators_)
    return 100 * float(np.mean(fitted.predict(new_images) != new_digits)), float(np.log10(nodes))


def forest_space() -> ConfigurationSpace:
    """Return the space of `forest`, with integers on a logarithmic scale."""
    space = ConfigurationSpace({"criterion": ["gini", "entropy"]})
    trees = Integer("n_estimators", (1, 50), log=True)
    leaf = Integer("min_samples_leaf", (1, 30), log=True)
    space.add([trees, Integer("max_depth", (1, 20)), leaf, Float("max_features", (0.02, 1.0), log=True)])
    return space


@cache
def _rows(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the inputs (n, D) and the values (n,) of a table, which are minimised."""
    import bocode

    problem = bocode.get_problem(name)()
    return problem.candidates.numpy(), -problem.values.numpy()


@dataclass(frozen=True)
class NearestRow:
    """The value of the row of a table that is nearest relative to the ranges, and a cost of this row.

    Attributes
    ----------
    name : str
        Of the problem in the package.
    cost : callable
        Map inputs (n, D) to costs (n,).
    """

    name: str
    cost: Callable[[np.ndarray], np.ndarray]

    def __call__(self, config: Mapping[str, Any]) -> Values:
        inputs, _ = _rows(self.name)
        distances = np.sum(np.square((inputs - Design(self.name).row(config)) / np.ptp(inputs, axis=0)), axis=1)
        value, cost = self.outcomes[np.argmin(distances)]
        return float(value), float(cost)

    @property
    def outcomes(self) -> np.ndarray:
        """Values and costs of the rows, (n, 2)."""
        inputs, values = _rows(self.name)
        return np.column_stack([values, self.cost(inputs)])

    def tradeoff(self) -> Tradeoff:
        """Return the problem; a value or cost above the median of the rows is of no use."""
        reference = np.median(self.outcomes, axis=0)
        return Tradeoff(Design(self.name).space(), self, tuple(reference), hypervolume(self.outcomes, reference))


def tables() -> dict[str, Tradeoff]:
    """Return the tables by name; none without the package.

    The costs are: the share of the nanotubes of a conducting film, the material of a crossed barrel, its number of
    struts times their thickness, and the logarithm of the width of a network.
    """
    if find_spec("bocode") is None:
        return {}
    costs: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "P3HT": lambda x: -x[:, 0],
        "CrossedBarrel": lambda x: x[:, 0] * x[:, 3],
        "LCBenchAdult": lambda x: np.log(x[:, 3]),
        "LCBenchKc1": lambda x: np.log(x[:, 3]),
    }
    return {f"table {name}": NearestRow(name, cost).tradeoff() for name, cost in costs.items()}


def box(*ranges: tuple[float, float]) -> ConfigurationSpace:
    return ConfigurationSpace({f"x{i}": (float(low), float(high)) for i, (low, high) in enumerate(ranges, start=1)})


def cube(dimension: int, lower: float = 0.0, upper: float = 1.0) -> ConfigurationSpace:
    return box(*[(lower, upper)] * dimension)


# Areas: below sqrt(x) and x^2 for ZDT1 and ZDT2, whose reference point is (11, 11); a quarter of a disc, and an eighth
# of a ball, for DTLZ2, whose reference point is 1.1; a quarter of an ellipse for WFG4 and WFG9. Others: BoTorch's
# `max_hv`; for C2-DTLZ2 the union of the arcs of the circle that its constraint admits, with a spacing of 1e-6; for the
# forest the front of 4,000 evaluations by NSGA-II (`python -m benchmarks.common.objectives_problems`).
TRADEOFFS = {
    "branin-currin": Tradeoff(cube(2), branin_currin, (18.0, 6.0), 59.36011874867746),
    "zdt1": Tradeoff(cube(6), partial(zdt, number=1, dimension=6), (11.0, 11.0), 121 - 1 / 3),
    "zdt2": Tradeoff(cube(6), partial(zdt, number=2, dimension=6), (11.0, 11.0), 121 - 2 / 3),
    "zdt3": Tradeoff(cube(6), partial(zdt, number=3, dimension=6), (11.0, 11.0), 128.77811613069076),
    "dtlz2-2": Tradeoff(cube(6), partial(dtlz2, objectives=2, dimension=6), (1.1, 1.1), 1.21 - np.pi / 4),
    "dtlz2-3": Tradeoff(cube(6), partial(dtlz2, objectives=3, dimension=6), (1.1,) * 3, 1.331 - np.pi / 6),
    "vehicle-safety": Tradeoff(
        cube(5, 1.0, 3.0), vehicle_safety, (1864.72022, 11.81993945, 0.2903999384), 246.81607081187002
    ),
    "c2-dtlz2": Tradeoff(
        cube(4), partial(dtlz2, objectives=2, dimension=4), (1.1, 1.1), 0.38233335, c2_dtlz2_constraints
    ),
    "wfg4": Tradeoff(cube(6), partial(wfg, number=4), (2.2, 4.4), 9.68 - 2 * np.pi),
    "wfg9": Tradeoff(cube(6), partial(wfg, number=9), (2.2, 4.4), 9.68 - 2 * np.pi),
    "forest": Tradeoff(forest_space(), forest, (50.0, 4.0), 104.38639134344629),
    "branin-currin-noisy": Tradeoff(cube(2), branin_currin, (18.0, 6.0), 59.36011874867746, noise=(15.19, 0.63)),
    **tables(),
}


def main() -> None:
    """Print the hypervolume of the front of the forest that NSGA-II finds in 4,000 evaluations."""
    import optuna

    from slayr_py.study.storage.suggesting import suggest_all

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    problem = TRADEOFFS["forest"]
    sampler = optuna.samplers.NSGAIISampler(seed=0, population_size=100)
    study = optuna.create_study(directions=["minimize"] * 2, sampler=sampler)
    study.optimize(lambda trial: problem.objective(suggest_all(trial, problem.space)), n_trials=4000)
    values = np.array([trial.values for trial in study.trials])
    print(hypervolume(values, np.array(problem.reference)))


if __name__ == "__main__":
    main()
