"""The user's objective, with what it may do wrong turned into a reason that a trial can carry."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import optuna

from slayr_py.errors import NotFiniteError, ObjectiveError

Objective = Callable[[Mapping[str, Any]], float]
"""A function of one configuration: active parameters by name in, a finite number out."""

_LONGEST = 2000  # characters of an error that are kept with a trial
_LONGEST_VALUE = 200


def evaluate(objective: Objective, config: Mapping[str, Any]) -> float:
    """Call the objective and check its answer.

    Parameters
    ----------
    objective : callable
        Receives its own copy of the configuration.
    config : mapping of str to value
        The active parameters.

    Returns
    -------
    float
        Finite.

    Raises
    ------
    ObjectiveError
        The objective raised (the error is the cause), asked Python to exit, or returned no number.
    NotFiniteError
        It returned NaN or an infinity.
    """
    try:
        answer = objective(dict(config))
    except (optuna.TrialPruned, ObjectiveError):
        raise
    except SystemExit as error:
        # Of a script turned objective, or of a parser of arguments: meant for that script, not for the study.
        raise ObjectiveError(
            f"the objective called sys.exit({_shown(error.code)}); it must return a number or raise an error"
        ) from error
    except Exception as error:
        raise ObjectiveError(f"the objective raised {type(error).__name__}: {_text(error)}") from error
    return as_value(answer)


def as_value(answer: object) -> float:
    """Check that an objective's answer is one finite number, and give it as a float.

    Raises
    ------
    ObjectiveError
        It is no number: None, a string, a truth value, an array of other than no dimensions.
    NotFiniteError
        It is NaN or infinite.
    """
    # Numbers of other libraries (NumPy scalars, arrays and tensors without dimensions) speak the same protocol.
    shape = getattr(answer, "shape", ())
    shape = tuple(shape) if isinstance(shape, Sequence) else ()
    try:
        plain = answer.item() if hasattr(answer, "item") and not shape else answer
        if isinstance(plain, bool) or not isinstance(plain, numbers.Real):
            described = f"an array of shape {shape}" if shape else f"{type(answer).__name__} {_shown(answer)}"
            hint = "; does it end without a return statement?" if answer is None else ""
            raise ObjectiveError(f"the objective must return one number and returned {described}{hint}")
        value = float(plain)
    except OverflowError:
        raise NotFiniteError(f"the objective returned {_shown(answer)}, which is too large for a float") from None
    except ObjectiveError:
        raise
    except Exception as error:  # whatever an object that poses as a number does when it is asked for its value
        raise ObjectiveError(
            f"the objective returned {type(answer).__name__}, whose value cannot be read: {_text(error)}"
        ) from error
    if not math.isfinite(value):
        raise NotFiniteError(f"the objective returned {value}, which is not a finite number")
    return value


def _text(error: BaseException) -> str:
    """What an error says, at a length that a trial can carry; an error may fail even at that."""
    try:
        text = str(error)
    except Exception:
        return "(an error that cannot be printed)"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _shown(value: object) -> str:
    """The beginning of a value's representation."""
    try:
        text = repr(value)
    except Exception as error:  # a number of more digits than Python prints is one
        return f"(a {type(value).__name__} that cannot be printed: {type(error).__name__})"
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."
