"""From search spaces to arrays: ConfigSpace in, unit-cube coordinates out."""

from slayr_py.space.dimension import Dimension
from slayr_py.space.encoder import Encoded, Encoder

__all__ = ["Dimension", "Encoded", "Encoder"]
