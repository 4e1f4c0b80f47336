"""Convert ConfigSpace parameters to Optuna distributions, and configurations to Optuna parameters and back."""

from __future__ import annotations

import weakref
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
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from slayr_py.errors import SpaceError
from slayr_py.space import Space, space_given
from slayr_py.study.storage.grids import as_declared, grid_of


def space_to_distributions(space: Space) -> dict[str, BaseDistribution]:
    """Return the Optuna distribution of every parameter of a space.

    Floats and integers keep their bounds and log scale. Categoricals and ordinals become categorical; a model reads the
    order of an ordinal from the space. A constant is a categorical with one choice. Conditions and forbidden clauses
    have no counterpart in Optuna: see ``slayr_py.space.activity``.

    Parameters
    ----------
    space : ConfigurationSpace, Encoder or mapping
        The declared search space.

    Returns
    -------
    dict of str to optuna.distributions.BaseDistribution
        In the order of the space's keys, inactive parameters included.

    Raises
    ------
    SpaceError
        If the space is empty or has a choice that Optuna cannot store: anything but None, bool, int, float, str.
    """
    space = space_given(space)
    if len(space) == 0:
        raise SpaceError("the search space is empty: add at least one parameter to the ConfigurationSpace")
    return {name: distribution_of(parameter) for name, parameter in space.items()}


def distribution_of(parameter: Hyperparameter[Any, Any]) -> BaseDistribution:
    """Return the Optuna distribution of a parameter."""
    if (grid := grid_of(parameter)) is not None:
        return grid
    if isinstance(parameter, FloatHyperparameter):
        return FloatDistribution(float(parameter.lower), float(parameter.upper), log=bool(parameter.log))
    if isinstance(parameter, IntegerHyperparameter):
        return IntDistribution(int(parameter.lower), int(parameter.upper), log=bool(parameter.log))
    return CategoricalDistribution(levels(parameter))


def levels(parameter: Hyperparameter[Any, Any]) -> tuple[None | bool | int | float | str, ...]:
    """Return the values of a categorical, ordinal or constant parameter as plain Python objects, in their order."""
    if isinstance(parameter, CategoricalHyperparameter):
        values = tuple(parameter.choices)
    elif isinstance(parameter, OrdinalHyperparameter):
        values = tuple(parameter.sequence)
    elif isinstance(parameter, Constant):
        values = (parameter.value,)
    else:
        raise SpaceError(f"parameter {parameter.name!r} has the unsupported type {type(parameter).__name__}")
    plain = tuple(value.item() if isinstance(value, np.generic) else value for value in values)
    for value in plain:
        if value is not None and not isinstance(value, bool | int | float | str):
            raise SpaceError(
                f"parameter {parameter.name!r} has the choice {value!r}, which a study cannot store; use strings or "
                "numbers as choices and look the object up in the objective"
            )
    return plain


def plain_value(distribution: BaseDistribution, value: Any) -> Any:
    """Return a value as it is read from a storage; an enqueued one may be 2.0 for an integer, or 1 for a float."""
    return distribution.to_external_repr(distribution.to_internal_repr(value))


def to_params(config: Configuration) -> dict[str, Any]:
    """Return a configuration's active values as plain Python objects within the bounds of their distributions.

    ConfigSpace rounds floats to a fixed number of decimals when they are read by name. The result can lie outside the
    bounds, and small values lose digits; in these cases the value is computed from the unit-scaled vector.
    """
    space = config.config_space
    vector = config.get_array()
    params: dict[str, Any] = {}
    for name, parameter in space.items():
        position = vector[space.index_of[name]]
        if np.isnan(position):
            continue
        if (grid := grid_of(parameter)) is not None:
            assert grid.step is not None
            params[name] = min(grid.low + grid.step * round(parameter.to_value(position)), grid.high)
        elif isinstance(parameter, FloatHyperparameter):
            exact = float(parameter.to_value(position))
            rounded = float(config[name])
            value = rounded if abs(rounded - exact) <= 1e-12 * abs(exact) else exact
            params[name] = min(max(value, float(parameter.lower)), float(parameter.upper))
        elif isinstance(parameter, IntegerHyperparameter):
            params[name] = min(max(int(parameter.to_value(position)), int(parameter.lower)), int(parameter.upper))
        elif isinstance(parameter, Constant):
            params[name] = levels(parameter)[0]
        else:
            params[name] = levels(parameter)[int(position)]
    return params


def to_configuration(space: ConfigurationSpace, params: Mapping[str, Any]) -> Configuration | None:
    """Convert trial parameters to a configuration of the space; return None if they are illegal.

    Unknown and inactive parameters are ignored and constants are added. A missing active parameter, a value out of
    range or a forbidden combination is illegal.

    Every suggestion needs the configurations of all trials, several times. Equal parameters of the same space object
    are therefore converted once; the results are shared and must not be changed.
    """
    known = _configurations_of(space)
    key = tuple((name, type(value), value) for name, value in params.items())
    try:
        if key not in known:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            known[key] = _convert(space, params)
        return known[key]
    except TypeError:  # a value that cannot be a key
        return _convert(space, params)


_MOST_KNOWN = 2**16  # configurations of a space; limits memory in long processes
_known: dict[int, dict[tuple[Any, ...], Configuration | None]] = {}


def _configurations_of(space: ConfigurationSpace) -> dict[tuple[Any, ...], Configuration | None]:
    """Return the conversions of a space object, which are forgotten with it; spaces cannot be keys themselves."""
    if id(space) not in _known:
        weakref.finalize(space, _known.pop, id(space), None)
        _known[id(space)] = {}
    return _known[id(space)]


def _convert(space: ConfigurationSpace, params: Mapping[str, Any]) -> Configuration | None:
    values = {name: params[name] for name in space if name in params}
    for name, parameter in space.items():
        if isinstance(parameter, Constant):
            values.setdefault(name, parameter.value)
    try:
        return deactivate_inactive_hyperparameters(as_declared(space, values), space)
    except (ValueError, KeyError, TypeError):
        return None
