"""Find parameters whose condition can never hold.

A condition compares its parents with constants. It suffices to try the constants and a value between any two of them as
values of a parent. The result is exact, even if a condition holds for one float in a million. Forbidden clauses are
ignored, since a user may forbid a value and keep the parameters that depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from ConfigSpace.conditions import Condition, InCondition
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    Constant,
    FloatHyperparameter,
    Hyperparameter,
    IntegerHyperparameter,
    OrdinalHyperparameter,
)

from slayr_py.space.dimension import FloatArray
from slayr_py.space.rules import Rules, literals

_SAMPLES = 1024  # random combinations that are tried first; most parameters are active in one of them
_COMBINATIONS = 2**16  # most combinations tried for each of the other parameters


def never_active(rules: Rules) -> list[str]:
    """Return the names of the parameters that are inactive in every configuration.

    A parameter is listed if its condition fails for all combinations of its ancestors' values. If these are too many,
    all combinations of its parents' values are tried, where a conditional parent may also be inactive.
    """
    space = rules.space
    compared: dict[str, list[Condition]] = {}
    for condition in space.conditions:
        for literal in literals(condition):
            compared.setdefault(literal.parent.name, []).append(literal)
    states = {name: _states(space[name], literals_on) for name, literals_on in compared.items()}

    rng = np.random.default_rng(0)
    sample = _vectors(rules, {name: rng.choice(values, _SAMPLES) for name, values in states.items()}, _SAMPLES)
    active = rules.switch_off(sample)
    unseen = [name for row, name in enumerate(space) if not active[row].any()]
    return [name for name in unseen if not _possible(rules, name, states)]


def _possible(rules: Rules, name: str, states: Mapping[str, FloatArray]) -> bool:
    space = rules.space
    tried = _combinations({ancestor: states[ancestor] for ancestor in rules.ancestors[name]})
    if tried is not None:
        vectors = _vectors(rules, *tried)
        return bool(rules.switch_off(vectors)[space.index_of[name]].any())
    tried = _combinations(
        {
            parent.name: np.append(states[parent.name], [np.nan] if space.parent_conditions_of[parent.name] else [])
            for parent in space.parents_of[name]
        }
    )
    return tried is None or bool(rules.holds(name, _vectors(rules, *tried)).any())


def _combinations(states: Mapping[str, FloatArray]) -> tuple[dict[str, FloatArray], int] | None:
    """Return every combination of the states and their number; None if there are too many."""
    sizes = [len(values) for values in states.values()]
    count = math.prod(sizes)
    if count > _COMBINATIONS:
        return None
    indices = np.indices(sizes).reshape(len(sizes), -1)
    return {name: values[chosen] for (name, values), chosen in zip(states.items(), indices, strict=True)}, count


def _vectors(rules: Rules, rows: Mapping[str, FloatArray], count: int) -> FloatArray:
    vectors = np.zeros((len(rules.space), count))
    for name, row in rows.items():
        vectors[rules.space.index_of[name]] = row
    return vectors


def _states(parent: Hyperparameter[Any, Any], compared: list[Condition]) -> FloatArray:
    """Return values of a parent, as in ConfigSpace's vectors, that cover every outcome of its comparisons."""
    constants = [v for c in compared for v in (c.values if isinstance(c, InCondition) else [c.value])]
    thresholds = np.array([parent.to_vector(v) for v in constants], dtype=np.float64)
    if isinstance(parent, Constant):
        return thresholds[:1]
    if isinstance(parent, FloatHyperparameter):
        ends = np.unique([0.0, *thresholds, 1.0])
        return np.concatenate([ends, (ends[:-1] + ends[1:]) / 2])
    if isinstance(parent, IntegerHyperparameter):
        near = _and_beside(np.rint(constants), parent.lower, parent.upper)
        return np.asarray(parent.to_vector(near))
    assert isinstance(parent, CategoricalHyperparameter | OrdinalHyperparameter)
    return _and_beside(thresholds, 0, parent.size - 1)


def _and_beside(whole: FloatArray, lower: int, upper: int) -> FloatArray:
    return np.unique(np.clip([lower, *whole - 1, *whole, *whole + 1, upper], lower, upper))
