"""Check the keys and values of a configuration file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from slayr_py.errors import DataError, did_you_mean

Types = type | tuple[type, ...]
"""Allowed type or types of a key's value."""


class ConfigError(DataError):
    """A configuration file that cannot be read or has illegal content."""


def check_keys(table: Mapping[str, Any], known: Mapping[str, Types], where: str) -> Mapping[str, Any]:
    """Check the keys of a table and the types of its values.

    Raises
    ------
    ConfigError
        For an unknown key (the message has the nearest known one) or a value of a wrong type.
    """
    check_names(table, known, where)
    for key, value in table.items():
        wanted = known[key]
        types = wanted if isinstance(wanted, tuple) else (wanted,)
        # A bool is an int in Python, but not a number in a configuration file.
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            names = " or ".join(_TOML_NAMES[kind] for kind in types)
            raise ConfigError(f"{key} in {where} must be {names}, not {value!r}")
    return table


def check_names(keys: Iterable[str], known: Iterable[str], where: str) -> None:
    """Raise `ConfigError` for an unknown key, with the nearest known one."""
    known = list(known)
    for key in keys:
        if key not in known:
            raise ConfigError(f"unknown key {key!r} in {where}{did_you_mean(key, known)}")


def check_file_name(name: str) -> str:
    """Check that a study's name can be the stem of a file name, so that its files stay in their folder.

    Raises
    ------
    ConfigError
        If the name is empty or too long, starts with a dot or a dash, or has a path separator, a control character, or
        a character with a meaning in URLs.
    """
    odd = [character for character in name if character in "/\\?%" or not character.isprintable()]
    if odd or not name or name[0] in ".-" or len(name.encode(errors="replace")) > _LONGEST_NAME:
        why = f"it has {odd[0]!r}" if odd else "it is empty, starts with a dot or a dash, or is too long"
        raise ConfigError(
            f"the study's name {name!r:.100} cannot be used in file names: {why}; "
            "choose a plain name with name in [study] or --study-name"
        )
    return name


_LONGEST_NAME = 200  # bytes; file systems allow 255 including the suffix

_TOML_NAMES: dict[type, str] = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}
