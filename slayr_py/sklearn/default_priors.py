"""Default priors of the regressor, which are wider than those of optimisation."""

from __future__ import annotations

import math

from slayr_py.inference import Model
from slayr_py.kernels import SIGNAL, LogNormal, Matern, Prior


def default_priors(model: Model) -> dict[str, Prior]:
    """Return the default priors of a Matérn kernel; no prior for another kernel, which keeps its own.

    Columns of a table need not matter, and the training data rarely cover the range of a smooth function. The prior of
    the length-scales is that of Hvarfner, Hellsten & Nardi (2024).
    """
    if not isinstance(model.kernel, Matern):
        return {}
    columns = len(model.encoder.column_names)
    return {
        "lengthscale": LogNormal(math.sqrt(2) + math.log(columns) / 2, math.sqrt(3)),
        SIGNAL.name: LogNormal(1.0, 1.0),
    }
