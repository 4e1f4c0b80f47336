"""The standard normal density."""

from __future__ import annotations

import numpy as np

from slayr_py.space import FloatArray


def log_phi(z: FloatArray) -> FloatArray:
    """Return the logarithm of the standard normal density."""
    return np.asarray(-0.5 * np.square(z) - 0.5 * np.log(2 * np.pi))
