"""Spaces as plain JSON, for studies, run records and files."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any

from ConfigSpace import ConfigurationSpace

from slayr_py.errors import SpaceError


def jsonable(value: Any) -> Any:
    """Make plain JSON of nested mappings, sequences and numbers; a number that is not finite becomes None."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if value is None or isinstance(value, bool | str):
        return value
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str) else str(value)


def space_to_json(space: ConfigurationSpace) -> dict[str, Any]:
    """Serialise a space as ConfigSpace does, without the users' `meta` fields, which may hold any object."""
    serialised = space.to_serialized_dict()
    for parameter in serialised["hyperparameters"]:
        parameter["meta"] = None
    plain = jsonable(serialised)
    assert isinstance(plain, dict)
    return plain


def space_from_json(serialised: Mapping[str, Any]) -> ConfigurationSpace:
    """Read back what `space_to_json` gave, or a file in ConfigSpace's own JSON format.

    Raises
    ------
    SpaceError
        ConfigSpace cannot read it.
    """
    try:
        # ConfigSpace takes the dictionary apart while it reads.
        return ConfigurationSpace.from_serialized_dict(copy.deepcopy(dict(serialised)))
    except Exception as error:  # ConfigSpace lets KeyError, TypeError, ValueError and its own errors through
        raise SpaceError(f"this is not a ConfigSpace space in JSON: {type(error).__name__}: {error}") from error
