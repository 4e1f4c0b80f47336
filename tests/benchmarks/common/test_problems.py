from __future__ import annotations

import pytest
from scipy.optimize import minimize

from benchmarks.common.problems import PROBLEMS, tree
from slayr_py.space import Encoder


@pytest.mark.parametrize(
    ("name", "point", "value"),
    [
        ("func2c", (0.25, 0.794, 0, 0), 1.1951626666666668),
        ("func2c", (-0.989, 0.642, 0, 3), 2.372302186930379),
        ("func2c", (0.594, -0.064, 1, 2), 0.28335501743796665),
        ("func3c", (-0.394, -0.443, 0, 0, 0), 2.4237035689555655),
        ("func3c", (0.991, 0.585, 0, 3, 1), 8.154678167231243),
        ("func3c", (0.244, 0.978, 1, 2, 2), 7.53695377121773),
    ],
)
def test_values_of_the_authors_formulas(name, point, value):
    names = ("x1", "x2", "h1", "h2", "h3")
    assert PROBLEMS[name].objective(dict(zip(names, point, strict=False))) == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize(
    ("point", "value"),
    [
        ((-0.569, 14, 2, 14, 10, 1), 4.321896305079623),
        ((-0.929, 0, 2, 8, 16, 7), 3.3733951540012836),
        ((0.834, 13, 10, 7, 8, 4), 3.4814438591675416),
        ((0.0, 8, 8, 8, 8, 8), 0.0),
    ],
)
def test_ackley(point, value):
    config = dict(zip(("x1", "h1", "h2", "h3", "h4", "h5"), point, strict=True))
    assert PROBLEMS["ackley5c"].objective(config) == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize(
    "name", ["branin", "hartmann3", "hartmann6", "styblinski-tang5", "dixon-price4", "func2c", "func3c"]
)
def test_minima(name):
    """Local searches from many points reach the minimum, and none goes below it."""
    space, objective, minimum, *_ = PROBLEMS[name]
    encoder = Encoder(space)
    found = []
    for config in encoder.sobol(32, 0):
        levels = {n: config[n] for n in encoder.graph_names}
        bounds = [(space[n].lower, space[n].upper) for n in encoder.real_names]

        def on_reals(x, levels=levels):
            return objective(levels | dict(zip(encoder.real_names, x, strict=True)))

        start = [config[n] for n in encoder.real_names]
        found.append(minimize(on_reals, start, bounds=bounds, options={"ftol": 1e-15, "gtol": 1e-9}).fun)
    assert min(found) == pytest.approx(minimum, abs=1e-7)
    assert min(found) >= minimum - 1e-12


@pytest.mark.parametrize("name", ["ackley5", "powell8", "griewank5 of 10"])
def test_minima_at_the_origin(name):
    space, objective, minimum, *_ = PROBLEMS[name]
    assert objective(dict.fromkeys(space, 0.0)) == pytest.approx(minimum, abs=1e-12)
    assert min(objective(config) for config in Encoder(space).sobol(64, 0)) > minimum


def test_the_tree_of_depth_two_is_jenattons():
    space, objective, minimum, *_ = tree(2)
    configs = Encoder(space).sobol(64, 0)
    for config in configs:
        if config["x1"] == 0:
            leaf = config["x4"] ** 2 + 0.1 if config["x2"] == 0 else config["x5"] ** 2 + 0.2
            wanted = leaf + config["r2"]
        else:
            leaf = config["x6"] ** 2 + 0.3 if config["x3"] == 0 else config["x7"] ** 2 + 0.4
            wanted = leaf + config["r3"]
        assert objective(config) == pytest.approx(wanted, rel=1e-14)
    assert objective({"x1": 0, "x2": 0, "x4": 0.0, "r2": 0.0}) == minimum
