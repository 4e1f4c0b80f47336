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


def check_file_name(name: str) -> str:
    """Check that a study's name can begin the names of its files, which then lie in its folder and nowhere else.

    Raises
    ------
    ConfigError
        A name that is empty or long, begins with a dot or a dash, or has a separator of paths, a control character, or
        what has a meaning in a URL.
    """
    odd = [character for character in name if character in "/\\?%" or not character.isprintable()]
    if odd or not name or name[0] in ".-" or len(name.encode(errors="replace")) > _LONGEST_NAME:
        why = f"it has {odd[0]!r}" if odd else "it is empty, begins with a dot or a dash, or is too long"
        raise ConfigError(
            f"the study's name {name!r:.100} cannot begin the names of its files: {why}; "
            "give it a plain one by name in [study] or --study-name"
        )
    return name


_LONGEST_NAME = 200  # bytes; file systems take 255 with the ending

_TOML_NAMES: dict[type, str] = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}
