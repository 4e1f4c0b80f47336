"""Matérn kernel of half-integer order with one length-scale per column: the NumPy twin of ``stan/matern_gp.stan``."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from slayr_py.errors import DataError
from slayr_py.kernels.base import Kernel
from slayr_py.kernels.base_kernels import (
    DEFAULT_ORDER,
    checked_order,
    differences,
    matern_correlation,
    matern_with_slope,
    squared_differences,
)
from slayr_py.kernels.contracts import LENGTHSCALE, MATERN_ORDER, Contract, Entry, Parameter, StanValue, column_inputs
from slayr_py.kernels.expressions.composite import Composable
from slayr_py.kernels.expressions.language import Leaf, Node
from slayr_py.kernels.hyperparameters import Draws, Hyperparameter
from slayr_py.kernels.priors import lengthscale_prior
from slayr_py.space import Encoded, FloatArray, Layout

MATERN_GP = Contract(
    "matern_gp",
    (MATERN_ORDER, Entry("additive", (), "1 adds a kernel of each column alone; 0 if `D` is 0", "int", default=0)),
    (
        LENGTHSCALE,
        Parameter("main_variance", ("additive",), "variance of the functions of one column, relative to that of all"),
        Parameter("main_ratio", ("additive",), "ratio of their length-scales to `lengthscale`"),
    ),
)


class Matern(Composable):
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
    contract: ClassVar[Contract] = MATERN_GP

    def __init__(self, p: int = DEFAULT_ORDER) -> None:
        self.p = checked_order(p)
        self.description = f"Matérn kernel (p = {self.p})"

    @override
    def options(self) -> dict[str, Any]:
        return {"p": self.p}

    @property
    def leaf(self) -> Leaf:
        """The kernel as a leaf of an expression; ``DataError`` if p > 2."""
        if self.p > 2:
            raise DataError(f"a Matérn kernel with p = {self.p} cannot be part of a sum or product; use p = 0, 1 or 2")
        return Leaf(f"MAT{2 * self.p + 1}2")

    @override
    def as_node(self) -> tuple[Node, dict[str, Kernel]]:
        return self.leaf, {}

    @override
    def hyperparameters(self, encoder: Layout) -> tuple[Hyperparameter, ...]:
        columns = encoder.column_names
        # The dimension is not called "column", since figures of ArviZ 1 use that name.
        return (Hyperparameter("lengthscale", lengthscale_prior(len(columns)), columns, "encoded_column"),)

    @override
    def stan_data(self, train: Encoded, new: Encoded) -> dict[str, StanValue]:
        return column_inputs(train, new) | {"p": self.p}

    @override
    def cross(self, a: Encoded, b: Encoded, draws: Draws) -> FloatArray:
        k = matern_correlation(self._distance(a, b, draws["lengthscale"]), self.p)
        k *= np.square(draws["sigma_f"])[:, None, None]
        return k

    @override
    def cross_gradient(self, a: Encoded, b: Encoded, draws: Draws) -> tuple[FloatArray, FloatArray]:
        d = self._distance(a, b, draws["lengthscale"])
        variance = np.square(draws["sigma_f"])[:, None, None]
        correlation, by_square = matern_with_slope(d, self.p)
        real = list(a.encoder.column_of.values())
        weight = 2 * (2 * self.p + 1) / np.square(draws["lengthscale"][:, real])
        gradient = (variance * by_square)[:, :, None] * differences(a.columns[:, real], b.columns[:, real])
        gradient *= weight[:, None, :, None]
        return variance * correlation, np.swapaxes(gradient, 2, 3)

    def _distance(self, a: Encoded, b: Encoded, lengthscale: FloatArray) -> FloatArray:
        """Return sqrt(2 nu) ||(x - x') / lengthscale|| for every draw, (s, n_a, n_b)."""
        weights = (2 * self.p + 1) / np.square(lengthscale)
        squares = squared_differences(a.columns, b.columns)
        d = weights @ squares.reshape(len(squares), -1)
        return np.sqrt(d, out=d).reshape(len(lengthscale), len(a), len(b))
