"""Log density of ``stan/composite_gp.stan`` in NumPy, for many points at once.

Symbols
-------
s : points; N : observations; pairs : N (N + 1) / 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from typing_extensions import override

from slayr_py.inference.sampling.numpy_density import NumpyDensity, Slopes, is_plain
from slayr_py.kernels import Pairs, Plan
from slayr_py.space import FloatArray


class CompositeDensity(NumpyDensity):
    """Log density of the coordinates of the program, and the hyperparameters of resampled points."""

    def __init__(self, data: Mapping[str, Any], shapes: dict[str, tuple[int, ...]]) -> None:
        super().__init__(data, shapes)
        n = len(self._errors)
        rows, columns = self._pairs.rows, self._pairs.columns
        inputs = self._data["X"].reshape(n, -1)
        # The program's order: the strict lower triangle column by column, then the diagonal.
        below = columns * n - columns * (columns + 1) // 2 + rows - columns - 1
        given = self._data["given"].reshape(n * (n + 1) // 2, -1)
        given = given[np.where(rows == columns, n * (n - 1) // 2 + rows, below)]
        self._plan = Plan.from_stan_data(data)
        self._points = Pairs(inputs[rows], inputs[columns], list(np.ascontiguousarray(given.T)))

    @staticmethod
    @override
    def serves(program: str, data: Mapping[str, Any]) -> bool:
        return program == "composite_gp" and is_plain(data)

    @override
    def covariances(self, theta: Mapping[str, FloatArray]) -> tuple[FloatArray, Slopes]:
        variance = np.square(theta["sigma_f"])
        correlation, pullback = self._plan.correlation_pullback(self._points, dict(theta))

        def slopes(by_covariance: FloatArray) -> dict[str, FloatArray]:
            by_correlation = by_covariance * variance
            by_log = {"sigma_f": 2 * np.sum(by_correlation * correlation, axis=1, keepdims=True)}
            for name, by_value in pullback(by_correlation).items():
                by_log[name] = by_value if name == "centre" else by_value * theta[name]
            if "share" in by_log:  # each coordinate moves all shares
                by_log["share"] -= theta["share"] * by_log["share"].sum(axis=1, keepdims=True)
            return by_log

        return variance * correlation, slopes
