"""Responses of a graph's frequencies to a distance, with their derivatives.

Twins of ``graph_correlation`` in ``stan/functions/frequency_modulated.stan``, for many draws at once.

Symbols
-------
s : draws; z : beta lambda, which broadcasts against m; m : 1 + alpha t, (s, ...); W : vertex weights of one
eigenvalue.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from typing_extensions import override

from slayr_py.space import FloatArray


class Response(ABC):
    """Terms W f(z, m) of the covariance on a graph, written to arrays that are used again for every eigenvalue."""

    @abstractmethod
    def term(self, weights: FloatArray, z: FloatArray, m: FloatArray, out: FloatArray) -> FloatArray:
        """Return W f."""

    @abstractmethod
    def slopes(
        self, weights: FloatArray, z: FloatArray, m: FloatArray, out: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives of W f by z and by m, which may be one array."""

    def by_orders(
        self, by_term: FloatArray, weights: FloatArray, z: FloatArray, m: FloatArray
    ) -> dict[str, FloatArray]:
        """Return the derivatives of a sum over pairs by the logarithms of the orders' weights, from those by W f."""
        return {}


class Inverse(Response):
    """f = 1 / (m + z)."""

    @override
    def term(self, weights: FloatArray, z: FloatArray, m: FloatArray, out: FloatArray) -> FloatArray:
        return np.divide(weights, np.add(m, z, out=out), out=out)

    @override
    def slopes(
        self, weights: FloatArray, z: FloatArray, m: FloatArray, out: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        np.square(np.add(m, z, out=out), out=out)
        np.divide(-weights, out, out=out)
        return out, out


class Exponential(Response):
    """f = exp(-m z)."""

    @override
    def term(self, weights: FloatArray, z: FloatArray, m: FloatArray, out: FloatArray) -> FloatArray:
        np.exp(np.multiply(m, -z, out=out), out=out)
        return np.multiply(weights, out, out=out)

    @override
    def slopes(
        self, weights: FloatArray, z: FloatArray, m: FloatArray, out: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        term = self.term(weights, z, m, out)
        by_damping = -m * term
        return by_damping, np.multiply(term, -z, out=out)


class Powers(Response):
    """f = sum_n weights_n u^n, u = 1 / (m + z), with the weights (s, N) of the orders n = 1..N."""

    def __init__(self, orders: FloatArray) -> None:
        self._orders = orders.T

    def _weights(self, m: FloatArray) -> FloatArray:
        """Return the weights (N, s, ...) that broadcast against m."""
        return self._orders.reshape(*self._orders.shape, *[1] * (m.ndim - 1))

    @override
    def term(self, weights: FloatArray, z: FloatArray, m: FloatArray, out: FloatArray) -> FloatArray:
        u = 1 / (m + z)
        out[:] = 0.0
        for order in self._weights(m)[::-1]:
            out += order
            out *= u
        return np.multiply(weights, out, out=out)

    @override
    def slopes(
        self, weights: FloatArray, z: FloatArray, m: FloatArray, out: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        u = 1 / (m + z)
        orders = self._weights(m)
        out[:] = 0.0
        for n in range(len(orders), 0, -1):
            out += n * orders[n - 1]
            out *= u
        out *= -weights * u
        return out, out

    @override
    def by_orders(
        self, by_term: FloatArray, weights: FloatArray, z: FloatArray, m: FloatArray
    ) -> dict[str, FloatArray]:
        u = 1 / (m + z)
        terms = np.broadcast_to(by_term * weights, u.shape)
        by_log = []
        for order in self._orders:
            terms = terms * u
            by_log.append(order * terms.sum(axis=1))
        return {"weights": np.stack(by_log, axis=1)}
