"""Check the values that users enqueue for a trial, and the parameters that a trial asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace, Float
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from slayr_py.errors import EnqueuedError, SpaceError, did_you_mean, nearest
from slayr_py.space import is_active_under
from slayr_py.study.storage.distributions import distribution_of


def check_enqueued(space: ConfigurationSpace, enqueued: Mapping[str, Any]) -> None:
    """Check the values that a user has enqueued for a trial; ignore parameters that the space does not have.

    Optuna would raise a bare ``ValueError`` for an unknown level, and use a number outside its range.

    Raises
    ------
    EnqueuedError
        For a value that is not a level of its parameter, not a number, or outside the range.
    """
    for name, value in enqueued.items():
        if name not in space:
            continue
        distribution = distribution_of(space[name])
        what = f"the enqueued value {value!r} of the parameter {name!r}"
        if isinstance(distribution, CategoricalDistribution):
            if value not in distribution.choices:
                hint = did_you_mean(value, map(str, distribution.choices))
                known = f" Its levels are {', '.join(map(repr, distribution.choices))}" * hint.endswith("?")
                raise EnqueuedError(f"{what} is not one of its levels{hint}{known}")
            continue
        assert isinstance(distribution, FloatDistribution | IntDistribution)
        kind = "an integer" if isinstance(distribution, IntDistribution) else "a number"
        if not isinstance(value, int | float | np.integer | np.floating) or (kind == "an integer" and value % 1 != 0):
            raise EnqueuedError(f"{what} is not {kind} from {distribution.low} to {distribution.high}")
        if not distribution.low <= value <= distribution.high:
            near = distribution.high if value > distribution.high else distribution.low
            raise EnqueuedError(
                f"{what} is outside its range, {distribution.low} to {distribution.high}; the nearest is {near}"
            )


def requests(space: ConfigurationSpace, name: str, distribution: BaseDistribution) -> bool:
    """Return whether a distribution equals the declared one, up to ConfigSpace's rounding of the bounds."""
    declared = distribution_of(space[name])
    if isinstance(distribution, FloatDistribution) and isinstance(declared, FloatDistribution):
        if distribution.step is not None or distribution.log != declared.log:
            return False
        try:
            rounded = Float(name, (distribution.low, distribution.high), log=distribution.log)
        except ValueError:  # a range below ConfigSpace's precision
            return False
        return (rounded.lower, rounded.upper) == (declared.low, declared.high)
    return declared == distribution


def check_request(
    space: ConfigurationSpace, number: int, name: str, distribution: BaseDistribution, given: Mapping[str, Any]
) -> None:
    """Check a trial's request for a parameter, given its parameters and its suggested values.

    Raises
    ------
    SpaceError
        If the parameter is not declared, was declared with another range, or is inactive.
    """
    asks = f"trial {number} asks for parameter {name!r}"
    if name not in space:
        near = nearest(name, space)
        raise SpaceError(
            f"{asks}, {distribution}, which is not declared; the space has {', '.join(space)}"
            + (f"; did you mean {near!r}?" if near is not None else "")
        )
    if not requests(space, name, distribution):
        way_out = "request it as declared, or declare that range"
        if getattr(distribution, "step", None) not in (None, 1):
            way_out = "a space has no steps: declare an ordinal parameter with these values, and suggest_categorical"
        raise SpaceError(f"{asks} as {distribution}, which was declared as {distribution_of(space[name])}: {way_out}")
    if not is_active_under(space, name, given):
        conditions = " and ".join(map(str, space.parent_conditions_of[name]))
        raise SpaceError(
            f"{asks}, which is inactive in its configuration ({conditions}): ask for it only when it is active, or "
            "declare it without a condition"
        )
