"""The scaled distance of the real inputs.

Symbols: s draws, D_c real dimensions.
"""

from __future__ import annotations

import numpy as np

from slayr_py.kernels.hyperparameters import Hyperparameter
from slayr_py.kernels.priors import LogNormal
from slayr_py.space import Encoded, FloatArray, Layout


def real_lengthscale(encoder: Layout, prior: LogNormal) -> Hyperparameter:
    """Return the length-scales of the real dimensions as a hyperparameter."""
    return Hyperparameter("lengthscale", prior, encoder.real_names, "real")


def squared_distance(a: Encoded, b: Encoded, lengthscale: FloatArray) -> FloatArray:
    """Return r^2 of the real inputs, (s, n_a, n_b); length-scales (s, D_c)."""
    squares = np.square(a.real[:, None, :] - b.real[None, :, :])
    shape = (len(lengthscale), len(a), len(b))
    return ((1 / np.square(lengthscale)) @ squares.reshape(len(a) * len(b), squares.shape[2]).T).reshape(shape)


def squared_distance_gradient(a: Encoded, b: Encoded, lengthscale: FloatArray) -> FloatArray:
    """Return the derivatives of r^2 by the real inputs of ``a``, (s, n_a, n_b, D_c)."""
    difference = a.real[:, None, :] - b.real[None, :, :]
    return 2 * difference[None] / np.square(lengthscale)[:, None, None, :]
