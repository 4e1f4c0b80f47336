"""The user's objective, with what it may do wrong turned into a reason that a trial can carry."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping
from typing import Any

import optuna

from slayr_py.errors import NotFiniteError, ObjectiveError

Objective = Callable[[Mapping[str, Any]], float]
"""A function of one configuration: active parameters by name in, a finite number out."""


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
        The objective raised (the error is the cause) or returned no number.
    NotFiniteError
        It returned NaN or an infinity.
    """
    try:
        answer = objective(dict(config))
    except (optuna.TrialPruned, ObjectiveError):
        raise
    except Exception as error:
        raise ObjectiveError(f"the objective raised {type(error).__name__}: {error}") from error
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
    plain = answer.item() if hasattr(answer, "item") and tuple(shape) == () else answer
    if isinstance(plain, bool) or not isinstance(plain, numbers.Real):
        described = f"an array of shape {tuple(shape)}" if tuple(shape) else f"{type(answer).__name__} {answer!r}"
        hint = "; does it end without a return statement?" if answer is None else ""
        raise ObjectiveError(f"the objective must return one number and returned {described:.200}{hint}")
    value = float(plain)
    if not math.isfinite(value):
        raise NotFiniteError(f"the objective returned {value}, which is not a finite number")
    return value
