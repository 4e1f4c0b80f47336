"""Store long attributes in pieces: MySQL and MariaDB have at most 65,535 bytes for the JSON text of an attribute.

A value with a longer text is stored as ``{"sha256", "pieces"}``, the number of pieces. They are attributes of the same
trial or study, with the key `PIECE_KEY`, followed by ":", the SHA-256 of the text, ":" and the number of the piece.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from optuna import Study
from optuna.trial import FrozenTrial

from slayr_py.study.storage.optuna_private import set_trial_attribute

PIECE_KEY = "slayr:piece"
LONGEST = 60_000
"""Most characters of the JSON text of an attribute."""


def store_in_trial(study: Study, trial: FrozenTrial, key: str, value: Any) -> None:
    """Set a user attribute of a trial that may be long."""
    _store(partial(set_trial_attribute, study, trial), key, value)


def store_in_study(study: Study, key: str, value: Any) -> None:
    """Set a user attribute of a study that may be long."""
    _store(study.set_user_attr, key, value)


def _store(write: Callable[[str, Any], None], key: str, value: Any) -> None:
    text = json.dumps(value)
    if len(text) <= LONGEST:
        write(key, value)
        return
    digest = hashlib.sha256(text.encode()).hexdigest()
    size = LONGEST // 2  # the storage writes a piece as JSON again, with a backslash before quotes and backslashes
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    for number, piece in enumerate(pieces):
        write(f"{PIECE_KEY}:{digest}:{number}", piece)
    write(key, {"sha256": digest, "pieces": len(pieces)})  # last: whoever reads it finds all pieces


def stored(attributes: Mapping[str, Any], key: str) -> Any:
    """Return an attribute among those of its trial or study, joined if it is in pieces; None if it is missing.

    Raises
    ------
    ValueError
        If a piece is missing or damaged.
    """
    value = attributes.get(key)
    if not isinstance(value, Mapping) or value.keys() != {"sha256", "pieces"}:
        return value
    try:
        names = [f"{PIECE_KEY}:{value['sha256']}:{number}" for number in range(value["pieces"])]
        return json.loads("".join(attributes[name] for name in names))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"a piece of the attribute {key!r} is missing or damaged") from error
