"""Which parameters are active, for one configuration whose values may be incomplete.

`Rules` evaluates the same conditions for many complete configurations at once; for a single one, ConfigSpace's array
functions take about two hundred times as long as the functions that are used here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace, Constant


def is_active(space: ConfigurationSpace, name: str, params: Mapping[str, Any]) -> bool:
    """Return whether a parameter is active, given the active parameters before it in the space's order.

    Conditions are evaluated on ConfigSpace's vectors, in which an inactive parent is NaN, as in ConfigSpace's own
    sampling and validation.
    """
    conditions = space.parent_conditions_of[name]
    if not conditions:
        return True
    vector = np.full(len(space), np.nan)
    for parent, value in params.items():
        vector[space.index_of[parent]] = space[parent].to_vector(value)
    return all(condition.satisfied_by_vector(vector) for condition in conditions)


def active_names(space: ConfigurationSpace, params: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the parameters that are active under `params`, in the space's order (parents first)."""
    known: dict[str, Any] = {}
    for name in space:
        if name in params and is_active(space, name, known):
            known[name] = params[name]
    return tuple(known)


def is_active_under(space: ConfigurationSpace, name: str, params: Mapping[str, Any]) -> bool:
    """Return whether a parameter is active under any parameters of a trial; illegal values count as missing."""
    legal = {key: value for key, value in params.items() if key in space and space[key].legal_value(value)}
    return is_active(space, name, {key: legal[key] for key in active_names(space, legal)})


def without_inactive(space: ConfigurationSpace, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of some parameters without those that are inactive whatever values the other parameters have."""
    known: dict[str, Any] = {}
    unknown: set[str] = set()
    for name, parameter in space.items():
        if any(parent.name in unknown for parent in space.parents_of[name]) or is_active(space, name, known):
            value = parameter.value if isinstance(parameter, Constant) else values.get(name)
            if name in values or isinstance(parameter, Constant):
                known[name] = value
            if name not in known or not parameter.legal_value(value):
                unknown.add(name)
    return {name: value for name, value in values.items() if name in known}


def missing_names(space: ConfigurationSpace, params: Mapping[str, Any]) -> list[str]:
    """Return the names of the active parameters that a trial has not asked for; constants need not be asked for."""
    known = {name: parameter.value for name, parameter in space.items() if isinstance(parameter, Constant)}
    known |= {name: params[name] for name in space if name in params}
    return [name for name in space if name not in known and is_active_under(space, name, known)]
