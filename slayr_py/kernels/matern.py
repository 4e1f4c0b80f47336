"""Matérn kernel of half-integer order, the NumPy twin of ``stan/functions/matern.stan``.

With nu = p + 1/2 and d = sqrt(2 nu) ||(x - x') / lengthscale|| the covariance is sigma_f^2 M_p(d),

    M_p(d) = exp(-d) p!/(2p)! sum_{k=0..p} (p + k)! / (k! (p - k)!) (2d)^(p - k)

(Rasmussen & Williams 2006, eq. 4.16), for instance exp(-d), (1 + d) exp(-d), (1 + d + d^2/3) exp(-d).
Its derivative is M_p'(d) = -d M_{p-1}(d) / (2p - 1) for p >= 1, so that in terms of the squared distance

    dM_p / d(d^2) = -M_{p-1}(d) / (2 (2p - 1)),

which is finite at coinciding points.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from slayr_py.arguments import check_integer
from slayr_py.kernels.base import Kernel
from slayr_py.kernels.contracts import MATERN_GP, Contract, StanValue
from slayr_py.kernels.hyperparameters import Draws, Hyperparameter
from slayr_py.kernels.priors import lengthscale_prior
from slayr_py.space import Encoded, Layout
from slayr_py.space.dimension import FloatArray

_LARGEST_ORDER = 1000


class Matern(Kernel):
    """Matérn kernel with one length-scale per encoded column.

    Parameters
    ----------
    p : int
        Order from 0 to 1000, nu = p + 1/2. 0 gives the exponential kernel; large p approaches the squared exponential.
        At 1000 the two agree to three digits, and the recursion does not underflow early.

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

    def __init__(self, p: int = 2) -> None:
        self.p = checked_order(p)

    @property
    @override
    def contract(self) -> Contract:
        return MATERN_GP

    @override
    def options(self) -> dict[str, Any]:
        return {"p": self.p}

    @property
    @override
    def description(self) -> str:
        return f"Matérn kernel (p = {self.p})"

    @override
    def hyperparameters(self, encoder: Layout) -> tuple[Hyperparameter, ...]:
        columns = encoder.column_names
        # The dimension is not called "column", a name that the figures of ArviZ 1 use themselves.
        return (Hyperparameter("lengthscale", lengthscale_prior(len(columns)), columns, "encoded_column"),)

    @override
    def stan_data(self, train: Encoded, new: Encoded) -> dict[str, StanValue]:
        return {
            "N": len(train),
            "D": train.columns.shape[1],
            "X": train.columns,
            "M": len(new),
            "X_new": new.columns,
            "p": self.p,
        }

    @override
    def cross(self, a: Encoded, b: Encoded, draws: Draws) -> FloatArray:
        difference = a.columns[:, None, :] - b.columns[None, :, :]
        k = matern(self._distance(difference, draws["lengthscale"]), self.p)
        k *= np.square(draws["sigma_f"])[:, None, None]
        return k

    @override
    def cross_gradient(self, a: Encoded, b: Encoded, draws: Draws) -> tuple[FloatArray, FloatArray]:
        difference = a.columns[:, None, :] - b.columns[None, :, :]
        d = self._distance(difference, draws["lengthscale"])
        variance = np.square(draws["sigma_f"])[:, None, None]
        by_square = matern_slope(d, self.p)
        real = list(a.encoder.column_of.values())
        weight = 2 * (2 * self.p + 1) / np.square(draws["lengthscale"][:, real])
        gradient = (variance * by_square)[..., None] * difference[None, :, :, real] * weight[:, None, None, :]
        return variance * matern(d, self.p), gradient

    def _distance(self, difference: FloatArray, lengthscale: FloatArray) -> FloatArray:
        """Return sqrt(2 nu) ||(x - x') / lengthscale|| for every draw from (n_a, n_b, C) and (s, C)."""
        n_a, n_b, n_columns = difference.shape
        weights = (2 * self.p + 1) / np.square(lengthscale)
        squares = weights @ np.square(difference).reshape(-1, n_columns).T
        return np.sqrt(squares, out=squares).reshape(-1, n_a, n_b)


def matern(d: FloatArray, p: int) -> FloatArray:
    """Return M_p(d) element by element, by the nested sum of the Stan function; d = sqrt(2 nu) r >= 0."""
    e = np.negative(d)
    np.exp(e, out=e)
    k = e
    for j in range(p - 1, -1, -1):
        step = (2.0 * (p - j) / ((2 * p - j) * (j + 1))) * d
        step *= k
        step += e
        k = step
    return k


def matern_slope(d: FloatArray, p: int) -> FloatArray:
    """Return the derivative of M_p by d^2; 0 at the kink of the exponential kernel, between its two slopes."""
    if p:
        return -matern(d, p - 1) / (2 * (2 * p - 1))
    return np.where(d > 0, -np.exp(-d) / (2 * np.where(d > 0, d, 1.0)), 0.0)


def checked_order(p: int) -> int:
    """Return the order of a Matérn kernel; ``DataError`` unless it is an integer from 0 to 1000."""
    return check_integer("the Matérn order p", p, 0, _LARGEST_ORDER)
