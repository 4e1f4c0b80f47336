"""Checks of what a person wrote in a configuration file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from slayr_py.errors import DataError, did_you_mean

Types = type | tuple[type, ...]
"""The type, or the types, that a key's value may have."""


class ConfigError(DataError):
    """A configuration file that cannot be read or means nothing."""


def check_keys(table: Mapping[str, Any], known: Mapping[str, Types], where: str) -> Mapping[str, Any]:
    """Check the keys of a table and the types of its values.

    Raises
    ------
    ConfigError
        An unknown key (with the nearest known one) or a value of a wrong type.
    """
    check_names(table, known, where)
    for key, value in table.items():
        wanted = known[key]
        types = wanted if isinstance(wanted, tuple) else (wanted,)
        # A truth value is an int to Python, and never what a number's key means.
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            names = " or ".join(_TOML_NAMES[kind] for kind in types)
            raise ConfigError(f"{key} in {where} must be {names}, not {value!r}")
    return table


def check_names(keys: Iterable[str], known: Iterable[str], where: str) -> None:
    """Raise `ConfigError` for a key that is not known, naming the nearest one that is."""
    known = list(known)
    for key in keys:
        if key not in known:
            raise ConfigError(f"unknown key {key!r} in {where}{did_you_mean(key, known)}")


_TOML_NAMES: dict[type, str] = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}
