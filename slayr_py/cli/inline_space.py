"""Read the search space of a configuration file: an inline table, or a file in ConfigSpace's JSON format."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ConfigSpace import (
    AndConjunction,
    CategoricalHyperparameter,
    ConfigurationSpace,
    Constant,
    EqualsCondition,
    InCondition,
    OrdinalHyperparameter,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)
from ConfigSpace.hyperparameters import Hyperparameter

from slayr_py.errors import SpaceError, did_you_mean, reason_of
from slayr_py.space import parameter_of, space_from_json
from slayr_py.text_files import read_text

# Class, required and optional keys of each type, besides "type" and "when".
_TYPES: dict[str, tuple[Callable[..., Hyperparameter[Any, Any]], tuple[str, ...], tuple[str, ...]]] = {
    "float": (UniformFloatHyperparameter, ("lower", "upper"), ("log", "default")),
    "integer": (UniformIntegerHyperparameter, ("lower", "upper"), ("log", "default")),
    "categorical": (CategoricalHyperparameter, ("choices",), ("default",)),
    "ordinal": (OrdinalHyperparameter, ("sequence",), ("default",)),
    "constant": (Constant, ("value",), ()),
}

LARGEST_FLOAT = 1e290
"""Largest absolute value of a float parameter. ConfigSpace rounds to 13 decimals, which overflows beyond 1.8e295."""

LARGEST_INTEGER = 10**18
"""Largest absolute value of an integer parameter, because ConfigSpace uses 64-bit integers."""


def read_space(path: Path) -> ConfigurationSpace:
    """Read a space written by ``ConfigurationSpace.to_json``.

    Raises
    ------
    SpaceError
        If the file is missing, not JSON, or not a space.
    """
    text = read_text(path, "space file", SpaceError)
    try:
        serialised = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SpaceError(
            f"the space file {path} cannot be read as JSON: {error}; write it with ConfigurationSpace.to_json"
        ) from error
    if not isinstance(serialised, dict):
        raise SpaceError(f"the space file {path} is not a space: write it with ConfigurationSpace.to_json")
    space = space_from_json(serialised)
    if len(space) == 0:
        raise SpaceError(f"the space file {path} has no parameter: write it with ConfigurationSpace.to_json")
    return space


def inline_space(table: Mapping[str, Any]) -> ConfigurationSpace:
    """Build a space from a table of parameters.

    Parameters
    ----------
    table : mapping of str to mapping, list or constant
        One entry per parameter: ``type`` "float" or "integer" (``lower``, ``upper``, ``log``), "categorical"
        (``choices``), "ordinal" (``sequence``), "constant" (``value``); optionally ``default``, and
        ``when = { other = "value" }`` or ``when = { other = ["value", "value"] }`` for a parameter that is active only
        under this condition (all entries must hold). A list of two floats or two integers has the bounds of a number,
        any other list has the levels of a categorical parameter, and a single value is a constant.

    Returns
    -------
    ConfigurationSpace
        In ConfigSpace's order: parents first, otherwise by name.

    Raises
    ------
    SpaceError
        For an unknown type or key (the message has the nearest known one), or a missing or illegal value.
    """
    if not table:
        raise SpaceError('[space] is empty: add at least one parameter, or file = "space.json"')
    space = ConfigurationSpace()
    parameters = {name: _parameter(name, entry) for name, entry in table.items()}
    space.add(*parameters.values())
    conditions = []
    for name, entry in table.items():
        if isinstance(entry, Mapping) and "when" in entry:
            conditions.append(_condition(name, entry["when"], parameters))
    if conditions:
        try:
            space.add(*conditions)
        except Exception as error:  # ConfigSpace has many classes of errors for conditions
            raise SpaceError(f"the conditions in [space] do not fit together: {error}") from error
    return space


def _parameter(name: str, entry: Any) -> Hyperparameter[Any, Any]:
    if not isinstance(entry, Mapping):
        return _short_parameter(name, entry)
    kind = entry.get("type")
    if not isinstance(kind, str) or kind not in _TYPES:
        hint = did_you_mean(str(kind), _TYPES)
        raise SpaceError(
            f"parameter {name!r} has the type {kind!r}{hint}"
            if "type" in entry
            else f"parameter {name!r} has no type{hint}"
        )
    make, required, optional = _TYPES[kind]
    for key in entry:
        if key not in ("type", "when", *required, *optional):
            hint = did_you_mean(key, (*required, *optional, "when"))
            raise SpaceError(f"unknown key {key!r} of the {kind} parameter {name!r}{hint}")
    for key in required:
        if key not in entry:
            raise SpaceError(f"the {kind} parameter {name!r} has no {key!r}")
    _check_values(name, kind, entry)
    options = {"default_value" if key == "default" else key: entry[key] for key in optional if key in entry}
    try:
        values = [float(entry[key]) if kind == "float" else entry[key] for key in required]
        return make(name, *values, **options)
    except (ValueError, TypeError, OverflowError) as error:
        raise SpaceError(f"the {kind} parameter {name!r} is illegal: {reason_of(error)}") from error


def _short_parameter(name: str, entry: Any) -> Hyperparameter[Any, Any]:
    """Return a parameter that is given by bounds, levels or a constant."""
    numbers = [type(value) for value in entry] if isinstance(entry, list) else []
    if len(numbers) == 2 and {*numbers} <= {float, int}:
        lower, upper = entry
        if numbers[0] is numbers[1]:
            _check_values(name, "integer" if numbers[0] is int else "float", {"lower": lower, "upper": upper})
        return parameter_of(name, (lower, upper))
    if {*numbers} == {float, int}:
        raise SpaceError(
            f"the levels of {name!r} are {', '.join(map(str, entry))}; write floats or integers, and 0.5 instead of 0,5"
        )
    return parameter_of(name, entry)


def _check_values(name: str, kind: str, entry: Mapping[str, Any]) -> None:
    number = int if kind == "integer" else int | float
    for key in ("lower", "upper"):
        value = entry.get(key, 0)
        if isinstance(value, bool) or not isinstance(value, number):
            raise SpaceError(f"{key} of the {kind} parameter {name!r} must be a number of this type, not {value!r}")
        limit = LARGEST_INTEGER if kind == "integer" else LARGEST_FLOAT
        if not abs(value) <= limit:
            raise SpaceError(
                f"{key} of the {kind} parameter {name!r} must lie between {-limit:.3g} and {limit:.3g}, "
                f"not {value!r:.50}"
            )
    if "lower" in entry and not entry["lower"] < entry["upper"]:
        raise SpaceError(
            f"the {kind} parameter {name!r} needs lower < upper, not {entry['lower']} and {entry['upper']}"
        )
    if not isinstance(entry.get("log", False), bool):
        raise SpaceError(f"log of the parameter {name!r} must be true or false, not {entry['log']!r}")
    if entry.get("log") and entry["lower"] <= 0:
        raise SpaceError(f"the parameter {name!r} has a log scale, so lower must be positive, not {entry['lower']}")
    for key in ("choices", "sequence"):
        if key in entry and (not isinstance(entry[key], list) or not entry[key]):
            raise SpaceError(f"{key} of the parameter {name!r} must be a list of values, not {entry[key]!r}")


def _condition(name: str, when: Any, parameters: Mapping[str, Hyperparameter[Any, Any]]) -> Any:
    if not isinstance(when, Mapping) or not when:
        raise SpaceError(f'when of the parameter {name!r} must be a table such as {{ kernel = "rbf" }}, not {when!r}')
    parts: list[Any] = []
    for parent, values in when.items():
        if parent not in parameters or parent == name:
            others = [other for other in parameters if other != name]
            raise SpaceError(
                f"when of the parameter {name!r} names the unknown parameter {parent!r}{did_you_mean(parent, others)}"
            )
        try:
            if isinstance(values, list):
                parts.append(InCondition(parameters[name], parameters[parent], values))
            else:
                parts.append(EqualsCondition(parameters[name], parameters[parent], values))
        except (ValueError, TypeError) as error:
            raise SpaceError(f"when of the parameter {name!r} is illegal: {error}") from error
    return parts[0] if len(parts) == 1 else AndConjunction(*parts)
