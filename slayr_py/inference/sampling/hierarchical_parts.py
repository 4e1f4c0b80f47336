"""Correlations under the hierarchical kernel, for pairs of observations, with derivatives by the hyperparameters.

Most pairs of configurations in a conditional space have no real parameter that is active in both. Along a dimension,
the base kernel of such a pair is 1 or one of two numbers, which a matrix product adds up for all pairs: the logarithms
for a product over dimensions, the differences from 1 for a sum. Only pairs in which a real parameter is active twice
need elementary functions.

Symbols
-------
s : points; pairs : N (N + 1) / 2; D : dimensions; w : squared ratio of weight to length-scale along a dimension; u :
squared distance over w; h = w u; g : logarithm of the base kernel, or the base kernel minus 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from slayr_py.inference.sampling.numpy_density import Slopes
from slayr_py.inference.sampling.packed import PackedPairs
from slayr_py.kernels import (
    BASES,
    SMALLEST_FACTOR,
    Base,
    by_rq_alpha,
    correlation,
    matern_with_slope,
    sine_products,
    slope,
)
from slayr_py.space import FloatArray


class _Real(NamedTuple):
    """Pairs in which a real dimension is active twice with different values."""

    dimension: int

    pairs: NDArray[np.intp]
    """Their positions (k,)."""

    half_angles: FloatArray
    """Their differences in value times pi / 2, (k,)."""


class _Base(NamedTuple):
    """g at squared distances, its derivatives by h (one number if equal) and by the logarithm of "rq"'s exponent."""

    value: FloatArray
    by_h: FloatArray
    by_exponent: FloatArray | None


class HierarchicalPairs:
    """Correlations of pairs of observations.

    Parameters
    ----------
    data : mapping of str to ndarray of float64
        Data of ``hierarchical_gp`` or ``fm_gp``.
    pairs : PackedPairs
    levels : (D,) float64
        Number of levels of each dimension, 0 for a real one.

    Attributes
    ----------
    add : bool
        Whether the base kernels of the dimensions are added instead of multiplied.
    bound : float
        Correlation of equal configurations.
    """

    def __init__(self, data: Mapping[str, Any], pairs: PackedPairs, levels: FloatArray) -> None:
        d = len(levels)
        inputs = data["X"].reshape(-1, d)
        active = data["active"].reshape(-1, d) > 0
        difference = inputs[pairs.rows] - inputs[pairs.columns]
        both = active[pairs.rows] & active[pairs.columns] & (difference != 0)
        self.add = bool(data["add"])
        self.bound = float(d) if self.add else 1.0
        self._base: Base = next(base for base in get_args(Base) if BASES[base] == data["base"])
        self._order = int(data["p"])
        self._levels = levels
        self._lineage = data["lineage"].reshape(d, -1)
        # Parameters of one branch are active together, so that few sets of pairs differ.
        once = active[pairs.rows] != active[pairs.columns]
        which, sets_of = np.unique(np.hstack([once, both & (levels > 0)]), axis=1, return_inverse=True)
        used = np.flatnonzero(which.any(axis=0))
        self._sets = which[:, used].T.astype(np.float64)
        self._in_set = (sets_of.ravel()[:, None] == used).astype(np.float64)
        self._real: list[_Real] = []
        for i in np.flatnonzero(levels == 0):
            real = np.flatnonzero(both[:, i])
            if len(real):
                self._real.append(_Real(int(i), real, 0.5 * np.pi * difference[real, i]))

    def __call__(self, theta: Mapping[str, FloatArray]) -> tuple[FloatArray, Slopes]:
        """Return the correlations (s, pairs) and their `Slopes`."""
        rho = theta["rho"]
        weights = np.square(np.exp(np.log(theta["gamma"]) @ self._lineage.T) / theta["lengthscale"])
        jump, by_jump = self._jump(rho)
        once = self._at(weights, theta)
        different = self._at(weights * jump, theta)
        total = np.hstack([once.value, different.value]) @ self._in_set @ self._sets
        real = []
        for i, pairs, half_angles in self._real:
            square, product = sine_products(rho[:, i, None] * half_angles)
            base = self._at(4 * weights[:, i, None] * square, theta)
            total[:, pairs] += base.value
            real.append((base, square, product))
        k = self.bound + total if self.add else np.exp(total)

        def slopes(by_k: FloatArray) -> dict[str, FloatArray]:
            by_total = by_k if self.add else by_k * k
            by_once, by_different = np.hsplit(by_total @ self._sets.T @ self._in_set.T, 2)
            by_w = by_once * once.by_h + by_different * different.by_h * jump
            by_rho = by_different * different.by_h * by_jump
            by_exponent = np.zeros((len(weights), 1))
            for values, base in ((by_once, once), (by_different, different)):
                if base.by_exponent is not None:
                    by_exponent += np.sum(values * base.by_exponent, axis=1, keepdims=True)
            for (i, pairs, half_angles), (base, square, product) in zip(self._real, real, strict=True):
                by_h = by_total[:, pairs] * base.by_h
                by_w[:, i] += 4 * np.einsum("sk,sk->s", by_h, square)
                by_rho[:, i] += 8 * np.einsum("sk,sk->s", by_h, product * half_angles)
                if base.by_exponent is not None:
                    by_exponent += np.sum(by_total[:, pairs] * base.by_exponent, axis=1, keepdims=True)
            by_log = {
                "gamma": 2 * (by_w * weights) @ self._lineage,
                "rho": by_rho * weights * rho,
                "lengthscale": -2 * by_w * weights,
            }
            return by_log | ({"rq_alpha": by_exponent} if "rq_alpha" in theta else {})

        return k, slopes

    def _jump(self, rho: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return u of different levels and its derivative by rho; see ``stan/functions/hierarchical.stan``."""
        others = np.maximum(self._levels - 1, 0.0)
        spread = 1 + others * np.square(1 - rho)
        u = 2 * np.square(rho) / spread
        return u, 4 * rho / spread + u * 2 * others * (1 - rho) / spread

    def _at(self, h: FloatArray, theta: Mapping[str, FloatArray]) -> _Base:
        exponent = theta.get("rq_alpha")
        if self._base == "se" and not self.add:
            return _Base(-0.5 * h, np.array(-0.5), None)
        if self._base == "matern":
            factor = 2 * self._order + 1
            value, by_h = matern_with_slope(np.sqrt(factor * h), self._order)
            by_h = factor * by_h
        else:
            value, by_h = (of(h, self._base, self._order, exponent) for of in (correlation, slope))
        by_exponent = None if exponent is None else exponent * by_rq_alpha(h, exponent)
        if not self.add:
            value = np.maximum(value, SMALLEST_FACTOR)
            return _Base(np.log(value), by_h / value, by_exponent)
        return _Base(value - 1, by_h, None if by_exponent is None else value * by_exponent)
