"""Search for the configuration with the smallest prediction of a machine."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from ConfigSpace import Configuration

from slayr_py.errors import SpaceError
from slayr_py.space import Encoded, Encoder, Fixed, FloatArray

_POINTS = 2048  # random configurations; chosen by hand
_PERTURBED = 256  # configurations around the best one, for each scale; chosen by hand
_SCALES = (0.3, 0.1, 0.03, 0.01, 0.003)  # of unit values


def least(
    encoder: Encoder,
    function: Callable[[Encoded], FloatArray],
    rng: np.random.Generator,
    fixed: Fixed | None = None,
) -> Configuration:
    """Return the configuration with the smallest value of a function, approximately.

    The best of random configurations is perturbed in about half of its parameters at a time, in smaller and smaller
    steps. Levels of categories are drawn at random.

    Raises
    ------
    SpaceError
        If all random configurations are forbidden or violate the constraints on inputs.
    """

    def best_of(genotypes: FloatArray) -> tuple[FloatArray | None, float]:
        encoded, allowed = encoder.resolve(genotypes, fixed)
        rows = np.flatnonzero(allowed)
        if not len(rows):
            return None, np.inf
        values = function(encoded[rows])
        return genotypes[rows[np.argmin(values)]], float(values.min())

    best, value = best_of(encoder.uniform(_POINTS, rng, fixed))
    if best is None:
        raise SpaceError(
            f"the forbidden clauses and the constraints exclude all of {_POINTS} random configurations; loosen one of "
            "them"
        )
    real = np.array([dimension.is_real for dimension in encoder.dimensions])
    for scale in _SCALES:
        drawn = encoder.uniform(_PERTURBED, rng, fixed)
        moved = np.clip(best + scale * rng.standard_normal(drawn.shape), 0.0, 1.0)
        moved = np.where(real, moved, drawn)
        candidate, there = best_of(np.where(rng.random(drawn.shape) < 0.5, moved, best))
        if candidate is not None and there < value:
            best, value = candidate, there
    encoded, _ = encoder.resolve(best[None], fixed)
    return encoder.decode(encoded)[0]
