"""From search spaces to arrays: ConfigSpace in, unit-cube coordinates out."""

from slayr_py.space.dimension import Dimension
from slayr_py.space.encoder import Encoded, Encoder
from slayr_py.space.serial import jsonable, space_from_json, space_to_json

__all__ = ["Dimension", "Encoded", "Encoder", "jsonable", "space_from_json", "space_to_json"]
