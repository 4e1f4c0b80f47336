"""Call the user's objective and turn its failures into messages for the trial."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import optuna

from slayr_py.errors import NotFiniteError, ObjectiveError
from slayr_py.study.run.constraints import Constraint, constraint_values

Objective = Callable[[Mapping[str, Any]], float | tuple[float, Mapping[str, float]]]
"""A function that takes the active parameters by name and returns a finite number, or one and constraints by name."""

_LONGEST = 2000  # characters of an error message stored with a trial
_LONGEST_VALUE = 200


class Evaluation(NamedTuple):
    """A value of the objective, and by how much each constraint is violated."""

    value: float
    constraints: dict[str, float]
    failure: ObjectiveError | None = None
    """Why the constraints cannot be used although there is a value: the trial fails."""


def evaluate(
    objective: Objective, config: Mapping[str, Any], constraints: tuple[Constraint, ...] | None = None
) -> Evaluation:
    """Call the objective and check its value and the constraints that it reports.

    Parameters
    ----------
    objective : callable
        Receives its own copy of the configuration.
    config : mapping of str to value
        The active parameters.
    constraints : tuple of Constraint, optional
        As in `constraint_values`.

    Returns
    -------
    Evaluation
        Of finite numbers, or with the failure of the constraints.

    Raises
    ------
    ObjectiveError
        If the objective raises an error (the cause), calls ``sys.exit``, or does not return a number.
    NotFiniteError
        If it returns NaN or an infinity.
    """
    try:
        answer = objective(dict(config))
    except (optuna.TrialPruned, ObjectiveError):
        raise
    except SystemExit as error:
        # Raised by a script used as an objective, or by its argument parser: it must not end the study.
        raise ObjectiveError(
            f"the objective called sys.exit({_show(error.code)}); it must return a number or raise an error"
        ) from error
    except Exception as error:
        raise ObjectiveError(f"the objective raised {type(error).__name__}: {_text(error)}") from error
    reported: Mapping[Any, Any] = {}
    if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], Mapping):
        answer, reported = answer
    value = as_value(answer)
    try:
        return Evaluation(value, constraint_values(reported, constraints))
    except ObjectiveError as error:
        kept = (
            f"{error}. The value {value!r} was returned: correct the objective and give the study this experiment as "
        )
        return Evaluation(value, {}, type(error)(kept + "history=, or enqueue it again"))


def as_value(answer: object) -> float:
    """Convert the value of an objective to a float.

    Raises
    ------
    ObjectiveError
        If it is not a number: None, a string, a bool, or an array with dimensions.
    NotFiniteError
        If it is NaN or infinite.
    """
    # Scalars of other libraries, such as NumPy scalars and tensors without dimensions, have ``item`` and ``shape``.
    shape = getattr(answer, "shape", ())
    shape = tuple(shape) if isinstance(shape, Sequence) else ()
    try:
        plain = answer.item() if hasattr(answer, "item") and not shape else answer
        if isinstance(plain, bool) or not isinstance(plain, numbers.Real):
            described = f"an array of shape {shape}" if shape else f"{type(answer).__name__} {_show(answer)}"
            hint = "; does it end without a return statement?" if answer is None else ""
            raise ObjectiveError(f"the objective must return one number but returned {described}{hint}")
        value = float(plain)
    except OverflowError:
        raise NotFiniteError(f"the objective returned {_show(answer)}, which is too large for a float") from None
    except ObjectiveError:
        raise
    except Exception as error:  # of an object that only looks like a number
        raise ObjectiveError(
            f"the objective returned {type(answer).__name__}, whose value cannot be read: {_text(error)}"
        ) from error
    if not math.isfinite(value):
        raise NotFiniteError(f"the objective returned {value}, which is not a finite number")
    return value


def _text(error: BaseException) -> str:
    """Return the message of an error, shortened; an error may fail to print."""
    try:
        text = str(error)
    except Exception:
        return "(an error that cannot be printed)"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _show(value: object) -> str:
    """Return the beginning of a value's representation."""
    try:
        text = repr(value)
    except Exception as error:  # such as an int with more digits than Python prints
        return f"(a {type(value).__name__} that cannot be printed: {type(error).__name__})"
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."
