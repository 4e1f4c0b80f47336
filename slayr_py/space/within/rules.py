"""Constraints on the parameters of a configuration: linear ones, other comparisons, and functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from slayr_py.errors import SpaceError
from slayr_py.space.dimension import FloatArray
from slayr_py.space.within.expression import Comparison, parse
from slayr_py.space.within.rows import Rows

Within = pd.DataFrame | Iterable["str | InputConstraint | Rows | pd.DataFrame | Callable[[dict[str, Any]], bool]"]
"""Constraints on inputs: texts, objects of this module, functions of a configuration, or tables of what is possible."""


class InputConstraint(ABC):
    """A constraint that every suggested configuration satisfies.

    It holds for configurations in which one of its parameters is inactive.

    Attributes
    ----------
    text : str
        As the user has written it; the name of a function.
    names : tuple of str
        Parameters that it reads; empty for a function, which may read all.
    is_equality : bool
    """

    text: str
    names: tuple[str, ...]
    is_equality: bool = False
    has_slopes: bool = True
    """Whether `evaluate` has derivatives, so that configurations can be moved into the constraint."""

    is_linear: bool = False

    @abstractmethod
    def evaluate(
        self, values: Mapping[str, FloatArray], configs: Callable[[], list[dict[str, Any]]]
    ) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Return a number (n,) that is not positive or, of an equality, 0 where it holds, and its derivatives.

        Parameters
        ----------
        values : mapping of str to (n,) float64
            In the user's units, of the parameters that it reads.
        configs : callable
            Returns the n configurations.
        """

    def size(self, values: Mapping[str, FloatArray]) -> FloatArray | float:
        """Return the size of the terms of the number of `evaluate`, (n,), which bounds its rounding error."""
        return 1.0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.text!r})"


class _Compared(InputConstraint):
    def __init__(self, comparison: Comparison) -> None:
        self.text = comparison.text
        self.names = comparison.names
        self.is_equality = comparison.is_equality
        self._comparison = comparison

    def evaluate(
        self, values: Mapping[str, FloatArray], configs: Callable[[], list[dict[str, Any]]]
    ) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Return the difference of the sides (n,) and its derivatives."""
        return self._comparison.evaluate(values)

    def size(self, values: Mapping[str, FloatArray]) -> FloatArray:
        """Return the sum of the sizes of the terms of both sides, (n,)."""
        return self._comparison.size(values)


class Nonlinear(_Compared):
    """A comparison that is not linear, such as ``"temperature * time <= 6000"``."""


class Linear(_Compared):
    """A linear constraint on numbers, such as ``Linear("x1 + x2 + x3 == 1")`` or ``Linear("2*a - b <= 5")``.

    Parameters
    ----------
    text : str
        One comparison by ``<=``, ``>=`` or ``==``; a name that is not an identifier stands in backticks.

    Raises
    ------
    SpaceError
        If the text is not one linear comparison.
    """

    is_linear = True

    def __init__(self, text: str | Comparison) -> None:
        comparisons = parse(text) if isinstance(text, str) else [text]
        if len(comparisons) > 1:
            raise SpaceError(f"the constraint {text!r} has several comparisons; give each of them a Linear")
        if comparisons[0].linear_form() is None:
            raise SpaceError(f"the constraint {text!r} is not linear; pass the text itself, without Linear")
        super().__init__(comparisons[0])


class Predicate(InputConstraint):
    """A function of the configuration that returns whether it is allowed."""

    has_slopes = False

    def __init__(self, function: Callable[[dict[str, Any]], bool]) -> None:
        self.text = _name_of(function)
        self.names = ()
        self._function = function

    def evaluate(
        self, values: Mapping[str, FloatArray], configs: Callable[[], list[dict[str, Any]]]
    ) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Return 0 (n,) where the configurations are allowed and 1 elsewhere, and no derivatives."""
        return np.array([self._excess(config) for config in configs()], dtype=np.float64), {}

    def _excess(self, config: dict[str, Any]) -> float:
        try:
            allowed = self._function(config)
        except Exception as error:
            raise SpaceError(
                f"the constraint {self.text} raises {type(error).__name__} for {config!r:.200}: {error}; it must "
                "return True or False for every configuration, in which only active parameters have values and "
                "comparisons beside it hold up to rounding"
            ) from error
        if not isinstance(allowed, bool | np.bool_):
            raise SpaceError(
                f"the constraint {self.text} returns {allowed!r:.80} for {config!r:.200}, not True or False"
            )
        return 0.0 if allowed else 1.0


def _name_of(function: Callable[..., Any]) -> str:
    """Return the name of a function, or of the class of an object that is called: the same in every process."""
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def recorded(stored: Iterable[Any]) -> list[str | InputConstraint | Rows]:
    """Return the constraints of `Region.stored`: texts, stand-ins that allow everything for functions, and lists."""
    return [
        each if isinstance(each, str) else Rows(each["rows"]) if "rows" in each else _stand_in(each["function"])
        for each in stored
    ]


def function_names(stored: Iterable[Any]) -> list[str]:
    """Return the names of the functions among the constraints of `Region.stored`."""
    return [each["function"] for each in stored if not isinstance(each, str) and "function" in each]


def within_text(stored: Iterable[Any]) -> str:
    """Return the constraints of `Region.stored` as a user types them: ``['a + b <= 1', is_soluble]``."""
    texts = (repr(each) if isinstance(each, str) else getattr(each, "text", "") for each in recorded(stored))
    return f"[{', '.join(texts)}]"


def _stand_in(name: str) -> Predicate:
    def allowed(config: dict[str, Any]) -> bool:
        return True

    allowed.__name__ = name
    return Predicate(allowed)


def read_within(within: Within) -> tuple[InputConstraint | Rows, ...]:
    """Return the constraints on inputs that a user has given.

    Raises
    ------
    SpaceError
        For anything but texts, constraints, functions and tables, or a text that is not a comparison.
    """
    if isinstance(within, pd.DataFrame):
        return (Rows(within),)
    if isinstance(within, str) or not isinstance(within, Iterable):
        raise SpaceError(f'within is {within!r:.200}; give a list, as in within=["x1 + x2 + x3 == 1"]')
    constraints: list[InputConstraint | Rows] = []
    for each in within:
        if isinstance(each, InputConstraint | Rows):
            constraints.append(each)
        elif isinstance(each, pd.DataFrame):
            constraints.append(Rows(each))
        elif isinstance(each, str):
            for comparison in parse(each):
                linear = comparison.linear_form() is not None
                constraints.append(Linear(comparison) if linear else Nonlinear(comparison))
        elif callable(each):
            constraints.append(Predicate(each))
        else:
            raise SpaceError(f"within has {each!r:.200}; give a text such as 'a + b <= 1', a function, or a DataFrame")
    return tuple(constraints)
