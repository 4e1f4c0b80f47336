"""Observations as data of a program: encoded configurations and standardised targets."""

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
    """Observations that a model is fitted to.

    Attributes
    ----------
    train : Encoded
        n configurations.
    data : dict
        Data of the Stan program; ``y`` (n,) is standardised.
    y_mean, y_sd : float
        Mean that was subtracted from the observed values, and standard deviation that they were divided by; ``y_sd`` is
        negative if larger values are better, because the program sees targets of which smaller ones are better.
    """

    train: Encoded
    data: dict[str, Any]
    y_mean: float
    y_sd: float


def observe(
    model: Model,
    configs: Encoded | Iterable[Mapping[str, Any]] | Any,
    y: ArrayLike,
    omit_jacobian: bool = False,
    pointwise: bool = True,
    maximize: bool = False,
) -> Observed:
    """Encode configurations and standardise their values.

    ``omit_jacobian`` and ``pointwise`` are those of `Model.stan_data`, ``maximize`` is that of `GaussianProcess.fit`.

    Raises
    ------
    SpaceError
        If a configuration does not belong to the space.
    DataError
        As in :func:`check_targets`.
    """
    train = model.encoder.encode(configs)
    targets = check_targets(y, len(train))
    mean, sd = standardisation(targets)
    # The same bits as for the negated values; division by a negative number would turn 0 into -0.
    scaled = (mean - targets if maximize else targets - mean) / sd
    data = model.stan_data(train, scaled, train[:0], omit_jacobian=omit_jacobian, pointwise=pointwise)
    return Observed(train, data, mean, -sd if maximize else sd)


def check_targets(y: ArrayLike, n: int) -> FloatArray:
    """Return the observed values as (n,) float64.

    Raises
    ------
    DataError
        For a wrong shape or length, no values, or values that are not finite numbers.
    """
    try:
        given = np.asarray(y)
        if given.dtype.kind not in "biufO":  # NumPy would convert dates, durations and strings to numbers
            raise TypeError(f"y is of type {given.dtype}")
        values = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"y must be numbers, got {y!r:.200}") from error
    if isinstance(y, np.ma.MaskedArray):
        values[np.ma.getmaskarray(y)] = np.nan
    if values.ndim != 1 or len(values) != n:
        raise DataError(f"y has shape {values.shape} for {n} configurations; one number each is needed")
    if n == 0:
        raise DataError("y is empty; at least one observation is needed")
    if not np.all(np.isfinite(values)):
        bad = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(f"y[{bad}] is {values[bad]}; drop failed evaluations before fitting")
    return values


def standardisation(y: FloatArray) -> tuple[float, float]:
    """Return mean and sample standard deviation (n - 1); a single or constant y has scale 1."""
    largest = float(np.max(np.abs(y)))
    if largest == 0:
        return 0.0, 1.0
    # The square of 1e200 is infinite, and that of 1e-200 is 0. Dividing by a power of two changes no digit.
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1)
    centre = unit * float(np.mean(y / unit))
    scale = min(unit * float(np.std(y / unit, ddof=1)), float(np.finfo(float).max)) if len(y) > 1 else 0.0
    # Rounding alone gives a constant c a spread of about c times machine epsilon.
    return centre, scale if scale > 4 * np.finfo(float).eps * largest else 1.0
