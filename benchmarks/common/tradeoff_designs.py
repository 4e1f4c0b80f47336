"""Designs, constrained functions and synthetic processes with several objectives, all minimised.

Written before any sampler had seen them, with reference points chosen by hand.

truss, hatch-cover, rocket-injector: Tanabe & Ishibuchi (2020), *An Easy-to-use Real-world Multi-objective Optimization
Problem Suite*, Appl. Soft Comput. 89:106078, RE2-4-1, RE2-2-4 and RE3-4-7. disc-brake: RE3-4-3 there, whose third
objective, the sum of the violations, is four constraints here. kursawe: Kursawe (1991), *A Variant of Evolution
Strategies for Vector Optimization*, PPSN. fonseca-fleming: Fonseca & Fleming (1995), *An Overview of Evolutionary
Algorithms in Multiobjective Optimization*, Evol. Comput. 3:1. poloni: Poloni et al. (2000), *Hybridization of a
Multi-Objective Genetic Algorithm*, CMAME 186:403. binh-korn, srinivas, tanaka, osyczka-kundu (constraints): Deb (2001),
*Multi-Objective Optimization using Evolutionary Algorithms*, Wiley. laboratory: lost yield and impurity in percent of
a synthetic reaction in one of three solvents, also with noise; network: synthetic error of a neural network, and its
thousands of weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import atan2, cos, exp, log10, pi, sin, sqrt
from typing import Any

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer

from benchmarks.common.objectives_problems import Tradeoff, Values, box, cube
from benchmarks.common.problems import point
from slayr_py.acquisition import hypervolume, non_dominated

Config = Mapping[str, Any]


def numbers(config: Config) -> list[float]:
    """Return the values of x1, x2, ... in this order."""
    values: list[float] = point(config, len(config)).astype(float).tolist()
    return values


def truss(config: Config) -> Values:
    """Return volume and displacement of a truss of four bars."""
    a, b, c, d = numbers(config)
    force, elasticity, length = 10.0, 2e5, 200.0
    volume = length * (2 * a + sqrt(2) * b + sqrt(c) + d)
    displacement = force * length / elasticity * (2 / a + 2 * sqrt(2) / b - 2 * sqrt(2) / c + 2 / d)
    return volume, displacement


def hatch_cover(config: Config) -> Values:
    """Return weight and sum of the violations of a hatch cover."""
    flange, beam = numbers(config)
    elasticity = 7e5
    buckling = elasticity * flange**2 / 100
    bending = 4500 / (flange * beam)
    deflection = 56.2e4 / (elasticity * flange * beam**2)
    excess = [bending / 700 - 1, 1800 / beam / 450 - 1, deflection / 1.5 - 1, bending / buckling - 1]
    return flange + 120 * beam, sum(max(each, 0.0) for each in excess)


def _ring(config: Config) -> tuple[float, float, float, float]:
    """Return the differences of the squares and of the cubes of the radii, the force and the number of surfaces."""
    inner, outer, force, surfaces = numbers(config)
    tiny = 1e-9 * (inner == outer)  # instead of a division by zero
    return outer**2 - inner**2 + tiny, outer**3 - inner**3 + tiny, force, surfaces


def disc_brake(config: Config) -> Values:
    """Return mass and stopping time of a disc brake."""
    ring, cubes, force, surfaces = _ring(config)
    return 4.9e-5 * ring * (surfaces - 1), 9.82e6 * ring / (force * surfaces * cubes)


def disc_brake_constraints(config: Config) -> dict[str, float]:
    ring, cubes, force, surfaces = _ring(config)
    return {
        "width": 20 - (config["x2"] - config["x1"]),
        "pressure": force / (3.14 * ring) - 0.4,
        "heat": 2.22e-3 * force * cubes / ring**2 - 1,
        "torque": 900 - 2.66e-2 * force * surfaces * cubes / ring,
    }


def rocket_injector(config: Config) -> Values:
    """Return three temperatures, scaled, of a rocket injector."""
    a, b, c, d = numbers(config)
    face = 0.692 + 0.477 * a - 0.687 * b - 0.080 * c - 0.0650 * d - 0.167 * a**2 - 0.0129 * b * a + 0.0796 * b**2
    face += -0.0634 * c * a - 0.0257 * c * b + 0.0877 * c**2 - 0.0521 * d * a + 0.00156 * d * b + 0.00198 * d * c
    face += 0.0184 * d**2
    wall = 0.153 - 0.322 * a + 0.396 * b + 0.424 * c + 0.0226 * d + 0.175 * a**2 + 0.0185 * b * a - 0.0701 * b**2
    wall += -0.251 * c * a + 0.179 * c * b + 0.0150 * c**2 + 0.0134 * d * a + 0.0296 * d * b + 0.0752 * d * c
    wall += 0.0192 * d**2
    tip = 0.370 - 0.205 * a + 0.0307 * b + 0.108 * c + 1.019 * d - 0.135 * a**2 + 0.0141 * b * a + 0.0998 * b**2
    tip += 0.208 * c * a - 0.0301 * c * b - 0.226 * c**2 + 0.353 * d * a - 0.0497 * d * c - 0.423 * d**2
    tip += 0.202 * b * a**2 - 0.281 * c * a**2 - 0.342 * b**2 * a - 0.245 * b**2 * c + 0.281 * c**2 * b
    tip += -0.184 * d**2 * a - 0.281 * b * a * c
    return face, wall, tip


def kursawe(config: Config) -> Values:
    x = numbers(config)
    first = sum(-10 * exp(-0.2 * sqrt(p**2 + q**2)) for p, q in zip(x[:-1], x[1:], strict=True))
    return first, sum(abs(p) ** 0.8 + 5 * sin(p**3) for p in x)


def fonseca_fleming(config: Config) -> Values:
    """Return the objectives of four inputs, with their optima at 1/2 and -1/2."""
    x = np.array(numbers(config))
    return float(1 - np.exp(-np.sum((x - 0.5) ** 2))), float(1 - np.exp(-np.sum((x + 0.5) ** 2)))


def poloni(config: Config) -> Values:
    def waves(p: float, q: float) -> np.ndarray:
        first = 0.5 * sin(p) - 2 * cos(p) + sin(q) - 1.5 * cos(q)
        return np.array([first, 1.5 * sin(p) - cos(p) + 2 * sin(q) - 0.5 * cos(q)])

    p, q = numbers(config)
    return 1 + float(np.sum((waves(1.0, 2.0) - waves(p, q)) ** 2)), (p + 3) ** 2 + (q + 1) ** 2


def binh_korn(config: Config) -> Values:
    p, q = numbers(config)
    return 4 * p**2 + 4 * q**2, (p - 5) ** 2 + (q - 5) ** 2


def binh_korn_constraints(config: Config) -> dict[str, float]:
    p, q = numbers(config)
    return {"near": (p - 5) ** 2 + q**2 - 25, "far": 7.7 - (p - 8) ** 2 - (q + 3) ** 2}


def srinivas(config: Config) -> Values:
    p, q = numbers(config)
    return 2 + (p - 2) ** 2 + (q - 1) ** 2, 9 * p - (q - 1) ** 2


def srinivas_constraints(config: Config) -> dict[str, float]:
    p, q = numbers(config)
    return {"disc": p**2 + q**2 - 225, "line": p - 3 * q + 10}


def tanaka(config: Config) -> Values:
    p, q = numbers(config)
    return p, q


def tanaka_constraints(config: Config) -> dict[str, float]:
    p, q = numbers(config)
    wave = 0.1 * cos(16 * atan2(p, q))
    return {"wave": 1 + wave - p**2 - q**2, "disc": (p - 0.5) ** 2 + (q - 0.5) ** 2 - 0.5}


def osyczka_kundu(config: Config) -> Values:
    x = np.array(numbers(config))
    centres, weights = np.array([2, 2, 1, 4, 1]), np.array([25, 1, 1, 1, 1])
    return float(-np.sum(weights * (x[:5] - centres) ** 2)), float(np.sum(x**2))


def osyczka_kundu_constraints(config: Config) -> dict[str, float]:
    a, b, c, d, e, f = numbers(config)
    lines = [2 - a - b, a + b - 6, b - a - 2, a - 3 * b - 2]
    return {f"c{i}": each for i, each in enumerate([*lines, (c - 3) ** 2 + d - 4, 4 - (e - 3) ** 2 - f], start=1)}


def laboratory(config: Config) -> Values:
    """Return minus the yield, and the impurity, in percent."""
    best, shift, residue = {"water": (60, -0.3, 0.0), "dmf": (80, 0.4, 0.05), "thf": (45, 0.0, -0.05)}[
        config["solvent"]
    ]
    catalyst, hours = log10(config["catalyst"]), config["hours"]
    rate = exp(-(((config["temperature"] - best) / 28) ** 2) - (catalyst - shift) ** 2 / 1.5)
    impurity = 0.02 + 0.1 * residue + 0.003 * hours + 0.15 * ((config["temperature"] - 20) / 100) ** 2
    return -95 * rate * (1 - exp(-hours / 3)), 100 * (impurity + 0.0125 * (catalyst + 1) ** 2)


def laboratory_space() -> ConfigurationSpace:
    space = ConfigurationSpace()
    floats = [Float("temperature", (20, 120)), Float("catalyst", (0.05, 20), log=True), Float("hours", (0.5, 12))]
    space.add([*floats, Categorical("solvent", ["water", "dmf", "thf"])])
    return space


def network(config: Config) -> Values:
    """Return the error, and the number of weights in thousands."""
    weights = config["width"] ** 2 * config["depth"] + 50 * config["width"]
    capacity = log10(weights)
    error = 0.03 + 0.5 * exp(-0.8 * (capacity - 2))
    if config["activation"] == "sigmoid":
        error += 0.03 * config["depth"]
    error += 0.02 * (log10(config["rate"]) + 2.1 + 0.2 * config["depth"]) ** 2
    return error + 0.05 * (config["dropout"] - 0.05 * capacity) ** 2, weights / 1e3


def network_space() -> ConfigurationSpace:
    space = ConfigurationSpace()
    sizes = [Integer("width", (4, 512), log=True), Integer("depth", (1, 6))]
    space.add([*sizes, Float("rate", (1e-5, 1e-1), log=True), Float("dropout", (0, 0.6))])
    space.add(Categorical("activation", ["relu", "tanh", "sigmoid"]))
    return space


# The hypervolumes are those of the fronts that `python -m benchmarks.common.tradeoff_designs` finds.
DESIGNS = {
    "truss": Tradeoff(box((1, 3), (sqrt(2), 3), (sqrt(2), 3), (1, 3)), truss, (3000.0, 0.05), 63.515837791109874),
    "hatch-cover": Tradeoff(box((0.5, 4), (4, 50)), hatch_cover, (6000.0, 3.0), 16557.724005031694),
    "disc-brake": Tradeoff(
        box((55, 80), (75, 110), (1000, 3000), (11, 20)),
        disc_brake,
        (4.0, 12.0),
        28.12503923999166,
        disc_brake_constraints,
    ),
    "rocket-injector": Tradeoff(cube(4), rocket_injector, (1.1, 1.2, 1.2), 1.4320025145694535),
    "kursawe": Tradeoff(cube(3, -5, 5), kursawe, (-12.0, 4.0), 85.51636496420434),
    "fonseca-fleming": Tradeoff(cube(4, -4, 4), fonseca_fleming, (1.0, 1.0), 0.3417955360612937),
    "poloni": Tradeoff(cube(2, -pi, pi), poloni, (20.0, 26.0), 460.0754642468009),
    "binh-korn": Tradeoff(box((0, 5), (0, 3)), binh_korn, (140.0, 50.0), 5284.128816172182, binh_korn_constraints),
    "srinivas": Tradeoff(cube(2, -20, 20), srinivas, (250.0, 0.0), 30655.087318873684, srinivas_constraints),
    "tanaka": Tradeoff(cube(2, 0, pi), tanaka, (1.2, 1.2), 0.6546736461215129, tanaka_constraints),
    "osyczka-kundu": Tradeoff(
        box((0, 10), (0, 10), (1, 5), (0, 6), (1, 5), (0, 10)),
        osyczka_kundu,
        (0.0, 90.0),
        19427.231596928,
        osyczka_kundu_constraints,
    ),
    "laboratory": Tradeoff(laboratory_space(), laboratory, (0.0, 30.0), 2484.172970508813),
    "laboratory-noisy": Tradeoff(laboratory_space(), laboratory, (0.0, 30.0), 2484.172970508813, noise=(3.0, 0.8)),
    "network": Tradeoff(network_space(), network, (0.4, 300.0), 96.79851099377179),
}


def front_rows(values: np.ndarray, most: int) -> np.ndarray:
    """Return the indices of at most ``most`` different rows of values (n, k) that no other row dominates."""
    values, first = np.unique(values, axis=0, return_index=True)
    kept = np.flatnonzero(non_dominated(values))
    spread = np.linspace(0, len(kept) - 1, min(most, len(kept))).round().astype(int)
    return np.asarray(first[kept[spread]])


def largest(problem: Tradeoff, rounds: int, each: int, most: int, seed: int = 0) -> float:
    """Return the hypervolume of a front that grows by random configurations and by perturbing its members."""
    rng = np.random.default_rng(seed)
    reference = np.array(problem.reference)
    names = list(problem.space)

    def feasible(config: Config) -> bool:
        return problem.constraints is None or max(problem.constraints(config).values()) <= 0

    def configurations(members: Sequence[Config]) -> list[Config]:
        drawn: list[Config] = [dict(config) for config in problem.space.sample_configuration(each)]
        if not members:
            return drawn
        made = drawn[: each // 5]
        for other in drawn[each // 5 :]:
            config = dict(members[rng.integers(len(members))])
            scale = 10.0 ** rng.uniform(-5, -0.5)
            for name in names:
                if rng.random() < 1.5 / len(names):
                    config[name] = _near(problem.space[name], config[name], other[name], scale, rng)
            made.append(config)
        return made

    problem.space.seed(seed)
    front: list[Config] = []
    values = np.empty((0, len(reference)))
    for _ in range(rounds):
        found = [config for config in configurations(front) if feasible(config)]
        new = np.array([problem.objective(config) for config in found]).reshape(-1, len(reference))
        inside = np.all(new < reference, axis=1)
        front += [config for config, good in zip(found, inside, strict=True) if good]
        values = np.vstack([values, new[inside]])
        rows = front_rows(values, most)
        front, values = [front[i] for i in rows], values[rows]
    return hypervolume(values, reference)


def _near(parameter: Any, value: Any, other: Any, scale: float, rng: np.random.Generator) -> Any:
    """Return a value near another of a parameter, ``scale`` being a part of the range; a category is drawn."""
    if isinstance(value, str):
        return other
    moved = parameter.to_vector(value) + scale * rng.standard_normal()
    return parameter.to_value(float(np.clip(moved, 0.0, 1.0)))


def main() -> None:
    """Print the hypervolume of the front of each problem, found with two seeds."""
    for name, problem in DESIGNS.items():
        print(name, [largest(problem, rounds=80, each=5000, most=4000, seed=seed) for seed in range(2)], flush=True)


if __name__ == "__main__":
    main()
