"""Store long attributes in pieces: MySQL and MariaDB have at most 65,535 bytes for the JSON text of an attribute.

A value with a longer text is stored as ``{"format", "sha256", "pieces"}``, the number of pieces. They are attributes of
the same trial or study, with the key `PIECE_KEY`, followed by ":", the SHA-256 of the text, ":" and the number of the
piece.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from optuna import Study
from optuna.trial import FrozenTrial

from slayr_py.errors import StorageError
from slayr_py.study.storage.optuna_private import set_trial_attribute

PIECE_KEY = "slayr:piece"
LONGEST = 60_000
"""Most characters of the JSON text of an attribute."""

_FORMAT = 2
"""Of the reference to the pieces, unlike that of a whole record."""


def store_in_trial(study: Study, trial: FrozenTrial, key: str, value: Any) -> None:
    """Set a user attribute of a trial that may be long."""
    for name, part in in_pieces(key, value).items():
        set_trial_attribute(study, trial, name, part)


def store_in_study(study: Study, key: str, value: Any) -> None:
    """Set a user attribute of a study that may be long."""
    for name, part in in_pieces(key, value).items():
        study.set_user_attr(name, part)


def in_pieces(key: str, value: Any) -> dict[str, Any]:
    """Return the attributes that store a value: itself, or its pieces and then the reference to them."""
    text = json.dumps(value)
    if len(text) <= LONGEST:
        return {key: value}
    digest = hashlib.sha256(text.encode()).hexdigest()
    size = LONGEST // 2  # the storage writes a piece as JSON again, with a backslash before quotes and backslashes
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    attributes: dict[str, Any] = {f"{PIECE_KEY}:{digest}:{number}": piece for number, piece in enumerate(pieces)}
    # The reference is written last, so that its readers find all pieces.
    return attributes | {key: {"format": _FORMAT, "sha256": digest, "pieces": len(pieces)}}


def stored(attributes: Mapping[str, Any], key: str) -> Any:
    """Return an attribute among those of its trial or study, joined if it is in pieces; None if it is missing.

    Raises
    ------
    StorageError
        If a piece is missing or altered.
    """
    value = attributes.get(key)
    if not isinstance(value, Mapping) or value.keys() != {"format", "sha256", "pieces"}:
        return value
    try:
        names = (f"{PIECE_KEY}:{value['sha256']}:{number}" for number in range(value["pieces"]))
        text = "".join(attributes[name] for name in names)
    except (KeyError, TypeError):
        text = ""
    if hashlib.sha256(text.encode(errors="replace")).hexdigest() != value["sha256"]:
        raise StorageError(
            f"a piece of the attribute {key!r} is missing or altered. Restore a copy of the study, or choose another "
            "study name"
        )
    return json.loads(text)
