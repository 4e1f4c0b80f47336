"""Spaces and functions used by several test files."""

from __future__ import annotations

import numpy as np
from ConfigSpace import (
    AndConjunction,
    Beta,
    Categorical,
    ConfigurationSpace,
    Constant,
    EqualsCondition,
    Float,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    ForbiddenEqualsRelation,
    ForbiddenGreaterThanClause,
    ForbiddenGreaterThanEqualsClause,
    ForbiddenGreaterThanEqualsRelation,
    ForbiddenGreaterThanRelation,
    ForbiddenInClause,
    ForbiddenLessThanClause,
    ForbiddenLessThanEqualsClause,
    ForbiddenLessThanEqualsRelation,
    ForbiddenLessThanRelation,
    ForbiddenOrConjunction,
    GreaterThanCondition,
    InCondition,
    Integer,
    LessThanCondition,
    Normal,
    NotEqualsCondition,
    OrConjunction,
)


def plain_space() -> ConfigurationSpace:
    return ConfigurationSpace({"x": (0.0, 1.0), "z": (-5.0, 10.0)})


def mixed_space() -> ConfigurationSpace:
    space = ConfigurationSpace()
    space.add(
        Float("lr", (1e-4, 1e-1), log=True),
        Integer("layers", (1, 5)),
        Integer("units", (8, 512), log=True),
        Categorical("act", ["relu", "tanh", "gelu"]),
        Categorical("size", ["small", "medium", "large"], ordered=True),
        Constant("dataset", "iris"),
    )
    return space


def conditional_space() -> ConfigurationSpace:
    space = ConfigurationSpace()
    kernel = Categorical("kernel", ["linear", "poly", "rbf"])
    degree = Integer("degree", (2, 5))
    gamma = Float("gamma", (1e-3, 1e1), log=True)
    coef = Float("coef0", (-1.0, 1.0))
    marker = Constant("marker", 7)
    space.add(kernel, degree, gamma, coef, marker, Float("C", (1e-2, 1e2), log=True))
    space.add(
        EqualsCondition(degree, kernel, "poly"),
        InCondition(gamma, kernel, ["poly", "rbf"]),
        EqualsCondition(coef, degree, 3),
        EqualsCondition(marker, kernel, "rbf"),
    )
    space.add(ForbiddenAndConjunction(ForbiddenEqualsClause(kernel, "poly"), ForbiddenEqualsClause(degree, 5)))
    return space


SPACES = {"plain": plain_space, "mixed": mixed_space, "conditional": conditional_space}


def compared_space() -> ConfigurationSpace:
    """Every comparison, on every kind of parent that ConfigSpace allows for it."""
    space = ConfigurationSpace()
    parents = {
        "cat": Categorical("cat", ["a", "b", "c"]),
        "ord": Categorical("ord", ["low", "mid", "high", "top"], ordered=True, default="high"),
        "int": Integer("int", (1, 9)),
        "logint": Integer("logint", (3, 90), log=True),
        "float": Float("float", (-1.0, 3.0)),
        "logfloat": Float("logfloat", (1e-3, 7.0), log=True),
        "const": Constant("const", "here"),
    }
    comparisons = {
        "cat_is": (EqualsCondition, "cat", "b"),
        "cat_not": (NotEqualsCondition, "cat", "b"),
        "cat_in": (InCondition, "cat", ["a", "c"]),
        "ord_is": (EqualsCondition, "ord", "mid"),
        "ord_above": (GreaterThanCondition, "ord", "mid"),
        "ord_below": (LessThanCondition, "ord", "high"),
        "int_in": (InCondition, "int", [2, 3, 5, 7]),
        "int_above": (GreaterThanCondition, "int", 5),
        "logint_is": (EqualsCondition, "logint", 10),
        "logint_above": (GreaterThanCondition, "logint", 30),
        "float_below": (LessThanCondition, "float", 0.25),
        "float_not": (NotEqualsCondition, "float", 0.0),
        "logfloat_above": (GreaterThanCondition, "logfloat", 0.1),
        "const_is": (EqualsCondition, "const", "here"),
    }
    children = {name: Float(name, (0.0, 1.0)) for name in comparisons}
    space.add(*parents.values(), *children.values())
    space.add(*(of(children[name], parents[parent], value) for name, (of, parent, value) in comparisons.items()))
    return space


