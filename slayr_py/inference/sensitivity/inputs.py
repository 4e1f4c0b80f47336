"""Independent inputs of a function on a search space: uniform samples and quadrature.

Real parameters are uniform on the scale of the model (logarithmic or linear), and all levels are equally likely. The
parameters are independent and also vary while their conditions fail. A function does not depend on an
inactive parameter, so indices are defined on conditional spaces too. Forbidden combinations are included, since a model
predicts there as well.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import qmc

from slayr_py.space import Dimension, Encoded, Encoder, FloatArray

_MOST_LEVELS = 256  # an integer with more values is treated as continuous


class Rule(NamedTuple):
    """Nodes (g,) and weights (g,) of a quadrature over one parameter; the weights have the sum 1."""

    nodes: FloatArray
    weights: FloatArray


def quadrature(dimension: Dimension, n: int = 64) -> Rule:
    """Return the quadrature of a parameter: all levels or integers, else n Gauss-Legendre nodes."""
    numbers = np.arange(dimension.lower, dimension.upper + 1)
    if dimension.levels or (dimension.kind == "integer" and len(numbers) <= _MOST_LEVELS):
        weights = np.full(len(numbers), 1 / len(numbers))
        if not dimension.levels and not dimension.is_linear:  # a uniform variate is rounded to the nearest integer
            weights = np.diff(np.clip(dimension.unit_values(np.append(numbers, numbers[-1] + 1) - 0.5), 0, 1))
        return Rule(dimension.unit_values(numbers), weights)
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return Rule((nodes + 1) / 2, weights / 2)


def uniform(encoder: Encoder, n: int, rng: np.random.Generator) -> Encoded:
    """Return n points of a scrambled Sobol sequence."""
    return resolve(encoder, sobol_points(len(encoder.dimensions), n, rng))


def resolve(encoder: Encoder, u: FloatArray) -> Encoded:
    """Return the inputs of uniform variates (n, D), also outside of constraints on inputs."""
    return encoder.unconstrained.resolve(encoder.from_uniform(u))[0]


def sobol_points(dimension: int, n: int, rng: np.random.Generator) -> FloatArray:
    """Return the first n of a scrambled Sobol sequence in [0, 1), (n, D)."""
    engine = qmc.Sobol(dimension, scramble=True, rng=rng)
    return np.asarray(engine.random_base2(max(int(np.ceil(np.log2(max(n, 1)))), 0))[:n])
