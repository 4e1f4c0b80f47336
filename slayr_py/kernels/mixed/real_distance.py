"""The scaled distance of the real inputs.

Symbols: s draws, D_c real dimensions.
"""

from __future__ import annotations

import numpy as np

from slayr_py.kernels.base_kernels import differences, squared_differences
from slayr_py.kernels.hyperparameters import Hyperparameter
from slayr_py.kernels.priors import LogNormal
from slayr_py.space import Encoded, FloatArray, Layout


def real_lengthscale(encoder: Layout, prior: LogNormal) -> Hyperparameter:
    """Return the length-scales of the real dimensions as a hyperparameter."""
    return Hyperparameter("lengthscale", prior, encoder.real_names, "real")


def squared_distance(a: Encoded, b: Encoded, lengthscale: FloatArray) -> FloatArray:
    """Return r^2 of the real inputs, (s, n_a, n_b); length-scales (s, D_c)."""
    squares = squared_differences(a.real, b.real)
    distances = (1 / np.square(lengthscale)) @ squares.reshape(len(squares), len(a) * len(b))
    return np.asarray(distances).reshape(len(lengthscale), len(a), len(b))


def squared_distance_gradient(a: Encoded, b: Encoded, lengthscale: FloatArray) -> FloatArray:
    """Return the derivatives of r^2 by the real inputs of ``a``, (s, n_a, n_b, D_c)."""
    weights = 2 / np.square(lengthscale)
    return np.swapaxes(differences(a.real, b.real) * weights[:, None, :, None], 2, 3)
