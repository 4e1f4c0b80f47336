"""Search spaces as arrays: ConfigSpace in; unit values, graphs and their spectra out."""

from slayr_py.space.activity import (
    active_names as active_names,
    is_active as is_active,
    is_active_under as is_active_under,
    missing_names as missing_names,
    without_inactive as without_inactive,
)
from slayr_py.space.dates import TimeScale, has_dates, is_date
from slayr_py.space.dictionaries import parameter_of
from slayr_py.space.dimension import SMALLEST_SPAN, Dimension, FloatArray
from slayr_py.space.encoded import Encoded
from slayr_py.space.encoder import Encoder
from slayr_py.space.fixed import Fixed
from slayr_py.space.given import Space, as_encoder, space_given as space_given
from slayr_py.space.graphs import adjacency
from slayr_py.space.layout import Layout
from slayr_py.space.reading import PARAMETER as PARAMETER, rows_of
from slayr_py.space.serial import (
    GRID,
    LOGARITHMIC as LOGARITHMIC,
    WITHIN as WITHIN,
    encoder_from_json,
    encoder_to_json,
    jsonable,
    space_from_json,
    space_to_json,
)
from slayr_py.space.spectrum import Spectrum, signed
from slayr_py.space.spread import spread
from slayr_py.space.within import (
    TOLERANCE,
    Linear,
    Within,
    function_names as function_names,
    within_text as within_text,
)

__all__ = [
    "Dimension",
    "Encoded",
    "Encoder",
    "Fixed",
    "Layout",
    "Linear",
    "Spectrum",
    "encoder_from_json",
    "encoder_to_json",
    "jsonable",
    "space_from_json",
    "space_to_json",
]
