"""One parameter of a search space and its coordinate."""

from __future__ import annotations

from dataclasses import dataclass
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

from slayr_py.errors import SpaceError, did_you_mean

FloatArray = NDArray[np.float64]

_DECIMALS = 13  # ConfigSpace keeps so many of a float
_VERTICES = 256  # levels that an integer may have on a graph: the spectrum costs their cube


@dataclass(frozen=True)
class Dimension:
    """A parameter that varies, and how its values become coordinates.

    A real parameter (float or integer) has the coordinate (x - lower) / (upper - lower) in [0, 1], taken of the
    logarithm where the space says so; a parameter with levels (ordinal or categorical) has the index of its level.

    Attributes
    ----------
    name : str
    kind : {"float", "integer", "ordinal", "categorical"}
    lower, upper : float
        Bounds of a real parameter, in the user's units; 0 and ``len(levels) - 1`` otherwise.
    log : bool
        Whether a real parameter lives on the logarithmic scale.
    levels : tuple
        The values of an ordinal (in order) or categorical parameter; empty for a real one.
    """

    name: str
    kind: Literal["float", "integer", "ordinal", "categorical"]
    lower: float
    upper: float
    log: bool = False
    levels: tuple[Any, ...] = ()

    @classmethod
    def from_hyperparameter(cls, hyperparameter: Hyperparameter[Any, Any], on_graph: bool = False) -> Dimension:
        """Read a ConfigSpace hyperparameter.

        Parameters
        ----------
        hyperparameter : ConfigSpace.hyperparameters.Hyperparameter
        on_graph : bool
            Whether the values of an integer are levels, as those of an ordinal.

        Raises
        ------
        SpaceError
            For one without bounds or of an unknown kind, or an integer with too many values for a graph.
        """
        name = hyperparameter.name
        if isinstance(hyperparameter, CategoricalHyperparameter):
            levels = tuple(hyperparameter.choices)
            return cls(name, "categorical", 0, len(levels) - 1, levels=levels)
        if isinstance(hyperparameter, OrdinalHyperparameter):
            levels = tuple(hyperparameter.sequence)
            return cls(name, "ordinal", 0, len(levels) - 1, levels=levels)
        if isinstance(hyperparameter, IntegerHyperparameter) and on_graph:
            count = hyperparameter.upper - hyperparameter.lower + 1
            if count > _VERTICES:
                raise SpaceError(f"integer {name!r} has {count} values, a graph takes {_VERTICES} at most")
            levels = tuple(range(hyperparameter.lower, hyperparameter.upper + 1))
            return cls(name, "ordinal", 0, len(levels) - 1, levels=levels)
        if isinstance(hyperparameter, FloatHyperparameter | IntegerHyperparameter):
            lower, upper = float(hyperparameter.lower), float(hyperparameter.upper)
            if not (np.isfinite(lower) and np.isfinite(upper) and lower < upper):
                raise SpaceError(
                    f"parameter {name!r} has bounds ({lower}, {upper}); both must be finite, lower < upper"
                )
            kind: Literal["float", "integer"] = (
                "float" if isinstance(hyperparameter, FloatHyperparameter) else "integer"
            )
            return cls(name, kind, lower, upper, log=bool(hyperparameter.log))
        raise SpaceError(
            f"parameter {name!r} is a {type(hyperparameter).__name__}, which no kernel reads; "
            "use Float, Integer, Categorical (ordered or not) or Constant"
        )

    @property
    def is_real(self) -> bool:
        """Whether the coordinate is a number in [0, 1] rather than the index of a level."""
        return not self.levels

    def number(self, value: Any) -> float:
        """Index of the level that a value is, or the value of a real parameter as a float.

        Raises
        ------
        SpaceError
            If the parameter cannot have the value.
        """
        if self.levels:
            try:
                return self.levels.index(value)
            except (ValueError, TypeError):  # a value may not even compare with a level
                known = did_you_mean(value, map(str, self.levels))
                raise SpaceError(f"parameter {self.name!r} has no level {value!r}{known}") from None
        if not isinstance(value, int | float | np.integer | np.floating) or not self.lower <= value <= self.upper:
            lower, upper = self.values(np.array([self.lower, self.upper]))
            raise SpaceError(f"parameter {self.name!r} is a number from {lower} to {upper}, not {value!r}")
        if self.kind == "integer" and value != round(value):
            raise SpaceError(f"parameter {self.name!r} is an integer, not {value!r}")
        return float(value)

    def rounded(self, numbers: FloatArray) -> FloatArray:
        """Numbers with the decimals that ConfigSpace keeps of a float; others as they are."""
        if self.kind != "float":
            return numbers
        return np.clip(np.round(numbers, _DECIMALS), self.lower, self.upper)

    def coordinates(self, numbers: FloatArray) -> FloatArray:
        """Coordinates of level indices or real values; shape kept."""
        if self.levels:
            return numbers
        if self.log:
            return np.asarray(np.log(numbers / self.lower) / np.log(self.upper / self.lower))
        return np.asarray((numbers - self.lower) / (self.upper - self.lower))

    def numbers(self, coordinates: FloatArray) -> FloatArray:
        """Level indices or real values nearest to coordinates, not rounded for a float; shape kept."""
        if self.levels:
            return np.clip(np.rint(coordinates), 0, len(self.levels) - 1)
        u = np.clip(coordinates, 0.0, 1.0)
        if self.log:
            x = self.lower * np.exp(u * np.log(self.upper / self.lower))
        else:
            x = self.lower + u * (self.upper - self.lower)
        x = np.clip(x, self.lower, self.upper)
        return np.asarray(np.rint(x) if self.kind == "integer" else x)

    def values(self, numbers: FloatArray) -> list[Any]:
        """The user's values of level indices or real values, (n,)."""
        if self.levels:
            return [self.levels[i] for i in numbers.astype(np.intp).tolist()]
        return [round(x) for x in numbers.tolist()] if self.kind == "integer" else numbers.tolist()

    def coordinate(self, value: Any) -> float:
        """Coordinate of one legal value."""
        return float(self.coordinates(np.array([self.number(value)]))[0])

    def value(self, coordinate: float) -> Any:
        """Value at a coordinate: clipped to the bounds, rounded to the nearest integer or level."""
        return self.values(self.numbers(np.array([coordinate])))[0]

    def snap(self, coordinates: FloatArray) -> FloatArray:
        """Coordinates of the nearest legal values; shape kept."""
        if self.kind == "float":
            return np.clip(coordinates, 0.0, 1.0)
        return self.coordinates(self.numbers(coordinates))

    def from_uniform(self, u: FloatArray) -> FloatArray:
        """Coordinates of uniform variates in [0, 1): every level, or integer on a linear scale, equally likely."""
        if self.levels:
            return np.minimum(np.floor(u * len(self.levels)), len(self.levels) - 1)
        if self.kind == "integer" and not self.log:
            n = self.upper - self.lower + 1
            return np.minimum(np.floor(u * n), n - 1) / (n - 1)
        return self.snap(u)

    def neighbours(self, coordinate: float) -> FloatArray:
        """Coordinates one step away: every other level, the ranks or integers beside it; none for a float."""
        if self.kind == "categorical":
            return np.array([i for i in range(len(self.levels)) if i != round(coordinate)], dtype=np.float64)
        if self.kind == "ordinal":
            steps = [coordinate - 1, coordinate + 1]
            return np.array([s for s in steps if 0 <= s < len(self.levels)], dtype=np.float64)
        if self.kind == "integer":
            x = self.value(coordinate)
            return np.array([self.coordinate(v) for v in (x - 1, x + 1) if self.lower <= v <= self.upper])
        return np.empty(0)
