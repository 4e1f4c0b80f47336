r"""Matérn kernel of all columns plus one of each: the twin of ``matern_sum_cov`` in ``stan/functions/matern.stan``.

With M_p the Matérn correlation, D columns and h_d = (x_d - x'_d) / lengthscale_d,

    k = sigma_f^2 (M_p(c ||h||) + v / D sum_d M_p(c |h_d| / r)) / (1 + v),   c = sqrt(2 p + 1).

The function is the sum of a function of all columns and of its main effects, functions of one column each; sigma_f is
the standard deviation of the sum. v = ``main_variance`` is the variance of the main effects relative to the function of
all columns, and r = ``main_ratio`` is how much longer their length-scales are. Averaging over the posterior of v
averages over structures, from a product over columns to a sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from slayr_py.kernels.base import Kernel
from slayr_py.kernels.base_kernels import DEFAULT_ORDER, differences, matern_correlation, matern_with_slope
from slayr_py.kernels.contracts import Contract, StanValue
from slayr_py.kernels.hyperparameters import Draws, Hyperparameter
from slayr_py.kernels.matern import MATERN_GP, Matern
from slayr_py.kernels.priors import LogNormal
from slayr_py.space import Encoded, FloatArray, Layout

ALL_COLUMNS = "all columns"
"""Name of the summand of all columns."""


class Additive(Kernel):
    """Matérn kernel of all encoded columns plus a Matérn kernel of each column alone.

    Its hyperparameters are those of :class:`Matern`; ``main_variance``, the variance of the functions of one column
    together, relative to the variance of the function of all; and ``main_ratio``, the ratio of their length-scales to
    ``lengthscale``. The posterior averages over structures, from sums over columns to functions of all columns
    together. `Posterior.components` shows the summands.

    Parameters
    ----------
    p : int
        Order from 0 to 1000, nu = p + 1/2.

    Raises
    ------
    DataError
        If p is not an integer in 0..1000.

    Examples
    --------
    >>> from ConfigSpace import ConfigurationSpace
    >>> from slayr_py.space import Encoder
    >>> encoder = Encoder(ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)}))
    >>> points = encoder.encode([{"x": 0.0, "y": 0.0}, {"x": 0.0, "y": 1.0}])
    >>> theta = {"lengthscale": [1.0, 1.0], "main_variance": 1.0, "main_ratio": 1.0}

    The correlation of all columns is exp(-1) = 0.368, and the mean of those of x and y is (1 + 0.368) / 2 = 0.684.

    >>> Additive(p=0).gram(points, points, theta).round(3).tolist()
    [[1.0, 0.526], [0.526, 1.0]]
    """

    name: ClassVar[str] = "additive"
    contract: ClassVar[Contract] = MATERN_GP

    def __init__(self, p: int = DEFAULT_ORDER) -> None:
        self._joint = Matern(p)
        self.p = self._joint.p
        self.description = f"Matérn kernel (p = {self.p}) of all columns, plus one of each"

    @override
    def options(self) -> dict[str, Any]:
        return {"p": self.p}

    @override
    def hyperparameters(self, encoder: Layout) -> tuple[Hyperparameter, ...]:
        return (
            *self._joint.hyperparameters(encoder),
            Hyperparameter("main_variance", LogNormal(float(np.log(0.3)), 2.0), may_vanish=True),
            Hyperparameter("main_ratio", LogNormal(0.0, 1.0)),
        )

    @override
    def stan_data(self, train: Encoded, new: Encoded) -> dict[str, StanValue]:
        return self._joint.stan_data(train, new) | {"additive": 1}

    @override
    def cross(self, a: Encoded, b: Encoded, draws: Draws) -> FloatArray:
        joint, main = self._variances(draws)
        k = self._joint.cross(a, b, {**draws, "sigma_f": np.sqrt(joint)})
        for _, distance in self._main_distances(a, b, draws):
            part = matern_correlation(distance, self.p)
            part *= main[:, None, None]
            k += part
        return k

    @override
    def cross_gradient(self, a: Encoded, b: Encoded, draws: Draws) -> tuple[FloatArray, FloatArray]:
        joint, main = self._variances(draws)
        k, gradient = self._joint.cross_gradient(a, b, {**draws, "sigma_f": np.sqrt(joint)})
        difference = differences(a.columns, b.columns)
        position = {column: i for i, column in enumerate(a.encoder.column_of.values())}
        for column, distance in self._main_distances(a, b, draws):
            correlation, by_square = matern_with_slope(distance, self.p)
            k += main[:, None, None] * correlation
            if column in position:
                weight = 2 * main * np.square(self._main_scale(draws, column))
                gradient[..., position[column]] += weight[:, None, None] * by_square * difference[:, column]
        return k, gradient

    @override
    def component_names(self, encoder: Layout) -> tuple[str, ...]:
        return (ALL_COLUMNS, *encoder.column_names)

    @override
    def component_cross(self, a: Encoded, b: Encoded, draws: Draws) -> FloatArray:
        joint, main = self._variances(draws)
        parts = [self._joint.cross(a, b, {**draws, "sigma_f": np.sqrt(joint)})]
        for _, distance in self._main_distances(a, b, draws):
            parts.append(main[:, None, None] * matern_correlation(distance, self.p))
        return np.stack(parts)

    @override
    def component_diagonal(self, a: Encoded, draws: Draws) -> FloatArray:
        joint, main = self._variances(draws)
        variances = np.stack([joint, *[main] * a.columns.shape[1]])
        return np.repeat(variances[..., None], len(a), axis=2)

    def _main_distances(self, a: Encoded, b: Encoded, draws: Draws) -> Iterator[tuple[int, FloatArray]]:
        """Yield the position of each column, and its distances c |h_d| / r, (s, n_a, n_b)."""
        for column in range(a.columns.shape[1]):
            apart = np.abs(a.columns[:, None, column] - b.columns[None, :, column])
            yield column, self._main_scale(draws, column)[:, None, None] * apart

    def _main_scale(self, draws: Draws, column: int) -> FloatArray:
        scale: FloatArray = np.sqrt(2 * self.p + 1) / (draws["main_ratio"] * draws["lengthscale"][:, column])
        return scale

    @staticmethod
    def _variances(draws: Draws) -> tuple[FloatArray, FloatArray]:
        """Return the variances (s,) of the function of all columns and of each function of one column."""
        joint = np.square(draws["sigma_f"]) / (1 + draws["main_variance"])
        return joint, joint * draws["main_variance"] / draws["lengthscale"].shape[1]
