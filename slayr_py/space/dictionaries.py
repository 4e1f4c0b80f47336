"""Dictionaries as spaces."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace
from ConfigSpace.hyperparameters import Constant, Hyperparameter

from slayr_py.arguments import plain_number
from slayr_py.errors import SpaceError, level_outside, reason_of

_LARGEST = 2**62  # integer; ConfigSpace computes with one more in 64 bits


def as_space(parameters: ConfigurationSpace | Mapping[str, Any]) -> ConfigurationSpace:
    """Return the space of a dictionary: see `as_encoder`; a space as it is.

    A list of two floats, which are bounds in configuration files and in other libraries, has a warning.

    Raises
    ------
    SpaceError
        If an entry is not a parameter.
    """
    if isinstance(parameters, ConfigurationSpace) or not isinstance(parameters, Mapping):
        return parameters
    for name, value in parameters.items():
        if isinstance(value, list) and len(value) == 2 and all(isinstance(level, float) for level in value):
            warnings.warn(
                f"the list {value} has two levels of the parameter {name!r}; a range is a tuple, {tuple(value)}. If "
                f"levels are meant, give Categorical({name!r}, {value}) of ConfigSpace",
                stacklevel=level_outside(),
            )
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
    if isinstance(value, tuple):  # ConfigSpace takes NumPy's floats of other precisions as integers
        value = tuple(bound.item() if isinstance(bound, np.generic) else plain_number(bound) for bound in value)
        if any(isinstance(bound, bool) for bound in value):
            raise SpaceError(f"the bounds of {name!r} are {value}; write {list(value)} for these levels")
        if not all(isinstance(bound, int | float) for bound in value):
            raise SpaceError(
                f"the bounds of {name!r} are {value!r:.100}; give two floats, two integers or a list of levels"
            )
        if not all(math.isfinite(bound) if isinstance(bound, float) else abs(bound) <= _LARGEST for bound in value):
            raise SpaceError(
                f"the bounds of {name!r} are {value!r:.100}; give finite numbers, and integers up to 2**62"
            )
        if sorted(map(type, value), key=str) == [float, int]:
            raise SpaceError(
                f"the bounds of {name!r} are {value[0]} and {value[1]}; write two floats, or two integers, such as "
                f"{float(value[0])} and {float(value[1])}"
            )
    try:
        if not isinstance(value, Hyperparameter):
            (found,) = ConfigurationSpace({name: value}).values()
            if isinstance(found, Constant) and not isinstance(value, bool | int | float | str | np.generic | None):
                raise TypeError(f"a {type(value).__name__} cannot be a constant")
            return found
        if value.name != name:
            raise ValueError(f"it is called {value.name!r}")
        return value
    except Exception as error:  # ConfigSpace has many classes of errors
        raise SpaceError(
            f"the parameter {name!r} is {value!r:.100}: {reason_of(error)}; give two floats or two integers, a list of "
            "levels, a constant, or a parameter of ConfigSpace with this name"
        ) from error
