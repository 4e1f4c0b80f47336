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

from slayr_py.inference.sampling.numpy_density import CovarianceDensity, is_plain
from slayr_py.kernels import matern_correlation
from slayr_py.space import FloatArray


class MaternDensity(CovarianceDensity):
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
    def covariances(self, theta: Mapping[str, FloatArray]) -> FloatArray:
        distances = ((2 * self._order + 1) / np.square(theta["lengthscale"])) @ self._squares
        correlation = matern_correlation(np.sqrt(distances, out=distances), self._order)
        if "main_variance" in theta:
            self._add_main(correlation, theta)
        correlation *= np.square(theta["sigma_f"])
        return correlation

    def _add_main(self, correlation: FloatArray, theta: Mapping[str, FloatArray]) -> None:
        """Add the kernels of single columns to the correlation (s, pairs) of all, see ``matern_sum_cov``."""
        scale = np.sqrt(2 * self._order + 1) / (theta["main_ratio"] * theta["lengthscale"])
        total = np.zeros(correlation.shape)
        for column, squares in enumerate(self._squares):
            total += matern_correlation(scale[:, column, None] * np.sqrt(squares), self._order)
        total *= theta["main_variance"] / len(self._squares)
        correlation += total
        correlation /= 1 + theta["main_variance"]
