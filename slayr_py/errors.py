"""Exceptions of the package: one class per kind of failure, all with one root."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable

__all__ = [
    "CompileError",
    "DataError",
    "EnqueuedError",
    "InferenceError",
    "NotFiniteError",
    "ObjectiveError",
    "SlayrError",
    "SpaceError",
    "StorageError",
    "ToolchainError",
]


_MOST_LISTED = 5  # trials, rows or values named in a message

_INSIDE = (__name__.partition(".")[0], "optuna")  # whose functions call each other


class SlayrError(Exception):
    """Root of all exceptions that the package raises deliberately."""


class ToolchainError(SlayrError):
    """CmdStan, the compiler or the cache is missing or unusable."""


class CompileError(ToolchainError):
    """A Stan program does not compile with stanc or the C++ compiler."""


class SpaceError(SlayrError, ValueError):
    """A search space, configuration or graph is invalid."""


class EnqueuedError(SpaceError):
    """An enqueued trial has a value that does not belong to the space: the trial fails and the study can continue."""


class DataError(SlayrError, ValueError):
    """Observations, priors or options have illegal values or shapes."""


class InferenceError(SlayrError, RuntimeError):
    """A Stan run failed or returned no usable output."""


class StorageError(SlayrError, OSError):
    """A study or saved posterior cannot be opened, read or written."""


class ObjectiveError(SlayrError, RuntimeError):
    """The objective raised an exception, or returned something other than a finite number."""


class NotFiniteError(ObjectiveError):
    """The objective returned NaN or an infinity: the trial fails and the study can continue."""


def nearest(word: object, known: Iterable[str]) -> str | None:
    """Return the known word that is closest to another one, whatever their case; None if none is close."""
    words = list(known)
    folded = {candidate.casefold(): candidate for candidate in reversed(words)}
    near = difflib.get_close_matches(str(word).casefold(), folded, n=1)
    return folded[near[0]] if near else None


def listed(values: Iterable[object]) -> str:
    """Join the texts of the first values by commas, and count the others."""
    texts = [str(value) for value in values]
    others = len(texts) - _MOST_LISTED
    return ", ".join(texts[:_MOST_LISTED]) + (f" and {others} other{'s' * (others > 1)}" if others > 0 else "")


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """End a message about an unknown word with ``; did you mean 'ei'?``, or with all known words if none is close."""
    words = list(known)
    near = nearest(word, words)
    if near is not None:
        return f"; did you mean {near!r}?"
    return f"; known: {', '.join(words)}" if words else "; none is known"


def reason_of(error: Exception) -> BaseException:
    """Return what is wrong with a parameter of ConfigSpace: of its message "illegal settings" the cause."""
    return error.__cause__ or error


def level_outside() -> int:
    """Return the ``stacklevel`` at which a warning of the caller points to the code that has called this package.

    Optuna calls the sampler, so that its code is passed over too.
    """
    frame = inspect.currentframe()
    level = 0
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _INSIDE:
        frame = frame.f_back
        level += 1
    return level
