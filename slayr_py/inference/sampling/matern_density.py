"""Log density of ``stan/matern_gp.stan`` in NumPy, for many points at once.

Symbols
-------
s : points; N : observations; D : columns; pairs : N (N + 1) / 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from typing_extensions import override

from slayr_py.inference.sampling.numpy_density import NumpyDensity, Slopes, is_plain
from slayr_py.kernels import matern_correlation, matern_with_slope
from slayr_py.space import FloatArray


class MaternDensity(NumpyDensity):
    """Log density of the coordinates of the program, and the hyperparameters of resampled points."""

    def __init__(self, data: Mapping[str, Any], shapes: dict[str, tuple[int, ...]]) -> None:
        super().__init__(data, shapes)
        inputs = self._data["X"].reshape(len(self._errors), int(data["D"]))
        self._squares = np.square(inputs[self._pairs.rows] - inputs[self._pairs.columns]).T

    @staticmethod
    @override
    def serves(program: str, data: Mapping[str, Any]) -> bool:
        return program == "matern_gp" and is_plain(data)

    @override
    def covariances(self, theta: Mapping[str, FloatArray]) -> tuple[FloatArray, Slopes]:
        factors = (2 * self._order + 1) / np.square(theta["lengthscale"])
        distances = factors @ self._squares
        correlation = matern_correlation(np.sqrt(distances, out=distances), self._order)
        if "main_variance" in theta:
            self._add_main(correlation, theta)
        variance = np.square(theta["sigma_f"])
        correlation *= variance

        def slopes(by_covariance: FloatArray) -> dict[str, FloatArray]:
            by_log = {"sigma_f": 2 * np.sum(by_covariance * correlation, axis=1, keepdims=True)}
            by_correlation = by_covariance * variance
            by_main = {}
            if "main_variance" in theta:
                by_correlation /= 1 + theta["main_variance"]
                by_main = self._main_slopes(by_correlation, correlation / variance, theta)
            by_square = by_correlation * matern_with_slope(distances, self._order)[1]
            by_log["lengthscale"] = -2 * factors * (by_square @ self._squares.T) + by_main.pop("lengthscale", 0.0)
            return by_log | by_main

        return correlation, slopes

    def _add_main(self, correlation: FloatArray, theta: Mapping[str, FloatArray]) -> None:
        """Add the kernels of single columns to the correlation (s, pairs) of all, see ``matern_sum_cov``."""
        scale = np.sqrt(2 * self._order + 1) / (theta["main_ratio"] * theta["lengthscale"])
        total = np.zeros(correlation.shape)
        for column, squares in enumerate(self._squares):
            total += matern_correlation(scale[:, column, None] * np.sqrt(squares), self._order)
        total *= theta["main_variance"] / len(self._squares)
        correlation += total
        correlation /= 1 + theta["main_variance"]

    def _main_slopes(
        self, by_sum: FloatArray, correlation: FloatArray, theta: Mapping[str, FloatArray]
    ) -> dict[str, FloatArray]:
        """Return the derivatives by what the kernels of single columns depend on, from those by the sum (s, pairs)."""
        scale = np.sqrt(2 * self._order + 1) / (theta["main_ratio"] * theta["lengthscale"])
        share = theta["main_variance"] / len(self._squares)
        by_variance = -theta["main_variance"] * np.sum(by_sum * correlation, axis=1, keepdims=True)
        by_scale = np.empty(scale.shape)
        for column, squares in enumerate(self._squares):
            value, slope = matern_with_slope(scale[:, column, None] * np.sqrt(squares), self._order)
            by_variance += share * np.einsum("sk,sk->s", by_sum, value)[:, None]
            by_scale[:, column] = np.einsum("sk,sk,k->s", by_sum, slope, squares)
        by_scale *= 2 * share * np.square(scale)
        return {
            "main_variance": by_variance,
            "main_ratio": -by_scale.sum(axis=1, keepdims=True),
            "lengthscale": -by_scale,
        }
