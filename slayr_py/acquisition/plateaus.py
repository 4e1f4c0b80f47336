"""Plateaus: regions in which an objective has exactly the same value.

Tables that return the value of the nearest row, rounding and thresholds inside an objective make it constant in
regions. The model is smooth: it expects an improvement between two points with the best value, and just beyond them,
and every evaluation there returns the same value again. Once the last values tell that this happens, a neighbourhood of
each point is left out, as wide as the distance to the nearest point with the same value. With every further value that
repeats another, all of them grow by this width, as long as a part of the space remains.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slayr_py.acquisition.identity import Taken, branches
from slayr_py.space import Encoded, FloatArray

REPEATED = 2
"""Number of the last values that must repeat earlier ones before plateaus are avoided."""

_LEFT = 0.02  # smallest share of the candidates that must remain


def repetitions(y: FloatArray) -> int:
    """Return how many of the last values (n,), in the order of their evaluation, repeat earlier ones in a row."""
    new = np.flatnonzero(~np.tril(y[:, None] == y[None, :], -1).any(axis=1))
    return len(y) - 1 - int(new[-1])


def neighbourhoods(train: Encoded, y: FloatArray) -> Taken | None:
    """Return the observed points with the same value as another one, and the distances to the nearest of them.

    Distances are those of the real parameters, in unit values and the maximum norm, between points with equal levels
    and active parameters. The result is None if there are no such points.
    """
    branch = branches(train)
    equal = (y[:, None] == y[None, :]) & (branch[:, None] == branch[None, :])
    np.fill_diagonal(equal, False)
    real = np.flatnonzero([d.is_real for d in train.encoder.dimensions])
    values = np.where(train.active, train.unit_values, 0.0)[:, real]
    distances = np.max(np.abs(values[:, None] - values[None, :]), axis=2, initial=0.0)
    nearest = np.where(equal, distances, np.inf).min(axis=1)
    rows = np.flatnonzero(np.isfinite(nearest))
    return Taken(train[rows], nearest[rows]) if len(rows) else None


def plateaus(train: Encoded, y: FloatArray, candidates: Encoded) -> tuple[Taken, NDArray[np.bool_]] | None:
    """Return the neighbourhoods to avoid, and which of m candidates are not in them, (m,).

    The result is None unless each of the last two values repeats an earlier one, and some of the candidates remain.

    Parameters
    ----------
    train : Encoded
        n configurations in the order of their evaluation.
    y : (n,) float64
        Their values.
    candidates : Encoded
        Candidates of the search.
    """
    width = float(repetitions(y) - REPEATED + 1)
    found = neighbourhoods(train, y) if width > 0 else None
    while found is not None and width >= 1:
        wide = Taken(found.encoded, width * found.radius)
        beyond = ~wide.contains(candidates)
        if np.mean(beyond) >= _LEFT:
            return wide, beyond
        width /= 2
    return None
