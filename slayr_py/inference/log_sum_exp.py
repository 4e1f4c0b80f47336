"""Logarithms of sums, for loops in which a call of SciPy's function would take a noticeable part of the time."""

from __future__ import annotations

import numpy as np

from slayr_py.space import FloatArray


def log_sum_exp(terms: FloatArray) -> FloatArray:
    """Return the logarithms of sums over the first axis, (m,), from logarithms (s, m) below infinity."""
    largest = terms.max(axis=0)
    shift = np.where(largest > -np.inf, largest, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(shift + np.log(np.exp(terms - shift).sum(axis=0)))
