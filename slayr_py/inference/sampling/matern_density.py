"""Log density of ``stan/matern_gp.stan`` in NumPy, for many points at once and few observations.

A carried posterior evaluates the density at a thousand points. For up to `LARGEST` observations this takes less time
here than the start of a process and the text of its input and output. The result differs from the program's by rounding
and by a constant.

Symbols
-------
s : points; N : observations; D : columns; z : coordinates of ``stan/functions/coordinates.stan``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from slayr_py.inference.sampling.numpy_density import NumpyDensity, is_plain
from slayr_py.inference.warp import log_slope, warped
from slayr_py.kernels import matern_correlation
from slayr_py.space import FloatArray

LARGEST = 80
"""Most observations. Processor time of 1,000 densities on one core, six columns: 1, 4, 19 and 93 ms in NumPy for 10,
25, 50 and 100 observations, and 26, 29, 44 and 94 ms in a process."""

_BLOCK = 2**16  # doubles in the covariances of a block of points


class MaternDensity(NumpyDensity):
    """Log density of the coordinates of the program, and the hyperparameters of resampled points.

    Parameters
    ----------
    data : mapping
        Data of the program.
    shapes : dict
        Shapes of the coordinates by name.
    """

    def __init__(self, data: Mapping[str, Any], shapes: dict[str, tuple[int, ...]]) -> None:
        super().__init__(data, shapes)
        inputs = self._data["X"].reshape(len(self._errors), int(data["D"]))
        self._squares = np.square(inputs[self._rows] - inputs[self._columns]).T

    @staticmethod
    def serves(program: str, data: Mapping[str, Any]) -> bool:
        """Return whether the density of a program with these data is computed here."""
        return program == "matern_gp" and is_plain(data, LARGEST)

    def __call__(self, points: FloatArray) -> FloatArray:
        """Return log densities (s,) at points (s, P), up to a constant; minus infinity where undefined."""
        hyper = self._priors(points)
        density = hyper.log_prior
        n = len(self._errors)
        block = max(1, _BLOCK // (n + 1) ** 2)
        for i in range(0, len(points), block):
            rows = slice(i, i + block)
            density[rows] += self._log_likelihood({name: values[rows] for name, values in hyper.theta.items()})
        return np.where(np.isnan(density), -np.inf, density)

    def _log_likelihood(self, theta: Mapping[str, FloatArray]) -> FloatArray:
        r"""Return log N(T(y) | mu, K + S) + sum log T'(y), (s,), without its constant.

        The last row of the Cholesky factor of [[C, r], [r', c]] is (L \ r)' for every large c.
        """
        n = len(self._errors)
        s = len(theta["mu"])
        y = np.broadcast_to(self._data["y"], (s, n))
        by_slope = np.zeros(s)
        if "warp" in theta:
            by_slope = log_slope(y, theta["warp"], self._pivot).sum(axis=1)
            y = warped(y, theta["warp"], self._pivot)
        distances = ((2 * self._order + 1) / np.square(theta["lengthscale"])) @ self._squares
        correlation = matern_correlation(np.sqrt(distances, out=distances), self._order)
        if "main_variance" in theta:
            self._add_main(correlation, theta)
        variance = np.square(theta["sigma_f"])
        matrix = np.zeros((s, n + 1, n + 1))
        matrix[:, self._rows, self._columns] = variance * correlation
        diagonal = np.arange(n)
        matrix[:, diagonal, diagonal] = variance + np.square(theta["sigma_n"]) + self._errors
        matrix[:, n, :n] = y - theta["mu"]
        matrix[:, n, n] = 1e300
        factor = _factors(matrix)
        log_determinant = 2 * np.log(factor[:, diagonal, diagonal]).sum(axis=1)
        with np.errstate(over="ignore"):  # hyperparameters far outside have a density of 0
            squares = np.square(factor[:, n, :n]).sum(axis=1)
        return np.asarray(by_slope - 0.5 * (squares + log_determinant))

    def _add_main(self, correlation: FloatArray, theta: Mapping[str, FloatArray]) -> None:
        """Add the kernels of single columns to the correlation (s, pairs) of all, see ``matern_sum_cov``."""
        scale = np.sqrt(2 * self._order + 1) / (theta["main_ratio"] * theta["lengthscale"])
        total = np.zeros(correlation.shape)
        for column, squares in enumerate(self._squares):
            total += matern_correlation(scale[:, column, None] * np.sqrt(squares), self._order)
        total *= theta["main_variance"] / len(self._squares)
        correlation += total
        correlation /= 1 + theta["main_variance"]


def _factors(matrices: FloatArray) -> FloatArray:
    """Return lower Cholesky factors (s, n, n) from lower triangles; NaN where a matrix is not positive definite."""
    try:
        return np.asarray(np.linalg.cholesky(matrices), dtype=np.float64)
    except np.linalg.LinAlgError:
        factors = np.full(matrices.shape, np.nan)
        for i, matrix in enumerate(matrices):
            try:
                factors[i] = np.linalg.cholesky(matrix)
            except np.linalg.LinAlgError:
                continue
        return factors