def nested_space() -> ConfigurationSpace:
    """A tree with nested conjunctions, a parent that comes after its child, and constants in between."""
    space = ConfigurationSpace()
    z_root = Categorical("z_root", ["net", "forest", "off"])
    layers = Integer("layers", (1, 4))
    units = Integer("units", (8, 512), log=True)
    trees = Integer("trees", (10, 500))
    drop = Categorical("drop", [True, False])
    rate = Float("rate", (0.0, 0.5))
    fixed = Constant("fixed", 3)
    after = Float("after", (1.0, 2.0))
    either = Float("either", (-1.0, 1.0))
    deep = Categorical("deep", ["s", "m", "l"], ordered=True)
    unless = Categorical("unless", ["p", "q"])
    space.add(z_root, layers, units, trees, drop, rate, fixed, after, either, deep, unless)
    space.add(
        EqualsCondition(rate, drop, True),
        EqualsCondition(drop, z_root, "net"),
        EqualsCondition(layers, z_root, "net"),
        GreaterThanCondition(units, layers, 1),
        EqualsCondition(trees, z_root, "forest"),
        EqualsCondition(fixed, layers, 2),
        EqualsCondition(after, fixed, 3),
        OrConjunction(GreaterThanCondition(either, trees, 250), LessThanCondition(either, units, 64)),
        AndConjunction(
            OrConjunction(EqualsCondition(deep, layers, 3), EqualsCondition(deep, layers, 4)),
            NotEqualsCondition(deep, drop, True),
        ),
        NotEqualsCondition(unless, layers, 1),  # for ConfigSpace an inactive parent differs from every value
    )
    return space


def forbidding_space() -> ConfigurationSpace:
    """Every clause, on active and on inactive parameters."""
    space = ConfigurationSpace()
    a = Integer("a", (0, 9), default=4)
    b = Integer("b", (0, 9), default=5)
    c = Integer("c", (0, 9), default=6)
    size = Categorical("size", ["s", "m", "l", "xl"], ordered=True, default="m")
    kind = Categorical("kind", ["p", "q", "r"], default="r")
    x = Float("x", (0.0, 1.0))
    y = Float("y", (0.25, 2.0))
    space.add(a, b, c, size, kind, x, y)
    space.add(InCondition(c, kind, ["q", "r"]), EqualsCondition(y, kind, "r"))
    space.add(
        ForbiddenGreaterThanClause(size, "l"),
        ForbiddenLessThanClause(a, 1),
        ForbiddenAndConjunction(ForbiddenEqualsClause(kind, "p"), ForbiddenInClause(a, [2, 3])),
        ForbiddenAndConjunction(ForbiddenLessThanEqualsClause(b, 2), ForbiddenGreaterThanEqualsClause(x, 0.5)),
        ForbiddenOrConjunction(
            ForbiddenEqualsClause(c, 0),
            ForbiddenAndConjunction(ForbiddenGreaterThanClause(x, 0.9), ForbiddenLessThanEqualsClause(size, "m")),
        ),
        ForbiddenGreaterThanRelation(x, y),
        ForbiddenEqualsRelation(a, b),
        ForbiddenAndConjunction(ForbiddenLessThanRelation(a, c), ForbiddenGreaterThanEqualsRelation(b, c)),
        ForbiddenAndConjunction(ForbiddenLessThanEqualsRelation(c, a), ForbiddenEqualsClause(kind, "q")),
    )
    return space


def odd_levels_space() -> ConfigurationSpace:
    """Levels of every type, one level only, numbers that few digits do not hold, and other distributions."""
    space = ConfigurationSpace()
    space.add(
        Categorical("mixed", [None, "balanced", 0.5]),
        Categorical("shape", [(8,), (8, 8), (16, 8, 4)]),
        Categorical("flag", [True, False]),
        Categorical("rank", [10, 2, 33], ordered=True),
        Categorical("only", ["one"]),
        Float("large", (1e5, 3e9), log=True),
        Float("tiny", (1e-9, 1e-3), log=True),
        Float("bell", (-1.0, 1.0), distribution=Normal(0.0, 0.5)),
        Integer("skewed", (2, 40), distribution=Beta(2, 5), log=True),
    )
    return space


RULED_SPACES = {
    "compared": compared_space,
    "nested": nested_space,
    "forbidding": forbidding_space,
    "odd levels": odd_levels_space,
}


def branin(config) -> float:
    x1 = config["x1"]
    x2 = config["x2"]
    curve = x2 - 5.1 / (4 * np.pi**2) * x1**2 + 5 / np.pi * x1 - 6
    return float(curve**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x1) + 10)
