"""One parameter of a search space and its unit values."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    FloatHyperparameter,
    Hyperparameter,
    IntegerHyperparameter,
    OrdinalHyperparameter,
)
from numpy.typing import NDArray

from slayr_py.arguments import plain_number
from slayr_py.errors import SpaceError, did_you_mean
from slayr_py.space.dates import is_date

FloatArray = NDArray[np.float64]

_DECIMALS = 13  # decimals to which ConfigSpace rounds a float
SMALLEST_SPAN = 1e-7
"""Smallest range of a float on a linear scale: ConfigSpace rounds its values to a millionth of that."""
_COARSEST_LOG = 0.01  # largest resolution on a logarithmic scale, which is that near the lower bound only
_RATIO = 100.0  # of the ends of a range for which its scale matters
_SHIFT = 1e-3  # of a range from 0, relative to its upper bound
_VERTICES = 256  # most levels of an integer on a graph, since the cost of the spectrum grows with their cube


@dataclass(frozen=True)
class Dimension:
    """A parameter that varies, and the map between its values and unit values.

    The unit value of a real parameter (float or integer) is (x - lower) / (upper - lower) in [0, 1], computed from
    logarithms if the space declares the parameter logarithmic, or if a model does, see `rescaled`. The unit value of a
    parameter with levels (ordinal or categorical) is the index of the level.

    Attributes
    ----------
    name : str
    kind : {"float", "integer", "ordinal", "categorical"}
    lower, upper : float
        Bounds of a real parameter, in the user's units; 0 and ``len(levels) - 1`` otherwise.
    log : bool
        Whether a real parameter is on the logarithmic scale.
    shift : float
        If positive, the scale of a range from 0 is that of log(x + shift).
    levels : tuple
        The values of an ordinal (in order) or categorical parameter; empty for a real one.
    """

    name: str
    kind: Literal["float", "integer", "ordinal", "categorical"]
    lower: float
    upper: float
    log: bool = False
    levels: tuple[Any, ...] = ()
    shift: float = 0.0

    @classmethod
    def from_hyperparameter(cls, hyperparameter: Hyperparameter[Any, Any], on_graph: bool = False) -> Dimension:
        """Make a dimension from a ConfigSpace hyperparameter.

        Parameters
        ----------
        hyperparameter : ConfigSpace.hyperparameters.Hyperparameter
        on_graph : bool
            Whether to treat the values of an integer as the levels of an ordinal.

        Raises
        ------
        SpaceError
            If the hyperparameter has no bounds or an unknown kind, is an integer with too many values for a graph, is a
            float of so small a range that ConfigSpace's rounding matters, or has the levels None and "None".
        """
        name = hyperparameter.name
        if isinstance(hyperparameter, CategoricalHyperparameter):
            levels = _distinct(name, tuple(hyperparameter.choices))
            return cls(name, "categorical", 0, len(levels) - 1, levels=levels)
        if isinstance(hyperparameter, OrdinalHyperparameter):
            levels = _distinct(name, tuple(hyperparameter.sequence))
            return cls(name, "ordinal", 0, len(levels) - 1, levels=levels)
        if isinstance(hyperparameter, IntegerHyperparameter) and on_graph:
            count = hyperparameter.upper - hyperparameter.lower + 1
            if count > _VERTICES:
                raise SpaceError(
                    f"integer {name!r} has {count} values, and a graph has at most {_VERTICES}; leave it out of graphs="
                )
            levels = tuple(range(hyperparameter.lower, hyperparameter.upper + 1))
            return cls(name, "ordinal", 0, len(levels) - 1, levels=levels)
        if isinstance(hyperparameter, FloatHyperparameter | IntegerHyperparameter):
            lower = float(hyperparameter.lower)
            upper = float(hyperparameter.upper)
            if not (np.isfinite(lower) and np.isfinite(upper) and lower < upper):
                raise SpaceError(
                    f"parameter {name!r} has bounds ({lower}, {upper}); give finite bounds with lower < upper"
                )
            kind: Literal["float", "integer"] = (
                "float" if isinstance(hyperparameter, FloatHyperparameter) else "integer"
            )
            dimension = cls(name, kind, lower, upper, log=bool(hyperparameter.log))
            if dimension.is_too_coarse:
                raise SpaceError(
                    f"parameter {name!r} spans from {lower} to {upper}, which is too small for ConfigSpace, as it "
                    f"rounds floats to {_DECIMALS} decimals: rescale it"
                )
            return dimension
        raise SpaceError(
            f"parameter {name!r} is a {type(hyperparameter).__name__}, which kernels do not support; "
            "use Float, Integer, Categorical (ordered or not) or Constant"
        )

    def rescaled(self) -> Dimension | None:
        """Return the dimension with a logarithmic scale instead of a linear one, which has to span two decades.

        A range from 0 has the scale of log(x + shift), where the shift is a thousandth of the range, of integers at
        least 1. None if there is no such scale: for other kinds and scales, negative, short, and tiny ranges.
        """
        if not (self.is_real and self.is_linear) or self.lower < 0:
            return None
        if self.lower > 0:
            other = replace(self, log=True)
            ratio = self.upper / self.lower
            return other if _RATIO <= ratio < np.inf and not other.is_too_coarse else None
        shift = max(self.upper * _SHIFT, float(self.kind == "integer"))
        other = replace(self, shift=shift)
        return other if self.upper + shift >= _RATIO * shift and not other.is_too_coarse else None

    def ranked(self) -> Dimension:
        """Return the dimension of the ranks of an ordinal as integers from 0; of another kind, or one level, itself."""
        is_order = self.kind == "ordinal" and len(self.levels) > 1
        return replace(self, kind="integer", levels=()) if is_order else self

    @property
    def is_linear(self) -> bool:
        """Whether differences of a real parameter count, and not ratios."""
        return not self.log and not self.shift

    @property
    def is_real(self) -> bool:
        """Whether the unit value is a number in [0, 1] rather than the index of a level."""
        return not self.levels

    @property
    def width(self) -> int:
        """Largest unit value, at least 1: 1 of a real parameter, the index of the last level of others."""
        return max(len(self.levels) - 1, 1)

    @property
    def column_names(self) -> list[str]:
        """Names of its columns in ``Encoded.columns``: its own, or ``act[relu]`` for each level of a category."""
        return [f"{self.name}[{level}]" for level in self.levels] if self.kind == "categorical" else [self.name]

    def number(self, value: object) -> float:
        """Return the index of a level, or the value of a real parameter as a float.

        Raises
        ------
        SpaceError
            If the value is not legal for the parameter.
        """
        plain = plain_number(value)
        if self.levels:
            for level in (value, plain):
                with suppress(ValueError, TypeError):  # comparing a value with a level may fail
                    return self.levels.index(level)
            alike = [level for level in self.levels if str(level) == str(value)]
            hint = (
                f"; give {alike[0]!r}, of type {type(alike[0]).__name__}"
                if alike
                else did_you_mean(value, map(str, self.levels))
            )
            raise SpaceError(f"parameter {self.name!r} has no level {value!r}{hint}")
        if not isinstance(plain, int | float | np.integer | np.floating) or not self.lower <= plain <= self.upper:
            lower, upper = self.values(np.array([self.lower, self.upper]))
            date = ": write a date as the time since a day of your choice" if is_date(value) else ""
            raise SpaceError(f"parameter {self.name!r} is {value!r}; give a number from {lower} to {upper}{date}")
        if self.kind == "integer" and plain != round(plain):
            raise SpaceError(f"parameter {self.name!r} is {value!r}; give an integer")
        return float(plain)

    def is_number(self, value: object, number: float) -> bool:
        """Return whether a value, legal or not, is evaluated as this level index or rounded number."""
        try:
            plain = self.number(value.item() if isinstance(value, np.generic) else value)
        except SpaceError:
            return False
        return bool(self.rounded(np.array([plain]))[0] == number)

    def rounded(self, numbers: FloatArray) -> FloatArray:
        """Round numbers of a float parameter to ConfigSpace's decimals; return numbers of other kinds unchanged."""
        if self.kind != "float":
            return numbers
        return np.clip(np.round(numbers, _DECIMALS), self.lower, self.upper)

    @property
    def resolution(self) -> float:
        """Largest distance in unit values of two numbers of a float that :meth:`rounded` makes equal."""
        step = 10.0**-_DECIMALS
        if self.shift:
            return float(np.log1p(step / self.shift) / np.log1p(self.upper / self.shift))
        if self.log:
            return float(np.log1p(step / self.lower) / np.log(self.upper / self.lower))
        return step / (self.upper - self.lower)

    @property
    def is_too_coarse(self) -> bool:
        """Whether the rounding of a float is a notable share of its range, which it never is for integers."""
        if self.is_linear:
            return self.upper - self.lower < SMALLEST_SPAN
        return self.resolution > _COARSEST_LOG

    def unit_values(self, numbers: FloatArray) -> FloatArray:
        """Return the unit values of level indices or real values, in the same shape."""
        if self.levels:
            return numbers
        if self.shift:
            return np.asarray(np.log1p(numbers / self.shift) / np.log1p(self.upper / self.shift))
        if self.log:
            return np.asarray(np.log(numbers / self.lower) / np.log(self.upper / self.lower))
        return np.asarray((numbers - self.lower) / (self.upper - self.lower))

    def numbers(self, unit_values: FloatArray) -> FloatArray:
        """Return the nearest level indices or real values, in the same shape; floats are not rounded."""
        if self.levels:
            return np.clip(np.rint(unit_values), 0, len(self.levels) - 1)
        u = np.clip(unit_values, 0.0, 1.0)
        if self.shift:
            x = self.shift * np.expm1(u * np.log1p(self.upper / self.shift))
        elif self.log:
            x = self.lower * np.exp(u * np.log(self.upper / self.lower))
        else:
            x = self.lower + u * (self.upper - self.lower)
        x = np.where(u == 1.0, self.upper, np.clip(x, self.lower, self.upper))  # exp(log(x)) may be less than x
        return np.asarray(np.rint(x) if self.kind == "integer" else x)

    def equals(self, unit_values: FloatArray, number: float) -> NDArray[np.bool_]:
        """Return which unit values are those of a level index or real value, but for the rounding of floats."""
        numbers = self.numbers(unit_values)
        if self.kind != "float":
            return np.asarray(numbers == number)
        step = 10.0**-_DECIMALS
        rounding = 0.0 if self.log else 8 * np.finfo(np.float64).eps * max(abs(self.lower), abs(self.upper))
        return np.asarray(np.abs(numbers - number) <= step * (1 + abs(number)) + rounding)

    def values(self, numbers: FloatArray) -> list[Any]:
        """Return the user's values of n level indices or real values."""
        if self.levels:
            return [self.levels[i] for i in numbers.astype(np.intp).tolist()]
        return [round(x) for x in numbers.tolist()] if self.kind == "integer" else numbers.tolist()

    def unit_value(self, value: object) -> float:
        """Return the unit value of one legal value."""
        return float(self.unit_values(np.array([self.number(value)]))[0])

    def value(self, unit_value: float) -> Any:
        """Return the value at a unit value, clipped to the bounds, rounded to the nearest integer or level."""
        return self.values(self.numbers(np.array([unit_value])))[0]

    def snap(self, unit_values: FloatArray) -> FloatArray:
        """Return the unit values of the nearest legal values, in the same shape."""
        if self.kind == "float":
            return np.clip(unit_values, 0.0, 1.0)
        return self.unit_values(self.numbers(unit_values))

    def from_uniform(self, u: FloatArray) -> FloatArray:
        """Map uniform variates in [0, 1) to unit values; levels, and integers on a linear scale, are equally likely."""
        if self.levels:
            return np.minimum(np.floor(u * len(self.levels)), len(self.levels) - 1)
        if self.kind == "integer" and self.is_linear:
            n = self.upper - self.lower + 1
            return np.minimum(np.floor(u * n), n - 1) / (n - 1)
        return self.snap(u)

    def neighbours(self, unit_value: float) -> FloatArray:
        """Return the unit values one step away: all other levels, adjacent ranks or integers; none for a float."""
        if self.kind == "categorical":
            return np.array([i for i in range(len(self.levels)) if i != round(unit_value)], dtype=np.float64)
        if self.kind == "ordinal":
            steps = [unit_value - 1, unit_value + 1]
            return np.array([s for s in steps if 0 <= s < len(self.levels)], dtype=np.float64)
        if self.kind == "integer":
            x = self.value(unit_value)
            return np.array([self.unit_value(v) for v in (x - 1, x + 1) if self.lower <= v <= self.upper])
        return np.empty(0)


def _distinct(name: str, levels: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return levels, unless None and "None" are among them, which labels and graphs cannot tell apart."""
    if any(level is None for level in levels) and any(isinstance(level, str) and level == "None" for level in levels):
        raise SpaceError(f"parameter {name!r} has the levels None and 'None', which have the same label; rename one")
    return levels
