"""Matérn kernel of half-integer order, the NumPy twin of ``stan/functions/matern.stan``.

With nu = p + 1/2 and d = sqrt(2 nu) ||(x - x') / lengthscale|| the covariance is sigma_f^2 M_p(d),

    M_p(d) = exp(-d) p!/(2p)! sum_{k=0..p} (p + k)! / (k! (p - k)!) (2d)^(p - k)

(Rasmussen & Williams 2006, eq. 4.16), for instance exp(-d), (1 + d) exp(-d), (1 + d + d^2/3) exp(-d).
Its derivative is M_p'(d) = -d M_{p-1}(d) / (2p - 1) for p >= 1, so that in terms of the squared distance

    dM_p / d(d^2) = -M_{p-1}(d) / (2 (2p - 1)),

which is finite at coinciding points.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from slayr_py.errors import DataError
from slayr_py.kernels.base import Kernel
from slayr_py.kernels.priors import Prior, lengthscale_prior
from slayr_py.space import Encoded, Layout
from slayr_py.space.dimension import FloatArray

_LARGEST_ORDER = 1000


class Matern(Kernel):
    """Matérn kernel with one length-scale for each encoded column.

    Parameters
    ----------
    p : int
        Order, nu = p + 1/2; 0 gives the exponential kernel, large p approaches the squared exponential. At most
        1000, where the two agree to three digits and the recursion still cannot underflow too early.

    Raises
    ------
    DataError
        If p is not an integer in 0..1000.

    Examples
    --------
    >>> from ConfigSpace import ConfigurationSpace
    >>> from slayr_py.space import Encoder
    >>> encoder = Encoder(ConfigurationSpace({"x": (0.0, 1.0)}))
    >>> points = encoder.encode([{"x": 0.0}, {"x": 0.5}])
    >>> Matern(p=0).gram(points, points, {"lengthscale": [0.5]}).round(6).tolist()
    [[1.0, 0.367879], [0.367879, 1.0]]
    """

    name: ClassVar[str] = "matern"
    program: ClassVar[str] = "matern_gp"
    # Not "column", which is the name of one of its own dimensions in the figures of ArviZ 1.
    dims: ClassVar[Mapping[str, str]] = {"lengthscale": "encoded_column"}

    def __init__(self, p: int = 2) -> None:
        self.p = checked_order(p)

    @override
    def options(self) -> dict[str, Any]:
        return {"p": self.p}

    @property
    @override
    def description(self) -> str:
        return f"Matérn kernel (p = {self.p})"

    @override
    def labels(self, encoder: Layout) -> dict[str, tuple[str, ...] | None]:
        return {"lengthscale": encoder.column_names}

    @override
    def kernel_priors(self, encoder: Layout) -> dict[str, Prior]:
        return {"lengthscale": lengthscale_prior(len(encoder.column_names))}

    @override
    def stan_data(self, train: Encoded, new: Encoded) -> dict[str, Any]:
        return {
            "N": len(train),
            "D": train.columns.shape[1],
            "X": train.columns,
            "M": len(new),
            "X_new": new.columns,
            "p": self.p,
        }

    @override
    def cross(self, a: Encoded, b: Encoded, draws: Mapping[str, FloatArray]) -> FloatArray:
        difference = a.columns[:, None, :] - b.columns[None, :, :]
        k = matern(np.sqrt(self._squared_distance(difference, draws["lengthscale"])), self.p)
        return np.square(draws["sigma_f"])[:, None, None] * k

    @override
    def cross_gradient(self, a: Encoded, b: Encoded, draws: Mapping[str, FloatArray]) -> tuple[FloatArray, FloatArray]:
        difference = a.columns[:, None, :] - b.columns[None, :, :]
        d = np.sqrt(self._squared_distance(difference, draws["lengthscale"]))
        variance = np.square(draws["sigma_f"])[:, None, None]
        by_square = matern_slope(d, self.p)
        real = list(a.encoder.column_of.values())
        weight = 2 * (2 * self.p + 1) / np.square(draws["lengthscale"][:, real])
        gradient = (variance * by_square)[..., None] * difference[None, :, :, real] * weight[:, None, None, :]
        return variance * matern(d, self.p), gradient

    def _squared_distance(self, difference: FloatArray, lengthscale: FloatArray) -> FloatArray:
        """2 nu ||(x - x') / lengthscale||^2 for every draw; differences (n_a, n_b, C), length-scales (s, C)."""
        n_a, n_b, n_columns = difference.shape
        weights = (2 * self.p + 1) / np.square(lengthscale)
        return (weights @ np.square(difference).reshape(-1, n_columns).T).reshape(-1, n_a, n_b)


def matern(d: FloatArray, p: int) -> FloatArray:
    """M_p(d) by the nested sum of the Stan function, element by element; d = sqrt(2 nu) r >= 0."""
    e = np.exp(-d)
    k = e
    for j in range(p - 1, -1, -1):
        k = e + (2.0 * (p - j) / ((2 * p - j) * (j + 1))) * d * k
    return k


def matern_slope(d: FloatArray, p: int) -> FloatArray:
    """Derivative of M_p by d^2; the exponential kernel's kink at 0 counts as 0, which lies between its two slopes."""
    if p:
        return -matern(d, p - 1) / (2 * (2 * p - 1))
    return np.where(d > 0, -np.exp(-d) / (2 * np.where(d > 0, d, 1.0)), 0.0)


def checked_order(p: int) -> int:
    """Order of a Matérn kernel; ``DataError`` unless an integer in 0..1000."""
    try:
        order = operator.index(p)
    except TypeError:
        raise DataError(f"the Matérn order p must be an integer >= 0 (nu = p + 1/2), got {p!r}") from None
    if isinstance(p, bool) or not 0 <= order <= _LARGEST_ORDER:
        raise DataError(f"the Matérn order p must be an integer from 0 to {_LARGEST_ORDER}, got {p!r}")
    return order
