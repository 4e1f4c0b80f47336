"""Convert ConfigSpace parameters to Optuna distributions, and configurations to Optuna parameters and back."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace, Float, Integer
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
    distribution_to_json,
    json_to_distribution,
)

from slayr_py.errors import EnqueuedError, SpaceError, did_you_mean, nearest
from slayr_py.space import GRID, Space, space_given


def space_to_distributions(space: Space) -> dict[str, BaseDistribution]:
    """Return the Optuna distribution of every parameter of a space.

    Floats and integers keep their bounds and log scale. Categoricals and ordinals become categorical; a model reads the
    order of an ordinal from the space. A constant is a categorical with one choice. Conditions and forbidden clauses
    have no counterpart in Optuna: see `active_names`.

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
    return {name: _distribution(parameter) for name, parameter in space.items()}


def grid_parameter(name: str, distribution: FloatDistribution | IntDistribution) -> Hyperparameter[Any, Any]:
    """Return an integer parameter that numbers the values of a distribution with a step, which ConfigSpace lacks."""
    assert distribution.step is not None
    last = round((distribution.high - distribution.low) / distribution.step)
    return Integer(name, (0, last), meta={GRID: distribution_to_json(distribution)})


def _grid(parameter: Hyperparameter[Any, Any]) -> FloatDistribution | IntDistribution | None:
    """Return the distribution whose values a parameter numbers, or None if it does not number values."""
    return _read_grid(parameter.meta[GRID]) if parameter.meta and GRID in parameter.meta else None


@functools.cache
def _read_grid(text: str) -> FloatDistribution | IntDistribution:
    distribution = json_to_distribution(text)
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    return distribution


def _position(grid: FloatDistribution | IntDistribution, value: Any) -> int:
    """Return the number of a value on a grid.

    Raises
    ------
    ValueError
        If it is not on the grid.
    """
    assert grid.step is not None
    position = (value - grid.low) / grid.step
    if not grid.low <= value <= grid.high or abs(position - round(position)) > 1e-8:
        raise ValueError(f"{value!r} is not on the grid {grid}")
    return int(round(position))


def as_declared(space: ConfigurationSpace, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of parameters as the space has them: it numbers the values on a grid.

    Raises
    ------
    ValueError, TypeError
        If a value is not on its grid.
    """
    grids = {name: _grid(space[name]) for name in values}
    return {name: value if (grid := grids[name]) is None else _position(grid, value) for name, value in values.items()}


def _distribution(parameter: Hyperparameter[Any, Any]) -> BaseDistribution:
    if (grid := _grid(parameter)) is not None:
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


def check_enqueued(space: ConfigurationSpace, enqueued: Mapping[str, Any]) -> None:
    """Check the values that a user has enqueued for a trial; ignore parameters that the space does not have.

    Optuna would raise a bare ``ValueError`` for an unknown level, and use a number outside its range.

    Raises
    ------
    EnqueuedError
        For a value that is not a level of its parameter, not a number, or outside the range.
    """
    for name, value in enqueued.items():
        if name not in space:
            continue
        distribution = _distribution(space[name])
        what = f"the enqueued value {value!r} of the parameter {name!r}"
        if isinstance(distribution, CategoricalDistribution):
            if value not in distribution.choices:
                hint = did_you_mean(value, map(str, distribution.choices))
                known = f" Its levels are {', '.join(map(repr, distribution.choices))}" * hint.endswith("?")
                raise EnqueuedError(f"{what} is not one of its levels{hint}{known}")
            continue
        assert isinstance(distribution, FloatDistribution | IntDistribution)
        kind = "an integer" if isinstance(distribution, IntDistribution) else "a number"
        if not isinstance(value, int | float | np.integer | np.floating) or (kind == "an integer" and value % 1 != 0):
            raise EnqueuedError(f"{what} is not {kind} from {distribution.low} to {distribution.high}")
        if not distribution.low <= value <= distribution.high:
            near = distribution.high if value > distribution.high else distribution.low
            raise EnqueuedError(
                f"{what} is outside its range, {distribution.low} to {distribution.high}; the nearest is {near}"
            )


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
        if (grid := _grid(parameter)) is not None:
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


def requests(space: ConfigurationSpace, name: str, distribution: BaseDistribution) -> bool:
    """Return whether a distribution equals the declared one, up to ConfigSpace's rounding of the bounds."""
    declared = _distribution(space[name])
    if isinstance(distribution, FloatDistribution) and isinstance(declared, FloatDistribution):
        if distribution.step is not None or distribution.log != declared.log:
            return False
        try:
            rounded = Float(name, (distribution.low, distribution.high), log=distribution.log)
        except ValueError:  # a range below ConfigSpace's precision
            return False
        return (rounded.lower, rounded.upper) == (declared.low, declared.high)
    return declared == distribution


def check_request(
    space: ConfigurationSpace, number: int, name: str, distribution: BaseDistribution, given: Mapping[str, Any]
) -> None:
    """Check a trial's request for a parameter, given its parameters and its suggested values.

    Raises
    ------
    SpaceError
        If the parameter is not declared, was declared with another range, or is inactive.
    """
    asks = f"trial {number} asks for parameter {name!r}"
    if name not in space:
        near = nearest(name, space)
        raise SpaceError(
            f"{asks}, {distribution}, which is not declared; the space has {', '.join(space)}"
            + (f"; did you mean {near!r}?" if near is not None else "")
        )
    if not requests(space, name, distribution):
        raise SpaceError(
            f"{asks} as {distribution}, which was declared as {_distribution(space[name])}: request it as declared, or "
            "declare that range"
        )
    if not is_active_under(space, name, given):
        conditions = " and ".join(map(str, space.parent_conditions_of[name]))
        raise SpaceError(
            f"{asks}, which is inactive in its configuration ({conditions}): ask for it only when it is active, or "
            "declare it without a condition"
        )


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


_MOST_KNOWN = 2**16
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
