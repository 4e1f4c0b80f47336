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

from slayr_py.errors import SpaceError

FloatArray = NDArray[np.float64]


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
    def from_hyperparameter(cls, hyperparameter: Hyperparameter[Any, Any]) -> Dimension:
        """Read a ConfigSpace hyperparameter; ``SpaceError`` for one without bounds or of an unknown kind."""
        name = hyperparameter.name
        if isinstance(hyperparameter, CategoricalHyperparameter):
            levels = tuple(hyperparameter.choices)
            return cls(name, "categorical", 0, len(levels) - 1, levels=levels)
        if isinstance(hyperparameter, OrdinalHyperparameter):
            levels = tuple(hyperparameter.sequence)
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

    def coordinate(self, value: Any) -> float:
        """Coordinate of one legal value."""
        if self.levels:
            return float(self.levels.index(value))
        if self.log:
            return float(np.log(value / self.lower) / np.log(self.upper / self.lower))
        return (float(value) - self.lower) / (self.upper - self.lower)

    def value(self, coordinate: float) -> Any:
        """Value at a coordinate: clipped to the bounds, rounded to the nearest integer or level."""
        if self.levels:
            return self.levels[int(np.clip(round(coordinate), 0, len(self.levels) - 1))]
        x = float(self.real_values(np.float64(coordinate)))
        return round(x) if self.kind == "integer" else x

    def real_values(self, coordinates: FloatArray | np.float64) -> FloatArray:
        """Values of a real parameter at coordinates of any shape, in the user's units."""
        u = np.clip(coordinates, 0.0, 1.0)
        if self.log:
            x = self.lower * np.exp(u * np.log(self.upper / self.lower))
        else:
            x = self.lower + u * (self.upper - self.lower)
        x = np.clip(x, self.lower, self.upper)
        return np.asarray(np.rint(x) if self.kind == "integer" else x, dtype=np.float64)

    def snap(self, coordinates: FloatArray) -> FloatArray:
        """Coordinates of the nearest legal values; shape kept."""
        if self.levels:
            return np.clip(np.rint(coordinates), 0, len(self.levels) - 1)
        u = np.clip(coordinates, 0.0, 1.0)
        if self.kind == "float":
            return u
        x = self.real_values(u)
        return (
            np.log(x / self.lower) / np.log(self.upper / self.lower)
            if self.log
            else ((x - self.lower) / (self.upper - self.lower))
        )

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
