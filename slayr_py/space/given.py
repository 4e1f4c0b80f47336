"""Spaces in the forms that a user may give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ConfigSpace import ConfigurationSpace

from slayr_py.errors import SpaceError
from slayr_py.space.encoder import Encoder
from slayr_py.space.within import Within

Space = ConfigurationSpace | Encoder | Mapping[str, Any]
"""A space, a space with graphs and constraints, or a dictionary: see `as_encoder`."""


def space_given(space: Space) -> ConfigurationSpace:
    """Return the space of any form in which a user may give it; raises as `as_encoder`."""
    return space if isinstance(space, ConfigurationSpace) else as_encoder(space).space


def as_encoder(space: Space, within: Within | None = None) -> Encoder:
    """Return the encoder of a space, with constraints on inputs if there are any.

    Parameters
    ----------
    space : ConfigurationSpace, Encoder or mapping
        A mapping has for each name two floats or two integers, the bounds of a number; a list, the levels of a
        categorical parameter; a single value, a constant; or a parameter of ConfigSpace, such as
        ``Float("lr", (1e-4, 0.1), log=True)``.
    within : sequence, optional
        Constraints on inputs, see `Encoder`.

    Raises
    ------
    SpaceError
        If the space is not a space, or an encoder that already has constraints on inputs.
    """
    if not isinstance(space, Encoder):
        return Encoder(space, within=within)
    if within is None:
        return space
    if space.region is not None:
        raise SpaceError("the encoder has constraints on inputs, and within= has some too; give all in one place")
    return Encoder(space.space, space.requested_graphs, within).rescaled(space.logarithmic)
