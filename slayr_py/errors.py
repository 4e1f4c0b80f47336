"""The exceptions of the suite: one root, one class for each kind of trouble."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SlayrError(Exception):
    """Root of every error the package raises on purpose."""


class ToolchainError(SlayrError):
    """No usable CmdStan, compiler or cache."""


class CompileError(ToolchainError):
    """A Stan program that stanc or the C++ compiler refused."""


class SpaceError(SlayrError, ValueError):
    """A search space, configuration or graph that cannot be used."""


class DataError(SlayrError, ValueError):
    """Observations, priors or options with illegal values or shapes."""


class InferenceError(SlayrError, RuntimeError):
    """A Stan run that failed or returned nothing usable."""


class StorageError(SlayrError, OSError):
    """A study or saved posterior that cannot be opened, read or written."""


class ObjectiveError(SlayrError, RuntimeError):
    """An objective that raised, or returned something that is not a finite number."""


class NotFiniteError(ObjectiveError):
    """An objective that answered NaN or an infinity: the trial fails, yet nothing is broken."""


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """End a message about an unknown word: ``; did you mean 'ei'?``, or the known words when none is near."""
    words = list(known)
    near = difflib.get_close_matches(str(word), words, n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; known: {', '.join(words)}" if words else "; none is known"
