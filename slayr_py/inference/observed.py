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
from slayr_py.space import Encoded, FloatArray

_LARGEST_ERROR = 1e50
"""Largest known error in standard deviations of the targets: an observation with a larger one tells nothing either."""


@dataclass(frozen=True)
class Observed:
    """Observations that a model is fitted to.

    Attributes
    ----------
    model : Model
        The model, with priors that depend on the observations.
    train : Encoded
        n configurations.
    data : dict
        Data of the Stan program; ``y`` (n,) is standardised.
    y_mean, y_sd : float
        Mean that was subtracted from the observed values, and standard deviation by which they were divided. ``y_sd``
        is negative if larger values are better, because the program always minimises. They are 0 and 1 for binary
        observations.
    """

    model: Model
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
    errors: ArrayLike | None = None,
) -> Observed:
    """Encode configurations and standardise their values.

    ``omit_jacobian`` and ``pointwise`` are as in `Model.stan_data`, ``maximize`` as in `GaussianProcess.fit`.

    ``errors`` are known standard deviations of the errors of y, in the user's units.

    Raises
    ------
    SpaceError
        If a configuration does not belong to the space.
    DataError
        As in :func:`check_targets`, :func:`check_errors` and `Model.with_errors`.
    """
    train = model.encoder.encode(configs)
    targets = check_targets(y, len(train))
    known = None if errors is None else check_errors(errors, len(train))
    if model.likelihood == "probit":
        if known is not None or maximize:
            unsupported = "y_sd" if known is not None else "maximize"
            raise DataError(f"{unsupported} is not supported with likelihood='probit'; leave it out")
        mean = 0.0
        sd = 1.0
        scaled = signs(targets)
    else:
        scaled, mean, sd = standardised(targets, maximize)
    model = model.with_errors(known).informed(train, scaled)
    data = model.stan_data(
        train,
        scaled,
        train[:0],
        omit_jacobian=omit_jacobian,
        pointwise=pointwise,
        y_sd=None if known is None else _standardised_errors(known, sd),
    )
    return Observed(model, train, data, mean, -sd if maximize else sd)


def _standardised_errors(known: FloatArray, sd: float) -> FloatArray:
    """Return known errors divided by the scale of the targets, limited so that products of their squares are finite."""
    with np.errstate(over="ignore", under="ignore"):
        return np.minimum(known / sd, _LARGEST_ERROR)


def signs(outcomes: FloatArray) -> FloatArray:
    """Return 1 for a success (1 or True) and -1 for a failure (0 or False).

    Raises
    ------
    DataError
        If an outcome is neither 0 nor 1.
    """
    if wrong := sorted(set(outcomes.tolist()) - {0.0, 1.0}):
        raise DataError(f"a binary observation is {wrong[0]}; use True or False, 1 or 0")
    return 2 * outcomes - 1


def check_errors(errors: ArrayLike, n: int) -> FloatArray:
    """Return known standard deviations of errors as (n,) float64; a number is repeated.

    Raises
    ------
    DataError
        For another shape, or values that are negative or not finite.
    """
    try:
        given = np.asarray(errors, dtype=np.float64)
        if given.ndim and given.shape != (n,):
            raise ValueError(f"the shape is {given.shape}")
        values = np.broadcast_to(given, (n,))
    except (TypeError, ValueError) as error:
        raise DataError(f"y_sd is {errors!r:.200}; give a number, or {n} numbers, one for each observation") from error
    if not np.all((values >= 0) & np.isfinite(values)):
        bad = int(np.flatnonzero(~((values >= 0) & np.isfinite(values)))[0])
        raise DataError(f"y_sd[{bad}] is {values[bad]}; give standard deviations that are finite and not negative")
    return np.array(values)


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
        raise DataError(f"y is {y!r:.200}; give numbers") from error
    if isinstance(y, np.ma.MaskedArray):
        values[np.ma.getmaskarray(y)] = np.nan
    if values.ndim != 1 or len(values) != n:
        raise DataError(f"y has shape {values.shape} for {n} configurations; give one number for each")
    if n == 0:
        raise DataError("y is empty; give at least one observation")
    if not np.all(np.isfinite(values)):
        bad = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(f"y[{bad}] is {values[bad]}; drop failed evaluations before fitting")
    return values


def standardised(y: FloatArray, maximize: bool = False) -> tuple[FloatArray, float, float]:
    """Return standardised values, of which smaller ones are better, and the mean and scale of `standardisation`."""
    mean, sd = standardisation(y)
    # This gives the same bits as for the negated values; division by a negative number would turn 0 into -0.
    return (mean - y if maximize else y - mean) / sd, mean, sd


def standardisation(y: FloatArray) -> tuple[float, float]:
    """Return mean and sample standard deviation (n - 1); a single or constant y has scale 1."""
    largest = float(np.max(np.abs(y)))
    if largest == 0:
        return 0.0, 1.0
    # The square of 1e200 is infinite, the square of 1e-200 is 0. Division by a power of two changes no digit.
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1)
    centre = unit * float(np.mean(y / unit))
    scale = min(unit * float(np.std(y / unit, ddof=1)), float(np.finfo(float).max)) if len(y) > 1 else 0.0
    # Rounding gives a constant c a spread of about c times machine epsilon.
    return centre, scale if scale > 4 * np.finfo(float).eps * largest else 1.0
