"""Call the user's objective and turn its failures into messages for the trial."""

from __future__ import annotations

import math
import os
import signal
import time
import traceback
from asyncio import CancelledError
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import Parameter, signature
from typing import Any, NamedTuple

import optuna
import pandas as pd
from optuna import Study, Trial

from slayr_py.arguments import is_number, is_time, plain_scalar, shape_of, to_float
from slayr_py.display import shortened
from slayr_py.errors import DataError, NotFiniteError, ObjectiveError
from slayr_py.study.run.constraints import constraint_values
from slayr_py.study.storage.bounds import Constraint
from slayr_py.study.storage.costs import SECONDS, as_cost
from slayr_py.study.storage.optuna_private import may_stop

Values = Sequence[float] | Mapping[str, float]
"""Values of several objectives, in their order or by name."""

Objective = Callable[..., float | Values | tuple[float | Values, Mapping[str, float]]]
"""A function that takes the active parameters by name and returns a finite number, or one for each of several
objectives; or a pair of this and of constraints and a cost by name. With a second positional parameter, see
`takes_trial`, it also takes Optuna's trial."""

SHORTEST = 1e-9
"""Smallest measured duration in seconds; the clock may show none."""

_LONGEST = 2000  # characters of an error message stored with a trial
_LONGEST_VALUE = 200  # characters of a wrong value in a message


class Expected(NamedTuple):
    """The values that an objective has to return."""

    n: int = 1
    names: tuple[str, ...] | None = None
    """Names of several objectives, if they are known."""

    cost: str | None = None
    """Name of the cost of an evaluation, if costs count."""


ONE_NUMBER = Expected()


class Evaluation(NamedTuple):
    """The values of the objectives, and by how much each constraint is violated."""

    values: tuple[float, ...]
    constraints: dict[str, float]
    names: tuple[str, ...] | None = None
    """Names of several objectives that the objective has returned."""

    failure: ObjectiveError | None = None
    """Why the trial fails: its constraints cannot be used although there is a value or, if costs count, any error."""

    cost: float | None = None
    """Cost of the evaluation; None if costs do not count, or it is unknown."""

    cost_error: ObjectiveError | None = None
    """Why the cost cannot be used."""

    def in_order_of(self, names: Sequence[str]) -> Evaluation:
        """Return the same values in the order of these names, which are those of the values."""
        assert self.names is not None
        return self._replace(values=tuple(self.values[self.names.index(name)] for name in names))


