r"""Log density of ``stan/hierarchical_gp.stan`` and its gradient in NumPy, for many points at once.

Most pairs of configurations in a conditional space have no real parameter that is active in both. Along a dimension,
the logarithm of the correlation of such a pair is 0 or one of two numbers, which a matrix product adds up for all
pairs. Only pairs in which a real parameter is active twice need elementary functions. For 50 observations of nine
parameters a gradient takes about as long as in the program, and no process has to start for it. The result differs
from the program's by rounding and by a constant.

With C = L L' the covariance of the observations, t = T(y) - mu and v = C^-1 t,

    d log p / d theta = tr(G dC / d theta),   G = (v v' - C^-1) / 2

(Rasmussen & Williams 2006, eq. 5.9).

Symbols
-------
s : points; N : observations; D : dimensions; w : squared ratio of weight to length-scale along a dimension; u : squared
distance over w; h = w u.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from slayr_py.inference.sampling.coordinate_priors import Hyper
from slayr_py.inference.sampling.numpy_density import BLOCK, NumpyDensity, is_plain
from slayr_py.inference.warp import log_slope, slopes_by_log_warp, warped
from slayr_py.kernels import BASES, matern_with_slope
from slayr_py.space import FloatArray


class _Real(NamedTuple):
    """Pairs in which a real dimension is active twice with different values."""

    dimension: int

    pairs: NDArray[np.intp]
    """Their positions (k,)."""

    angles: FloatArray
    """Their differences in value times pi, (k,)."""


class _Correlations(NamedTuple):
    """Logarithms of the correlations of all pairs (s, pairs), and their derivatives by h in the groups of pairs."""

    log_k: FloatArray

    once: FloatArray
    """Active in one of two, (s, D)."""

    different: FloatArray
    """Different levels, (s, D)."""

    real: list[FloatArray]
    """Pairs of each `_Real`, (s, k)."""


class HierarchicalDensity(NumpyDensity):
    """Log density of the coordinates of the program with its gradient, and the hyperparameters of draws."""

    def __init__(self, data: Mapping[str, Any], shapes: dict[str, tuple[int, ...]]) -> None:
        super().__init__(data, shapes)
        self._squared_exponential = int(data["base"]) == BASES["se"]
        n = len(self._errors)
        inputs = self._data["X"].reshape(n, -1)
        active = self._data["active"].reshape(n, -1) > 0
        difference = inputs[self._pairs.rows] - inputs[self._pairs.columns]
        both = active[self._pairs.rows] & active[self._pairs.columns] & (difference != 0)
        self._levels = self._data["levels"]
        self._lineage = self._data["lineage"].reshape(len(self._levels), -1)
        self._once = (active[self._pairs.rows] != active[self._pairs.columns]).T.astype(np.float64)
        self._different = (both & (self._levels > 0)).T.astype(np.float64)
        self._real: list[_Real] = []
        for d in np.flatnonzero(self._levels == 0):
            pairs = np.flatnonzero(both[:, d])
            if len(pairs):
                self._real.append(_Real(int(d), pairs, np.pi * difference[pairs, d]))

    @staticmethod
    @override
    def serves(program: str, data: Mapping[str, Any]) -> bool:
        if program != "hierarchical_gp" or not is_plain(data):
            return False
        return not data["add"] and int(data["base"]) != BASES["rq"]

    @override
    def __call__(self, points: FloatArray) -> FloatArray:
        return self._evaluate(points, gradient=False)[0]

    def with_gradient(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log densities (s,) and gradients (s, P); minus infinity and zeros where they are undefined."""
        return self._evaluate(points, gradient=True)

    def _evaluate(self, points: FloatArray, gradient: bool) -> tuple[FloatArray, FloatArray]:
        density = np.empty(len(points))
        slopes = np.zeros(points.shape)
        size = max(1, BLOCK // len(self._pairs.rows))
        for i in range(0, len(points), size):
            block = slice(i, i + size)
            with np.errstate(all="ignore"):  # hyperparameters far outside have a density of 0
                hyper = self._priors(points[block])
                likelihood, by_theta = self._log_likelihood(hyper, gradient)
            density[block] = hyper.log_prior + likelihood
            if gradient:
                slopes[block] = hyper.gradient + by_theta
        undefined = ~np.isfinite(density) | ~np.isfinite(slopes).all(axis=1)
        density[undefined] = -np.inf
        slopes[undefined] = 0.0
        return density, slopes

    def _log_likelihood(self, hyper: Hyper, gradient: bool) -> tuple[FloatArray, FloatArray]:
        """Return log N(T(y) | mu, K + S) + sum log T'(y), (s,), and its derivatives by the coordinates (s, P)."""
        theta = hyper.theta
        s = len(theta["mu"])
        n = len(self._errors)
        y = np.broadcast_to(self._data["y"], (s, n))
        targets = (warped(y, theta["warp"], self._pivot) if "warp" in theta else y) - theta["mu"]
        weights = np.square(np.exp(np.log(theta["gamma"]) @ self._lineage.T) / theta["lengthscale"])
        parts = self._correlations(weights, theta["rho"])
        variance = np.square(theta["sigma_f"])
        noise = np.square(theta["sigma_n"]) + self._errors
        k = variance * np.exp(parts.log_k)
        packed = k.copy()
        packed[:, self._pairs.diagonal] += noise
        total, solved = self._pairs.log_normal(packed, targets, gradient)
        if "warp" in theta:
            total += log_slope(y, theta["warp"], self._pivot).sum(axis=1)
        if not gradient:
            return total, np.empty(0)

        # G of the module's docstring: its diagonal, and twice its entries below it; ``packed`` has the inverses
        by_k = solved[:, self._pairs.rows] * solved[:, self._pairs.columns] - packed
        by_k[:, self._pairs.diagonal] *= 0.5
        trace = by_k[:, self._pairs.diagonal].sum(axis=1, keepdims=True)
        by_k *= k
        by_w, by_rho = self._by_kernel(by_k, parts, weights, theta["rho"])
        by_log = {
            "mu": solved.sum(axis=1, keepdims=True),
            "sigma_f": 2 * by_k.sum(axis=1, keepdims=True),
            "sigma_n": 2 * np.square(theta["sigma_n"]) * trace,
            "gamma": 2 * by_w @ self._lineage,
            "rho": by_rho * theta["rho"],
            "lengthscale": -2 * by_w,
        }
        if "warp" in theta:
            by_target, by_slope = slopes_by_log_warp(y, theta["warp"], self._pivot)
            by_log["warp"] = np.sum(by_slope - solved * by_target, axis=1, keepdims=True)
        return total, np.concatenate([by_log[name] * hyper.slopes[name] for name in theta], axis=1)

    def _correlations(self, weights: FloatArray, rho: FloatArray) -> _Correlations:
        once, by_once = self._log_base(weights)
        different, by_different = self._log_base(weights * self._jump(rho)[0])
        log_k = once @ self._once
        log_k += different @ self._different
        slopes = []
        for d, pairs, angles in self._real:
            h = weights[:, d, None] * (2 - 2 * np.cos(rho[:, d, None] * angles))
            value, slope = self._log_base(h)
            log_k[:, pairs] += value
            slopes.append(slope)
        return _Correlations(log_k, by_once, by_different, slopes)

    def _by_kernel(
        self, by_log_k: FloatArray, parts: _Correlations, weights: FloatArray, rho: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives by log w and by rho, (s, D), from those by the log correlations (s, pairs)."""
        jump, by_jump = self._jump(rho)
        once = (by_log_k @ self._once.T) * parts.once
        different = (by_log_k @ self._different.T) * parts.different
        by_w = once + different * jump
        by_rho = different * by_jump
        for (d, pairs, angles), slope in zip(self._real, parts.real, strict=True):
            by_h = by_log_k[:, pairs] * slope
            turned = rho[:, d, None] * angles
            by_w[:, d] += np.einsum("sk,sk->s", by_h, 2 - 2 * np.cos(turned))
            by_rho[:, d] += np.einsum("sk,sk->s", by_h, 2 * angles * np.sin(turned))
        return by_w * weights, by_rho * weights

    def _jump(self, rho: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return u of different levels and its derivative by rho; see ``stan/functions/hierarchical.stan``."""
        others = np.maximum(self._levels - 1, 0.0)
        spread = 1 + others * np.square(1 - rho)
        u = 2 * np.square(rho) / spread
        return u, 4 * rho / spread + u * 2 * others * (1 - rho) / spread

    def _log_base(self, h: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the logarithm of the base kernel and its derivative by h."""
        if self._squared_exponential:
            return -0.5 * h, np.full(h.shape, -0.5)
        factor = 2 * self._order + 1
        value, slope = matern_with_slope(np.sqrt(factor * h), self._order)
        return np.log(value), factor * slope / value
