r"""Gauss quadrature of functions of a truncated normal variable, tabulated by its mean.

Symbols
-------
v : normal with mean z and standard deviation 1.
h(z) = E[v^+], and w = h(z) / Phi(z) = E[v | v > 0].

The rule has n nodes g_i and weights omega_i that sum to 1:

    integral of f(v) v phi(v - z) over v > 0  =  h(z) sum_i omega_i f(g_i),

exactly if f is a polynomial of degree 2 n - 1 in sqrt(v). Functions such as log(1 + b v) / v, with a singularity at
v = -1 / b, are nearer to polynomials in sqrt(v) than in v.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from scipy.interpolate import CubicSpline

from slayr_py.inference import HalfLine, log_h_over_phi, log_mills
from slayr_py.space import FloatArray
from slayr_py.threads import one_thread

_KNOTS = 385  # means at which the rule is computed
_ROWS = 6145  # means in the table, between which it is linear
_SCALE = 3.0  # knots and rows are evenly spaced in atan(z / _SCALE): half of them have |z| < 3
_FARTHEST = 3e3  # a larger |z| has the nodes of this one, relative to w
_TOGETHER = 2**13  # doubles in an array of all nodes


class TruncatedRule:
    """The Gauss rule with n nodes for all means.

    Parameters
    ----------
    nodes : int
    """

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        angle = np.linspace(-1.0, 1.0, _KNOTS)
        z = np.clip(_SCALE * np.tan(0.5 * np.pi * angle), -_FARTHEST, _FARTHEST)
        places, weights = _gauss(z, nodes)
        w = np.exp(log_h_over_phi(z) - log_mills(z))
        knots = np.concatenate([(places - w[:, None]) / _spread(w)[:, None], weights], axis=1)
        rows = CubicSpline(angle, knots)(np.linspace(-1.0, 1.0, _ROWS))
        self._table = np.concatenate([rows[:-1], np.diff(rows, axis=0)], axis=1)

    def points(self, z: FloatArray, w: FloatArray) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
        """Yield nodes and weights, each (k, n), for some of the means z (m,) at a time, with their w (m,)."""
        n = self._nodes
        position = (np.arctan(z / _SCALE) / np.pi + 0.5) * (_ROWS - 1)
        row = np.minimum(position.astype(np.intp), _ROWS - 2)
        beyond = position - row
        spread = _spread(w)
        size = max(1, _TOGETHER // n)
        for i in range(0, len(z), size):
            part = slice(i, i + size)
            found = self._table.take(row[part], axis=0)
            here = found[:, : 2 * n] + beyond[part, None] * found[:, 2 * n :]
            yield part, w[part, None] + spread[part, None] * here[:, :n], here[:, n:]


@cache
def truncated_rule(nodes: int) -> TruncatedRule:
    """Return the rule with a number of nodes; it is computed once."""
    with one_thread():  # the eigenvalues of 400 nodes take 20 ms, with two threads on busy processors up to two seconds
        return TruncatedRule(nodes)


def _spread(w: FloatArray) -> FloatArray:
    """Return a scale of v - w: w for a steep tail, 1 for a normal variable far from the threshold."""
    return np.asarray(w / np.sqrt(1 + np.square(w)))


def _gauss(z: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights (m, n) by Lanczos' method on a fine rule (Golub & Welsch 1969)."""
    fine = HalfLine(nodes=400, power=3.0, drop=25.0)
    pieces = list(fine.points(z))
    v = np.concatenate([points for points, _ in pieces]).T
    measure = v * np.concatenate([weights for _, weights in pieces]).T
    root = np.sqrt(v)
    basis = [np.sqrt(measure / measure.sum(axis=1, keepdims=True))]
    matrix = np.zeros((len(z), n, n))
    for k in range(n):
        image = root * basis[-1]
        matrix[:, k, k] = (image * basis[-1]).sum(axis=1)
        for _ in range(2):  # once more, against rounding errors
            for vector in basis:
                image = image - (vector * image).sum(axis=1, keepdims=True) * vector
        length = np.sqrt(np.square(image).sum(axis=1))
        if k + 1 < n:
            matrix[:, k, k + 1] = length
            matrix[:, k + 1, k] = length
        basis.append(image / np.where(length > 0, length, 1.0)[:, None])
    values, vectors = np.linalg.eigh(matrix)
    return np.square(values), np.square(vectors[:, 0])
