"""Observations as a program takes them: encoded configurations and standardised targets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from slayr_py.errors import DataError
from slayr_py.inference.model import Model
from slayr_py.space import Encoded
from slayr_py.space.dimension import FloatArray


@dataclass(frozen=True)
class Observed:
    """What a model is fitted to.

    Attributes
    ----------
    train : Encoded
        n configurations.
    data : dict
        Of the Stan program; its ``y`` (n,) is standardised.
    y_mean, y_sd : float
        What was taken away from the observed values, and what they were divided by then.
    """

    train: Encoded
    data: dict[str, Any]
    y_mean: float
    y_sd: float


def observe(
    model: Model, configs: Encoded | Iterable[Mapping[str, Any]] | Any, y: ArrayLike, omit_jacobian: bool = False
) -> Observed:
    """Encode configurations and standardise their values; ``omit_jacobian`` as in `Model.stan_data`.

    Raises
    ------
    SpaceError
        If a configuration does not belong to the space.
    DataError
        As of :func:`check_targets`.
    """
    train = model.encoder.encode(configs)
    targets = check_targets(y, len(train))
    mean, sd = standardisation(targets)
    data = model.stan_data(train, (targets - mean) / sd, train[:0], omit_jacobian=omit_jacobian)
    return Observed(train, data, mean, sd)


def check_targets(y: ArrayLike, n: int) -> FloatArray:
    """Observed values as (n,) float64.

    Raises
    ------
    DataError
        For another shape or length, no values, or values that are not finite numbers.
    """
    try:
        given = np.asarray(y)
        if given.dtype.kind not in "biufO":  # dates, durations and texts would become numbers that nobody meant
            raise TypeError(f"y is of type {given.dtype}")
        values = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"y must be numbers, got {y!r:.200}") from error
    if isinstance(y, np.ma.MaskedArray):
        values[np.ma.getmaskarray(y)] = np.nan
    if values.ndim != 1 or len(values) != n:
        raise DataError(f"y has shape {values.shape} for {n} configurations; one number each is needed")
    if n == 0:
        raise DataError("there is nothing to fit: y is empty; at least one observation is needed")
    if not np.all(np.isfinite(values)):
        bad = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(f"y[{bad}] is {values[bad]}; drop failed evaluations before fitting")
    return values


def standardisation(y: FloatArray) -> tuple[float, float]:
    """Mean and sample standard deviation (n - 1); scale 1 for a single or constant y."""
    largest = float(np.max(np.abs(y)))
    if largest == 0:
        return 0.0, 1.0
    # The square of 1e200 is infinite, that of 1e-200 zero. With a power of two as the unit no other digit changes.
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1)
    centre = unit * float(np.mean(y / unit))
    scale = min(unit * float(np.std(y / unit, ddof=1)), float(np.finfo(float).max)) if len(y) > 1 else 0.0
    # Rounding alone leaves a constant of size c a spread of about c times machine epsilon.
    return centre, scale if scale > 4 * np.finfo(float).eps * largest else 1.0
