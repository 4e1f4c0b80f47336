r"""Matérn kernel of all parameters plus one of each parameter: a twin of ``stan/functions/matern.stan``.

With M_p the Matérn correlation and x_t the columns of parameter t,

    k = sigma_f^2 (M_p(||(x - x') / lengthscale||) + sum_t v_t M_p(||x_t - x_t'|| / m_t)) / (1 + sum_t v_t).

The function is a sum of one function of all parameters and a function of each parameter, its main effects; sigma_f is
the standard deviation of the sum. The posterior of v = ``main_variance`` weighs the structures: a product, sums, and
everything between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from slayr_py.kernels.base import Kernel
from slayr_py.kernels.base_kernels import matern_correlation, matern_with_slope
from slayr_py.kernels.contracts import Contract, StanValue
from slayr_py.kernels.hyperparameters import Draws, Hyperparameter
from slayr_py.kernels.matern import MATERN_GP, Matern
from slayr_py.kernels.priors import LogNormal
from slayr_py.space import Encoded, FloatArray, Layout

ALL_PARAMETERS = "all parameters"
"""Name of the summand of all parameters."""


class Additive(Kernel):
    """Matérn kernel of all parameters plus a Matérn kernel of each parameter alone.

    Its hyperparameters are those of :class:`Matern`, ``main_variance``, the variance of the function of each parameter
    relative to the variance of the function of all, and ``main_lengthscale``. Their posterior averages over structures,
    from functions that are sums over parameters to functions of all parameters together.
    `Posterior.components` shows the summands.

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
    >>> theta = {"lengthscale": [1.0, 1.0], "main_variance": [3.0, 1.0], "main_lengthscale": [1.0, 1.0]}
    >>> Additive(p=0).gram(points, points, theta).round(6).tolist()
    [[1.0, 0.747152], [0.747152, 1.0]]
    """

    name: ClassVar[str] = "additive"
    contract: ClassVar[Contract] = MATERN_GP

    def __init__(self, p: int = 2) -> None:
        self._joint = Matern(p)
        self.p = self._joint.p
        self.description = f"Matérn kernel (p = {self.p}) of all parameters, plus one of each"

    @override
    def options(self) -> dict[str, Any]:
        return {"p": self.p}

    @override
    def hyperparameters(self, encoder: Layout) -> tuple[Hyperparameter, ...]:
        names = encoder.names
        few = LogNormal(float(np.log(0.25 / len(names))), 2.0)
        return (
            *self._joint.hyperparameters(encoder),
            Hyperparameter("main_variance", few, names, "parameter", may_vanish=True),
            Hyperparameter("main_lengthscale", LogNormal(float(np.log(0.3)), 1.0), names, "parameter"),
        )

    @override
    def stan_data(self, train: Encoded, new: Encoded) -> dict[str, StanValue]:
        groups = _columns_of(train.encoder)
        main_of = np.repeat(np.arange(1, len(groups) + 1), [len(columns) for columns in groups])
        return self._joint.stan_data(train, new) | {"n_main": len(groups), "main_of": main_of}

    @override
    def cross(self, a: Encoded, b: Encoded, draws: Draws) -> FloatArray:
        k = self._joint.cross(a, b, draws)
        for t, scaled in self._main_distances(a, b, draws):
            main = matern_correlation(scaled, self.p)
            main *= self._main_variance(draws, t)
            k += main
        k *= self._share(draws)
        return k

    @override
    def cross_gradient(self, a: Encoded, b: Encoded, draws: Draws) -> tuple[FloatArray, FloatArray]:
        k, gradient = self._joint.cross_gradient(a, b, draws)
        difference = a.columns[:, None, :] - b.columns[None, :, :]
        reals = list(a.encoder.real_names)
        for t, scaled in self._main_distances(a, b, draws):
            correlation, by_square = matern_with_slope(scaled, self.p)
            variance = self._main_variance(draws, t)
            k += variance * correlation
            if (name := a.encoder.names[t]) in reals:
                weight = 2 * np.square(self._main_scale(draws, t)) * variance
                gradient[..., reals.index(name)] += weight * by_square * difference[..., a.encoder.column_of[name]]
        share = self._share(draws)
        k *= share
        gradient *= share[..., None]
        return k, gradient

    @override
    def component_names(self, encoder: Layout) -> tuple[str, ...]:
        return (ALL_PARAMETERS, *encoder.names)

    @override
    def component_cross(self, a: Encoded, b: Encoded, draws: Draws) -> FloatArray:
        parts = [self._joint.cross(a, b, draws)]
        for t, scaled in self._main_distances(a, b, draws):
            parts.append(self._main_variance(draws, t) * matern_correlation(scaled, self.p))
        return np.stack(parts) * self._share(draws)

    @override
    def component_diagonal(self, a: Encoded, draws: Draws) -> FloatArray:
        relative = np.column_stack([np.ones(len(draws["sigma_f"])), draws["main_variance"]])
        shares = relative / relative.sum(axis=1, keepdims=True)
        return shares.T[:, :, None] * self.diagonal(a, draws)

    def _main_distances(self, a: Encoded, b: Encoded, draws: Draws) -> Iterator[tuple[int, FloatArray]]:
        """Yield the position of each parameter, and its distances sqrt(2 nu) ||x_t - x_t'|| / m_t, (s, n_a, n_b)."""
        for t, columns in enumerate(_columns_of(a.encoder)):
            difference = a.columns[:, None, columns] - b.columns[None, :, columns]
            apart = np.sqrt(np.square(difference).sum(axis=-1))
            yield t, self._main_scale(draws, t) * apart

    def _main_scale(self, draws: Draws, t: int) -> FloatArray:
        scale: FloatArray = np.sqrt(2 * self.p + 1) / draws["main_lengthscale"][:, t, None, None]
        return scale

    @staticmethod
    def _main_variance(draws: Draws, t: int) -> FloatArray:
        """Return the variance of the function of a parameter, not yet divided by the sum, (s, 1, 1)."""
        variance = np.square(draws["sigma_f"]) * draws["main_variance"][:, t]
        return variance[:, None, None]

    @staticmethod
    def _share(draws: Draws) -> FloatArray:
        """Return the share of the function of all parameters in the variance, (s, 1, 1)."""
        share: FloatArray = 1 / (1 + draws["main_variance"].sum(axis=1))
        return share[:, None, None]


def _columns_of(encoder: Layout) -> list[NDArray[np.int64]]:
    """Return the columns of each parameter."""
    counts = [len(d.levels) if d.kind == "categorical" else 1 for d in encoder.dimensions]
    return np.split(np.arange(sum(counts)), np.cumsum(counts)[:-1])
