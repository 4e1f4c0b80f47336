"""ConfigSpace parameters as Optuna distributions, and configurations as Optuna parameters and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    Constant,
    FloatHyperparameter,
    Hyperparameter,
    IntegerHyperparameter,
    OrdinalHyperparameter,
)
from ConfigSpace.util import deactivate_inactive_hyperparameters
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from slayr_py.errors import SpaceError


def space_to_distributions(space: ConfigurationSpace) -> dict[str, BaseDistribution]:
    """Give every parameter of a space its Optuna distribution.

    Floats and integers keep their bounds and log scale; categoricals and ordinals become categorical (a model that
    knows of the order reads it from the space); a constant is a categorical of one choice. Conditions and forbidden
    clauses have no counterpart in Optuna: `active_names` answers for them.

    Parameters
    ----------
    space : ConfigurationSpace
        The declared search space.

    Returns
    -------
    dict of str to optuna.distributions.BaseDistribution
        In the order of the space's own keys, inactive parameters included.

    Raises
    ------
    SpaceError
        The space is empty, or has a choice that Optuna cannot store (anything but None, bool, int, float, str).
    """
    if len(space) == 0:
        raise SpaceError("the search space is empty: add at least one parameter to the ConfigurationSpace")
    return {name: _distribution(parameter) for name, parameter in space.items()}


def _distribution(parameter: Hyperparameter[Any, Any]) -> BaseDistribution:
    if isinstance(parameter, FloatHyperparameter):
        return FloatDistribution(float(parameter.lower), float(parameter.upper), log=bool(parameter.log))
    if isinstance(parameter, IntegerHyperparameter):
        return IntDistribution(int(parameter.lower), int(parameter.upper), log=bool(parameter.log))
    return CategoricalDistribution(levels(parameter))


def levels(parameter: Hyperparameter[Any, Any]) -> tuple[None | bool | int | float | str, ...]:
    """Give the values of a categorical, ordinal or constant parameter, as plain Python objects in their own order."""
    if isinstance(parameter, CategoricalHyperparameter):
        values = tuple(parameter.choices)
    elif isinstance(parameter, OrdinalHyperparameter):
        values = tuple(parameter.sequence)
    elif isinstance(parameter, Constant):
        values = (parameter.value,)
    else:
        raise SpaceError(
            f"parameter {parameter.name!r} is of a kind that is not known here: {type(parameter).__name__}"
        )
    plain = tuple(value.item() if isinstance(value, np.generic) else value for value in values)
    for value in plain:
        if value is not None and not isinstance(value, bool | int | float | str):
            raise SpaceError(
                f"parameter {parameter.name!r} has the choice {value!r}, which a study cannot store; name the choices "
                "with strings or numbers and look the object up in the objective"
            )
    return plain


def to_params(config: Configuration) -> dict[str, Any]:
    """Give a configuration's active values as plain Python objects that its distributions contain.

    ConfigSpace rounds floats to a fixed number of decimals when they are read by name, which can leave the bounds and
    loses the digits of small values; where that matters the value is taken from the unit-scaled vector.
    """
    space, vector = config.config_space, config.get_array()
    params: dict[str, Any] = {}
    for name, parameter in space.items():
        position = vector[space.index_of[name]]
        if np.isnan(position):
            continue
        if isinstance(parameter, FloatHyperparameter):
            exact, rounded = float(parameter.to_value(position)), float(config[name])
            value = rounded if np.isclose(rounded, exact, rtol=1e-12, atol=0.0) else exact
            params[name] = float(np.clip(value, parameter.lower, parameter.upper))
        elif isinstance(parameter, IntegerHyperparameter):
            params[name] = int(np.clip(int(parameter.to_value(position)), parameter.lower, parameter.upper))
        elif isinstance(parameter, Constant):
            params[name] = levels(parameter)[0]
        else:
            params[name] = levels(parameter)[int(position)]
    return params


def is_active(space: ConfigurationSpace, name: str, params: Mapping[str, Any]) -> bool:
    """Say whether a parameter is active, given the active ones that stand before it in the space's order.

    Asked of ConfigSpace's vectors, in which an inactive parent is NaN, as when ConfigSpace samples and validates.
    """
    conditions = space.parent_conditions_of[name]
    if not conditions:
        return True
    vector = np.full(len(space), np.nan)
    for parent, value in params.items():
        vector[space.index_of[parent]] = space[parent].to_vector(value)
    return all(condition.satisfied_by_vector(vector) for condition in conditions)


def active_names(space: ConfigurationSpace, params: Mapping[str, Any]) -> tuple[str, ...]:
    """Give the names of the parameters that are active under `params`, in the space's order (parents first)."""
    known: dict[str, Any] = {}
    for name in space:
        if name in params and is_active(space, name, known):
            known[name] = params[name]
    return tuple(known)


def to_configuration(space: ConfigurationSpace, params: Mapping[str, Any]) -> Configuration | None:
    """Read trial parameters as a configuration of the space, or None where they are not one.

    Parameters the space does not know and inactive ones are left out, constants are filled in; a missing active
    parameter, a value out of range or a forbidden combination gives None.
    """
    values = {name: params[name] for name in space if name in params}
    for name, parameter in space.items():
        if isinstance(parameter, Constant):
            values.setdefault(name, parameter.value)
    try:
        return deactivate_inactive_hyperparameters(values, space)
    except (ValueError, KeyError, TypeError):
        return None
