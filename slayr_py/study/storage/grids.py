"""Parameters with a step, which ConfigSpace lacks: the space has an integer that numbers the values of the grid."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping
from typing import Any

from ConfigSpace import ConfigurationSpace, Integer
from ConfigSpace.hyperparameters import Hyperparameter
from optuna.distributions import FloatDistribution, IntDistribution, distribution_to_json, json_to_distribution

from slayr_py.errors import level_outside
from slayr_py.space import GRID


def grid_parameter(name: str, distribution: FloatDistribution | IntDistribution) -> Hyperparameter[Any, Any]:
    """Return an integer parameter that numbers the values of a distribution with a step, which ConfigSpace lacks."""
    return Integer(name, (0, _last(distribution)), meta={GRID: distribution_to_json(distribution)})


def grid_of(parameter: Hyperparameter[Any, Any]) -> FloatDistribution | IntDistribution | None:
    """Return the distribution whose values a parameter numbers, or None if it does not number values."""
    return _read_grid(parameter.meta[GRID]) if parameter.meta and GRID in parameter.meta else None


def warn_of_grids(space: ConfigurationSpace) -> None:
    """Warn that configurations of a posterior in this space have numbers instead of the values on a grid."""
    for name, parameter in space.items():
        if (grid := grid_of(parameter)) is not None:
            warnings.warn(
                f"parameter {name!r} has a step, and the posterior numbers its values from 0: give it n for "
                f"{grid.low:g} + {grid.step:g} n, from 0 to {_last(grid)}, or declare the space with an ordinal "
                "parameter",
                UserWarning,
                stacklevel=level_outside(),
            )


@functools.cache
def _read_grid(text: str) -> FloatDistribution | IntDistribution:
    distribution = json_to_distribution(text)
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    return distribution


def _last(grid: FloatDistribution | IntDistribution) -> int:
    """Return the number of the largest value on a grid."""
    assert grid.step is not None
    return round((grid.high - grid.low) / grid.step)


def _position(grid: FloatDistribution | IntDistribution, value: Any) -> int:
    """Return the number of a value on a grid.

    Raises
    ------
    ValueError
        If it is not on the grid.
    """
    assert grid.step is not None
    position = (value - grid.low) / grid.step
    if not grid.low <= value <= grid.high or abs(position - round(position)) > 1e-8:
        raise ValueError(f"{value!r} is not on the grid {grid}")
    return int(round(position))


def as_declared(space: ConfigurationSpace, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of parameters as the space has them: it numbers the values on a grid.

    Raises
    ------
    ValueError, TypeError
        If a value is not on its grid.
    """
    grids = {name: grid_of(space[name]) for name in values}
    return {name: value if (grid := grids[name]) is None else _position(grid, value) for name, value in values.items()}
