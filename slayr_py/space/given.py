"""Spaces in the forms that a user may give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ConfigSpace import ConfigurationSpace
from ConfigSpace.hyperparameters import Hyperparameter

from slayr_py.errors import SpaceError
from slayr_py.space.encoder import Encoder
from slayr_py.space.within import Within

Space = ConfigurationSpace | Encoder | Mapping[str, Any]
"""A space, a space with graphs and constraints, or a dictionary: see `as_encoder`."""


def as_encoder(space: Space, within: Within | None = None) -> Encoder:
    """Return the encoder of a space, with constraints on inputs if there are any.

    Parameters
    ----------
    space : ConfigurationSpace, Encoder or mapping
        A mapping has for each name two floats or two integers, the bounds of a number; a list, the levels of a
        categorical parameter; a single value, a constant; or a parameter of ConfigSpace, such as
        ``Float("lr", (1e-4, 0.1), log=True)``.
    within : sequence, optional
        Constraints on inputs, see `Encoder`.

    Raises
    ------
    SpaceError
        If the space is not a space, or an encoder that already has constraints on inputs.
    """
    if isinstance(space, Mapping) and not isinstance(space, ConfigurationSpace):
        return Encoder(_from_mapping(space), within=within)
    if not isinstance(space, Encoder):
        return Encoder(space, within=within)
    if within is None:
        return space
    if space.region is not None:
        raise SpaceError("the encoder has constraints on inputs, and within= has some too; give all in one place")
    return Encoder(space.space, space.requested_graphs, within)


def _from_mapping(parameters: Mapping[str, Any]) -> ConfigurationSpace:
    space = ConfigurationSpace()
    space.add(*(parameter_of(name, value) for name, value in parameters.items()))
    return space


def parameter_of(name: str, value: Any) -> Hyperparameter[Any, Any]:
    """Return the parameter of an entry of a dictionary: see `as_encoder`.

    Raises
    ------
    SpaceError
        If it is none.
    """
    if isinstance(value, tuple) and sorted(map(type, value), key=str) == [float, int]:
        raise SpaceError(
            f"the bounds of {name!r} are {value[0]} and {value[1]}; write two floats, or two integers, such as "
            f"{float(value[0])} and {float(value[1])}"
        )
    try:
        if not isinstance(value, Hyperparameter):
            (found,) = ConfigurationSpace({name: value}).values()
            return found
        if value.name != name:
            raise ValueError(f"it is called {value.name!r}")
        return value
    except Exception as error:  # ConfigSpace has many classes of errors
        raise SpaceError(
            f"the parameter {name!r} is {value!r:.100}: {error}; give two floats or two integers, a list of "
            "levels, a constant, or a parameter of ConfigSpace with this name"
        ) from error
