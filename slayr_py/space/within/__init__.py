"""Constraints on inputs: comparisons, functions and lists, and the part of a space in which they hold."""

from slayr_py.space.within.drawing import draw as draw, integer_exchanges as integer_exchanges, why_empty as why_empty
from slayr_py.space.within.projection import along_faces as along_faces, repair as repair
from slayr_py.space.within.region import TOLERANCE as TOLERANCE, Region as Region
from slayr_py.space.within.rows import Choice as Choice, Rows as Rows
from slayr_py.space.within.rules import (
    InputConstraint as InputConstraint,
    Linear as Linear,
    Within as Within,
    function_names as function_names,
    read_within as read_within,
    recorded as recorded,
    within_text as within_text,
)