def evaluate(
    objective: Objective,
    config: Mapping[str, Any],
    constraints: tuple[Constraint, ...] | None = None,
    expected: Expected = ONE_NUMBER,
    process: int | None = None,
    trial: Trial | None = None,
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
    expected : Expected
    process : int, optional
        Number of the process of the run, by default this one.
    trial : optuna.Trial, optional
        Second argument of the objective.

    Returns
    -------
    Evaluation
        Of finite numbers, or with the failure of the constraints. If costs count, an error of the objective is the
        failure of an evaluation, which has a cost too.

    Raises
    ------
    ObjectiveError
        If the objective raises an error (the cause), calls ``sys.exit``, or does not return a number.
    NotFiniteError
        If it returns NaN or an infinity.
    SystemExit
        If a signal handler calls ``sys.exit`` meanwhile in the process of the run. In another one it is an error of
        the objective.
    """
    clock = time.perf_counter()
    seconds = 0.0
    reported: Mapping[Any, Any] = {}
    try:
        try:
            answer = _call(objective, config, trial, os.getpid() if process is None else process)
        finally:
            seconds = time.perf_counter() - clock
        if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], Mapping):
            answer, reported = answer
        values, names = as_values(answer, expected)
    except ObjectiveError as error:
        if expected.cost is None:
            raise
        evaluation = Evaluation((), {}, failure=error)
    else:
        evaluation = _with_constraints(values, names, reported, constraints, expected)
    return evaluation if expected.cost is None else _with_cost(evaluation, expected.cost, reported, seconds)


def _call(objective: Objective, config: Mapping[str, Any], trial: Trial | None, process: int) -> Any:
    try:
        if trial is None:
            return objective(dict(config))
        with may_stop(trial.study):
            return objective(dict(config), trial)
    except (optuna.TrialPruned, ObjectiveError):
        raise
    except SystemExit as error:
        if os.getpid() == process and _is_of_signal(error):
            raise
        # Raised by a script used as an objective, or by its argument parser: it must not end the study.
        raise ObjectiveError(
            f"the objective called sys.exit({_show(error.code)}); it must return a number or raise an error"
        ) from error
    except (Exception, CancelledError) as error:
        raise ObjectiveError(f"the objective raised {type(error).__name__}: {_text(error)}") from error


def _is_of_signal(error: SystemExit) -> bool:
    """Return whether a signal handler has raised the error."""
    codes = [_code(signal.getsignal(number)) for number in signal.valid_signals()]
    return any(frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__))


def _code(handler: object) -> object:
    """Return the code that a call of a signal handler runs; None without any in Python."""
    while isinstance(handler, partial):
        handler = handler.func
    if hasattr(handler, "__code__") or not callable(handler):
        return getattr(handler, "__code__", None)
    return getattr(type(handler).__call__, "__code__", None)


def _with_constraints(
    values: tuple[float, ...],
    names: tuple[str, ...] | None,
    reported: Mapping[Any, Any],
    constraints: tuple[Constraint, ...] | None,
    expected: Expected,
) -> Evaluation:
    """Return the evaluation with the reported constraints; the cost is one only if it is named as a constraint."""
    if not any(constraint.name == expected.cost for constraint in constraints or ()):
        reported = {name: value for name, value in reported.items() if name != expected.cost}
    try:
        return Evaluation(values, constraint_values(reported, constraints), names)
    except ObjectiveError as error:
        shown = f"The value {values[0]!r} was" if expected.n == 1 else f"The values {values!r} were"
        kept = f"{error}. {shown} returned: correct the objective and give the study this experiment as "
        return Evaluation(values, {}, names, type(error)(kept + "history=, or enqueue it again"))


def _with_cost(evaluation: Evaluation, name: str, reported: Mapping[Any, Any], seconds: float) -> Evaluation:
    """Return the evaluation with the reported cost or, of the cost "seconds", the measured one."""
    if name not in reported:
        return evaluation._replace(cost=max(seconds, SHORTEST)) if name == SECONDS else evaluation
    cost = as_cost(reported[name])
    if cost is not None:
        return evaluation._replace(cost=cost)
    wrong = ObjectiveError(f"the cost {name!r} is {_show(reported[name])}, which is not a finite number above 0")
    return evaluation._replace(cost_error=wrong)


def takes_trial(objective: Callable[..., Any]) -> bool:
    """Return whether an objective takes Optuna's trial beside the configuration.

    It does if its second positional parameter has no default value or the name ``trial``.
    """
    try:
        parameters = list(signature(objective).parameters.values())
    except (TypeError, ValueError):  # a built-in function without a signature
        return False
    positional = [p for p in parameters if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    return len(positional) > 1 and (positional[1].default is Parameter.empty or positional[1].name == "trial")


def as_values(answer: object, expected: Expected) -> tuple[tuple[float, ...], tuple[str, ...] | None]:
    """Return what an objective has returned as one number for each objective, and the names if it returned a mapping.

    Raises
    ------
    ObjectiveError
        If it is not a sequence of as many numbers, or a mapping of the names or a series with these labels.
    NotFiniteError
        If a number is NaN or infinite.
    """
    count, names, _ = expected
    if count == 1:
        return (as_value(answer),), None
    answer = by_label(answer)
    wanted = f"{count} numbers" if names is None else f"{count} numbers, of {', '.join(names)}"
    order = names or _names_in(answer)
    parts = split_parts(answer, count, order)
    if parts is None:
        hint = "; does it end without a return statement?" if answer is None else ""
        raise ObjectiveError(f"the objective must return {wanted} but returned {_show(answer)}{hint}")
    return tuple(map(as_value, parts)), order if isinstance(answer, Mapping) else None


def expected_of(study: Study) -> Expected:
    """Return the values that the objective of a study has to return."""
    names = study.metric_names
    return Expected(len(study.directions), None if names is None else tuple(names))


def split_values(study: Study, value: object) -> tuple[list[object], tuple[str, ...] | None]:
    """Return the values of a study's objectives, unchecked, and their names if the study has none and a mapping does.

    Raises
    ------
    DataError
        If it is not a sequence of as many values, or a mapping of the names or a series with these labels.
    """
    count, names, _ = expected_of(study)
    if count == 1:
        return [value], None
    value = by_label(value)
    new = None if names else _names_in(value)
    parts = split_parts(value, count, new or names)
    if parts is None:
        known = f", of {', '.join(names)}" if names else ""
        raise DataError(
            f"the value is {value!r:.200}; give one number for each of the {count} objectives{known}, or "
            "state=optuna.trial.TrialState.FAIL for a failed trial"
        )
    return parts, new


def by_label(value: object) -> object:
    """Return a series with other labels than 0, 1, ... in order as a dict; anything else as it is."""
    if isinstance(value, pd.Series) and list(value.index) != list(range(len(value))):
        # Repeated labels are not names: the numbers of the entries are refused, with the labels in the message.
        return dict(value.items() if value.index.is_unique else enumerate(value.items()))
    return value


def split_parts(value: object, count: int, names: Sequence[str] | None) -> list[object] | None:
    """Return a part for each objective of a sequence, or of a mapping of their names; None for anything else."""
    if isinstance(value, Mapping):
        return [value[name] for name in names] if names and value.keys() == set(names) and len(value) == count else None
    parts = _parts(value)
    return list(parts) if isinstance(parts, Sequence) and not isinstance(parts, str) and len(parts) == count else None


def _names_in(value: object) -> tuple[str, ...] | None:
    """Return the names of a mapping, without those that are no text; None for anything else."""
    return tuple(name for name in value if isinstance(name, str)) if isinstance(value, Mapping) else None


def _parts(values: Any) -> object:
    """Return the entries of an array or a series, with their masks and units; anything else as it is."""
    return list(values) if hasattr(values, "tolist") and getattr(values, "shape", None) else values


def as_value(answer: object) -> float:
    """Convert the value of an objective to a float.

    Raises
    ------
    ObjectiveError
        If it is not a number: None, a string, a bool, a date, a duration, or an array with dimensions.
    NotFiniteError
        If it is NaN, masked or infinite.
    """
    shape = shape_of(answer)
    try:
        if not is_number(plain_scalar(answer)) or is_time(answer):
            described = f"an array of shape {shape}" if shape else f"{type(answer).__name__} {_show(answer)}"
            hint = "; does it end without a return statement?" if answer is None else ""
            raise ObjectiveError(f"the objective must return one number but returned {described}{hint}")
        value = to_float(answer)
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
    return shortened(text, _LONGEST)


def _show(value: object) -> str:
    """Return the beginning of a value's representation."""
    try:
        text = repr(value)
    except Exception as error:  # such as an int with more digits than Python prints
        return f"(a {type(value).__name__} that cannot be printed: {type(error).__name__})"
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."
