"""Spaces in the forms that a user may give."""

from __future__ import annotations

from ConfigSpace import ConfigurationSpace

from slayr_py.errors import SpaceError
from slayr_py.space.encoder import Encoder
from slayr_py.space.within import Within


def as_encoder(space: ConfigurationSpace | Encoder, within: Within | None = None) -> Encoder:
    """Return the encoder of a space, with constraints on inputs if there are any.

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
    return Encoder(space.space, space.requested_graphs, within)
