"""Distances that modulate the frequencies of graphs, and combinations with kernels on graphs, with their derivatives.

Twins of ``modulating_distance`` in ``stan/functions/frequency_modulated.stan``, for many points at once.

Symbols
-------
s : points; pairs : N (N + 1) / 2; D : real dimensions; w : lengthscale^-2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar

import numpy as np
from typing_extensions import override

from slayr_py.inference.sampling.hierarchical_parts import HierarchicalPairs
from slayr_py.inference.sampling.numpy_density import Slopes
from slayr_py.kernels import Base, correlation, slope
from slayr_py.space import FloatArray

Split = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
"""From the derivatives by the covariances, and those by their logarithms, to those by the logarithm of the kernels on
graphs, and by the distances where they do not modulate; all (s, pairs)."""


class Distance(ABC):
    """A distance between the real inputs of pairs."""

    @abstractmethod
    def __call__(self, theta: Mapping[str, FloatArray]) -> tuple[FloatArray, Slopes]:
        """Return the distances (s, pairs) and their `Slopes`."""


class Squared(Distance):
    """The squared distance r^2 = sum_d w_d (c_d - c'_d)^2; 0 without real parameters.

    Parameters
    ----------
    left, right : (pairs, D) float64
        Inputs of the two observations of each pair.
    """

    def __init__(self, left: FloatArray, right: FloatArray) -> None:
        self._squares = np.square(left - right).T

    @override
    def __call__(self, theta: Mapping[str, FloatArray]) -> tuple[FloatArray, Slopes]:
        if "lengthscale" not in theta:
            return np.zeros((len(theta["mu"]), self._squares.shape[1])), lambda by_distance: {}
        weights = 1 / np.square(theta["lengthscale"])
        return weights @ self._squares, lambda by_distance: {
            "lengthscale": -2 * (by_distance @ self._squares.T) * weights
        }


class PowerOfDistance(Squared):
    """The power r^tau of the distance, tau in (0, 2]."""

    def __init__(self, left: FloatArray, right: FloatArray, tau: float) -> None:
        super().__init__(left, right)
        self._half = 0.5 * tau

    @override
    def __call__(self, theta: Mapping[str, FloatArray]) -> tuple[FloatArray, Slopes]:
        squared, pullback = super().__call__(theta)
        if self._half == 1:
            return squared, pullback
        powers = np.power(squared, self._half)

        def through(by_distance: FloatArray) -> dict[str, FloatArray]:
            # The derivative by log(lengthscale) has the factor r^tau and is 0 where r is.
            slope = np.divide(self._half * powers, squared, out=np.zeros_like(powers), where=squared > 0)
            return pullback(by_distance * slope)

        return powers, through


class NeuralDistance(Distance):
    """One minus the arc-sine kernel, see ``neural_distance``.

    With h = 2 c'S c~, A = 1 + 2 c'S c and B = 1 + 2 c~'S c~ of inputs augmented by 1, S = diag(bias^2, w), the angle
    has the tangent h / root, root^2 = AB - h^2, so that d angle = (dh - h/2 (dA / A + dB / B)) / root.
    """

    def __init__(self, left: FloatArray, right: FloatArray) -> None:
        self._squares = np.square(left - right).T
        self._left = np.square(left).T
        self._right = np.square(right).T

    @override
    def __call__(self, theta: Mapping[str, FloatArray]) -> tuple[FloatArray, Slopes]:
        bias = np.square(theta["bias"])
        weights = 1 / np.square(theta["lengthscale"]) if "lengthscale" in theta else np.zeros((len(bias), 0))
        left = bias + weights @ self._left
        right = bias + weights @ self._right
        half = 0.5 * (left + right - weights @ self._squares)
        root = np.sqrt(np.maximum(1 + 2 * (left + right) + 4 * (left * right - np.square(half)), 1.0))

        def pullback(by_distance: FloatArray) -> dict[str, FloatArray]:
            by_h = -2 / np.pi * by_distance / root
            by_a = -by_h * half / (1 + 2 * left)
            by_b = -by_h * half / (1 + 2 * right)
            # By the weight of a dimension: dh = c^2 + c~^2 - (c - c~)^2, dA = 2 c^2, dB = 2 c~^2.
            of_left = by_h + 2 * by_a
            of_right = by_h + 2 * by_b
            by_weights = of_left @ self._left.T + of_right @ self._right.T - by_h @ self._squares.T
            by_bias = 2 * (by_h + by_a + by_b).sum(axis=1, keepdims=True)
            by_log = {"bias": 2 * bias * by_bias}
            return by_log | ({"lengthscale": -2 * weights * by_weights} if "lengthscale" in theta else {})

        return 1 - 2 / np.pi * np.arctan2(2 * half, root), pullback


class HierarchicalDistance(Distance):
    """The difference u - k_H of a hierarchical kernel from its value between equal inputs."""

    def __init__(self, correlations: HierarchicalPairs) -> None:
        self._correlations = correlations

    @override
    def __call__(self, theta: Mapping[str, FloatArray]) -> tuple[FloatArray, Slopes]:
        k, slopes = self._correlations(theta)
        return self._correlations.bound - k, lambda by_distance: slopes(-by_distance)


class Combination(ABC):
    """How the distances of the real parameters and the kernel on graphs make the covariance."""

    modulates: ClassVar[bool] = False
    """Whether the distances modulate the frequencies: the response of a graph is that to 1 + alpha t instead of 1."""

    added: ClassVar[float] = 0.0
    """What the real parameters add to the mean of k(x, x) / sigma_f^2 over the vertices."""

    @abstractmethod
    def __call__(self, on_graphs: FloatArray, distances: FloatArray, variance: FloatArray) -> tuple[FloatArray, Split]:
        """Return the covariances (s, pairs) and their `Split`.

        ``on_graphs`` (s, pairs) is the product of the variance ``sigma_f^2`` (s, 1) and the kernels on graphs.
        """


class Modulation(Combination):
    """The kernels on graphs alone, whose frequencies the distances modulate."""

    modulates = True

    @override
    def __call__(self, on_graphs: FloatArray, distances: FloatArray, variance: FloatArray) -> tuple[FloatArray, Split]:
        return on_graphs, lambda by_covariance, by_log_k: (by_log_k, np.zeros_like(distances))


class ProductCombination(Combination):
    """The product with a kernel of the distances."""

    def __init__(self, base: Base, order: int) -> None:
        self._base = base
        self._order = order

    @override
    def __call__(self, on_graphs: FloatArray, distances: FloatArray, variance: FloatArray) -> tuple[FloatArray, Split]:
        def split(by_covariance: FloatArray, by_log_k: FloatArray) -> tuple[FloatArray, FloatArray]:
            return by_log_k, by_covariance * on_graphs * self._slope(distances)

        return on_graphs * self._correlation(distances), split

    def _correlation(self, distances: FloatArray) -> FloatArray:
        return correlation(distances, self._base, self._order, None)

    def _slope(self, distances: FloatArray) -> FloatArray:
        return slope(distances, self._base, self._order, None)


class SumCombination(ProductCombination):
    """The sum with a kernel of the distances of the same variance."""

    added = 1.0

    @override
    def __call__(self, on_graphs: FloatArray, distances: FloatArray, variance: FloatArray) -> tuple[FloatArray, Split]:
        def split(by_covariance: FloatArray, by_log_k: FloatArray) -> tuple[FloatArray, FloatArray]:
            return by_covariance * on_graphs, by_covariance * variance * self._slope(distances)

        return on_graphs + variance * self._correlation(distances), split
