"""Spaces without conditions, of Optuna's distributions."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer
from ConfigSpace.hyperparameters import Hyperparameter
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from slayr_py.errors import SpaceError, level_outside, reason_of
from slayr_py.space import Dimension, Encoded, Encoder
from slayr_py.study.storage.distributions import levels, to_configuration, to_params
from slayr_py.study.storage.grids import grid_parameter


def to_space(distributions: Mapping[str, BaseDistribution]) -> ConfigurationSpace:
    """Return a flat space of the parameters that can be modelled; a grid becomes an integer.

    Warns
    -----
    RuntimeWarning
        For the others, which a study draws at random: a range below ConfigSpace's precision or beyond 64-bit integers,
        choices that are equal, or choices that are objects.
    """
    space = ConfigurationSpace()
    for name, distribution in sorted(distributions.items()):
        try:
            parameter = _parameter(name, distribution)
            Dimension.from_hyperparameter(parameter)
        except (ValueError, TypeError, OverflowError, SpaceError) as error:
            text = f"parameter {name!r} is not modelled, but drawn at random: {reason_of(error)}"
            warnings.warn(text, RuntimeWarning, stacklevel=level_outside())
            continue
        space.add(parameter)
    return space


def _parameter(name: str, distribution: BaseDistribution) -> Hyperparameter[Any, Any]:
    if isinstance(distribution, CategoricalDistribution):
        parameter = Categorical(name, list(distribution.choices))
        levels(parameter)  # raises an error for choices that a study cannot store
        return parameter
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    if isinstance(distribution, IntDistribution) and distribution.step == 1:
        return Integer(name, (distribution.low, distribution.high), log=distribution.log)
    if distribution.step is not None:
        return grid_parameter(name, distribution)
    return Float(name, (distribution.low, distribution.high), log=distribution.log)


def widest(one: BaseDistribution, other: BaseDistribution) -> BaseDistribution:
    """Return a distribution with the values of two; the second one if their kinds differ."""
    if isinstance(one, FloatDistribution) and isinstance(other, FloatDistribution):
        if (one.log, one.step) == (other.log, other.step):
            return FloatDistribution(min(one.low, other.low), max(one.high, other.high), other.log, other.step)
    elif isinstance(one, IntDistribution) and isinstance(other, IntDistribution):
        if (one.log, one.step) == (other.log, other.step):
            return IntDistribution(min(one.low, other.low), max(one.high, other.high), other.log, other.step)
    return other


def encode_partly(encoder: Encoder, many: Sequence[Mapping[str, Any]]) -> list[Encoded | None]:
    """Encode the parameters of trials on a flat space, missing ones as inactive; None for an illegal value."""
    defaults = to_params(encoder.space.get_default_configuration())
    configs = [to_configuration(encoder.space, {**defaults, **params}) for params in many]
    legal = [i for i, config in enumerate(configs) if config is not None]
    encoded = encoder.encode([config for config in configs if config is not None])
    rows: list[Encoded | None] = [None] * len(configs)
    for row, i in enumerate(legal):
        active = encoded.active[[row]] & np.isin(encoder.names, list(many[i]))
        rows[i] = Encoded(np.where(active, encoded.unit_values[[row]], 0.0), active, encoder)
    return rows
