r"""Modulators of graph frequencies: a distance t between continuous parameters, and a response f.

===============  ===================================  ===============================================
modulator        t                                    f(lambda, t)
===============  ===================================  ===============================================
laplacian        r^2                                  1 / (1 + beta lambda + alpha t)
power            r^tau                                sum_n weights_n (1 + beta lambda + alpha t)^-n
neural           1 - k_NN                             1 / (1 + beta lambda + t)
diffusion        r^2                                  exp(-(1 + alpha t) beta lambda)
hierarchical     u - k_H                              1 / (1 + beta lambda + alpha t)
===============  ===================================  ===============================================

with r^2 = sum_d ((c_d - c'_d) / lengthscale_d)^2 (Oh, Gavves & Welling 2021, eqs. 6, 7, 9, 10 and Proposition 3 of the
supplement). The arc-sine kernel k_NN has S = diag(bias^2, lengthscale^-2) and inputs augmented by 1,

    k_NN = 2/pi asin(2 c'S c~ / sqrt((1 + 2 c'S c) (1 + 2 c~'S c~)))     (Rasmussen & Williams 2006, eq. 4.29).

Twins of the functions in ``stan/functions/frequency_modulated.stan``.
"""

from __future__ import annotations

from abc import ABC
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from slayr_py.arguments import check_integer
from slayr_py.errors import DataError
from slayr_py.kernels.contracts import StanValue
from slayr_py.kernels.hierarchical import Hierarchical
from slayr_py.kernels.hyperparameters import Draws, Hyperparameter
from slayr_py.kernels.mixed.conditional_tree import Tree
from slayr_py.kernels.mixed.contract import MODULATORS
from slayr_py.kernels.mixed.real_distance import real_lengthscale, squared_distance, squared_distance_gradient
from slayr_py.kernels.mixed.responses import Exponential, Inverse, Powers, Response
from slayr_py.kernels.priors import Dirichlet, LogNormal, lengthscale_prior
from slayr_py.space import Encoded, FloatArray, Layout


class Modulator(ABC):
    """A distance and a response, and their hyperparameters except ``beta``.

    Symbols: s draws, D_c real dimensions, P graphs; z = beta lambda broadcasts against t (s, ...).

    Attributes
    ----------
    name : str
    stationary : bool
        Whether t is 0 between equal configurations.
    """

    name: ClassVar[str]
    stationary: ClassVar[bool] = True

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of the kernel; JSON-able."""
        return {"modulator": self.name}

    @property
    def description(self) -> str:
        """Description for people."""
        return self.name

    def hyperparameters(self, encoder: Layout) -> tuple[Hyperparameter, ...]:
        """Return the hyperparameters on a space.

        At the prior median alpha = 1/(2P) the product over P graphs is a squared exponential near r = 0.
        """
        alpha = _strength(encoder, -np.log(2 * len(encoder.graph_names)))
        return (
            real_lengthscale(encoder, lengthscale_prior(len(encoder.real_names) + len(encoder.graph_names))),
            *alpha,
        )

    def stan_data(self, encoder: Layout) -> dict[str, StanValue]:
        """Return the modulator's own entries of the data of ``stan/fm_gp.stan``."""
        n_alpha = len(encoder.graph_names) if any(h.name == "alpha" for h in self.hyperparameters(encoder)) else 0
        return {"modulator": MODULATORS[self.name], "n_alpha": n_alpha}

    def distance(self, a: Encoded, b: Encoded, draws: Draws) -> FloatArray:
        """Return the distances t, (s, n_a, n_b)."""
        return squared_distance(a, b, draws["lengthscale"])

    def distance_with_gradient(self, a: Encoded, b: Encoded, draws: Draws) -> tuple[FloatArray, FloatArray]:
        """Return the distances and their derivatives by the real inputs of ``a``, (s, n_a, n_b, D_c)."""
        return self.distance(a, b, draws), squared_distance_gradient(a, b, draws["lengthscale"])

    def own_distance(self, a: Encoded, draws: Draws) -> FloatArray:
        """Return t of every configuration with itself, (s, n_a)."""
        return np.zeros((len(draws["beta"]), len(a)))

    def own_distance_gradient(self, a: Encoded, draws: Draws) -> FloatArray:
        """Return the derivatives of :meth:`own_distance`, (s, n_a, D_c)."""
        return np.zeros((len(draws["beta"]), len(a), len(a.encoder.real_names)))

    def strength(self, t: FloatArray, draws: Draws, p: int) -> FloatArray:
        """Return alpha of graph p, which broadcasts against t; 1 if the modulator has none."""
        return draws["alpha"][:, p].reshape(-1, *[1] * (t.ndim - 1)) if "alpha" in draws else np.ones(())

    def response(self, draws: Draws) -> Response:
        """Return f under s draws."""
        return Inverse()

    def response_at_zero(self, z: FloatArray) -> FloatArray:
        """Return f at t = 0, averaged over the prior of its other hyperparameters."""
        return self.response({}).term(np.ones(()), z, np.ones_like(z), out=np.empty_like(z))


class Laplacian(Modulator):
    """Regularised Laplacian: the ModLap kernel."""

    name = "laplacian"


class Power(Modulator):
    """Mixture of powers n = 1..orders of the regularised Laplacian, with a power of the distance."""

    name = "power"

    def __init__(self, orders: int = 3, tau: float = 2.0) -> None:
        self.orders = check_integer("orders", orders, 1, 100)
        if isinstance(tau, bool) or not isinstance(tau, int | float | np.number) or not 0 < tau <= 2:
            raise DataError(f"the exponent tau is {tau!r}; give a number in (0, 2]")
        self.tau = float(tau)

    @property
    @override
    def options(self) -> dict[str, Any]:
        return {**super().options, "orders": self.orders, "tau": self.tau}

    @override
    def hyperparameters(self, encoder: Layout) -> tuple[Hyperparameter, ...]:
        orders = tuple(str(n + 1) for n in range(self.orders))
        return (*super().hyperparameters(encoder), Hyperparameter("weights", Dirichlet(1.0), orders, "order"))

    @override
    def stan_data(self, encoder: Layout) -> dict[str, StanValue]:
        return super().stan_data(encoder) | {"orders": self.orders, "tau": self.tau}

    @override
    def distance(self, a: Encoded, b: Encoded, draws: Draws) -> FloatArray:
        squared = squared_distance(a, b, draws["lengthscale"])
        return squared if self.tau == 2 else np.power(squared, 0.5 * self.tau)

    @override
    def distance_with_gradient(self, a: Encoded, b: Encoded, draws: Draws) -> tuple[FloatArray, FloatArray]:
        squared = squared_distance(a, b, draws["lengthscale"])
        gradient = squared_distance_gradient(a, b, draws["lengthscale"])
        if self.tau == 2:
            return squared, gradient
        # r^tau has a kink at 0 for tau <= 1; the derivative there is set to 0, between its two slopes.
        safe = np.where(squared > 0, squared, 1.0)
        by_square = np.where(squared > 0, 0.5 * self.tau * np.power(safe, 0.5 * self.tau - 1), 0.0)
        return np.power(squared, 0.5 * self.tau), by_square[..., None] * gradient

    @override
    def response(self, draws: Draws) -> Response:
        return Powers(draws["weights"])

    @override
    def response_at_zero(self, z: FloatArray) -> FloatArray:
        # `Powers` with equal weights rounds differently, so that the prior of beta would differ in its last digits.
        powers = [(1 + z) ** -float(n + 1) for n in range(self.orders)]
        return np.asarray(np.mean(powers, axis=0))


class Neural(Modulator):
    """Arc-sine kernel of an infinitely wide neural network; it is not stationary and has no ``alpha``."""

    name = "neural"
    stationary = False

    @override
    def hyperparameters(self, encoder: Layout) -> tuple[Hyperparameter, ...]:
        # On the unit cube the steps of the hidden units are about one length-scale wide.
        location = np.log(0.3) + np.log(max(len(encoder.real_names), 1)) / 2
        return real_lengthscale(encoder, LogNormal(location, 1.0)), Hyperparameter("bias", LogNormal(0.0, 1.0))

    @override
    def distance(self, a: Encoded, b: Encoded, draws: Draws) -> FloatArray:
        return 1 - 2 / np.pi * self._angle(a, b, draws)[0]

    @override
    def distance_with_gradient(self, a: Encoded, b: Encoded, draws: Draws) -> tuple[FloatArray, FloatArray]:
        angle, product, root, n_a, _ = self._angle(a, b, draws)
        weight = 1 / np.square(draws["lengthscale"])
        # With sin(angle) = 2 c'Sc~ / sqrt(AB), A = 1 + 2 c'Sc: d sin = 2 S c~ / sqrt(AB) - 2 S c sin / A, and
        # cos(angle) = root / sqrt(AB), so that d angle = (2 S c~ - 2 S c (2 c'Sc~) / A) / root.
        ratio = product / (1 + 2 * n_a[:, :, None])
        step = b.real[None, None, :, :] - ratio[..., None] * a.real[None, :, None, :]
        gradient = -4 / np.pi * weight[:, None, None, :] * step / root[..., None]
        return 1 - 2 / np.pi * angle, gradient

    @override
    def own_distance(self, a: Encoded, draws: Draws) -> FloatArray:
        norm = self._norms(a, draws)
        return 1 - 2 / np.pi * np.arctan2(2 * norm, np.sqrt(1 + 4 * norm))

    @override
    def own_distance_gradient(self, a: Encoded, draws: Draws) -> FloatArray:
        norm = self._norms(a, draws)
        # sin(angle) = 2n / (1 + 2n): d angle / dn = 2 / ((1 + 2n) sqrt(1 + 4n)), and dn/dc = 2 S c.
        by_norm = -4 / np.pi / ((1 + 2 * norm) * np.sqrt(1 + 4 * norm))
        weight = 1 / np.square(draws["lengthscale"])
        return by_norm[..., None] * 2 * weight[:, None, :] * a.real[None]

    def _norms(self, a: Encoded, draws: Draws) -> FloatArray:
        """Return c'S c of the augmented inputs, (s, n_a)."""
        return np.square(draws["bias"])[:, None] + (1 / np.square(draws["lengthscale"])) @ np.square(a.real).T

    def _angle(
        self, a: Encoded, b: Encoded, draws: Draws
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the angle asin(...), 2 c'S c~, the other leg of its right triangle, and both norms."""
        n_a = self._norms(a, draws)
        n_b = self._norms(b, draws)
        left = n_a[:, :, None]
        right = n_b[:, None, :]
        half = 0.5 * (left + right - squared_distance(a, b, draws["lengthscale"]))
        # Near 1 asin loses digits; the arctangent of the same angle does not.
        root = np.sqrt(np.maximum(1 + 2 * (left + right) + 4 * (left * right - np.square(half)), 1.0))
        return np.arctan2(2 * half, root), 2 * half, root, n_a, n_b


class Diffusion(Modulator):
    """Modulated diffusion kernel, for comparison: it breaks the frequency modulation principle."""

    name = "diffusion"

    @override
    def response(self, draws: Draws) -> Response:
        return Exponential()


class ByHierarchical(Modulator):
    """Hierarchical kernel on the real dimensions, used as a modulator."""

    name = Hierarchical.name

    def __init__(self, kernel: Hierarchical) -> None:
        self.kernel = kernel

    @property
    @override
    def options(self) -> dict[str, Any]:
        return {"modulator": {"name": self.name, **self.kernel.options()}}

    @property
    @override
    def description(self) -> str:
        return f"by a {self.kernel.description}"

    @override
    def hyperparameters(self, encoder: Layout) -> tuple[Hyperparameter, ...]:
        # At the prior median of alpha, configurations far apart correlate 1/20 over all graphs.
        tree = self._tree(encoder)
        farthest = max(self.kernel.bound(tree), 1.0)
        alpha = (20 ** (1 / len(encoder.graph_names)) - 1) / farthest
        return (*_strength(encoder, np.log(alpha)), *self.kernel.tree_hyperparameters(tree))

    @override
    def stan_data(self, encoder: Layout) -> dict[str, StanValue]:
        tree = self._tree(encoder)
        return super().stan_data(encoder) | {"H": len(tree.weight_names)} | self.kernel.tree_data(tree)

    @override
    def distance(self, a: Encoded, b: Encoded, draws: Draws) -> FloatArray:
        tree = self._tree(a.encoder)
        return self.kernel.bound(tree) - self.kernel.correlations(tree, a, b, draws)

    @override
    def distance_with_gradient(self, a: Encoded, b: Encoded, draws: Draws) -> tuple[FloatArray, FloatArray]:
        tree = self._tree(a.encoder)
        k, gradient = self.kernel.correlations_with_gradient(tree, a, b, draws)
        return self.kernel.bound(tree) - k, -gradient

    def _tree(self, encoder: Layout) -> Tree:
        return Tree.of(encoder, real_only=True)


def _strength(encoder: Layout, log_median: float) -> tuple[Hyperparameter, ...]:
    """Return alpha of every graph; an empty tuple without real parameters, since there is no distance to scale."""
    alpha = Hyperparameter("alpha", LogNormal(log_median, 1.0), encoder.graph_names, "graph", may_vanish=True)
    return (alpha,) if encoder.real_names else ()


def mean_response(encoder: Layout, draws: Draws, modulator: Modulator) -> FloatArray:
    """Return the mean of prod_p sum_g W_pg(v, v) f(lambda_pg, 0) over the vertices v of all graphs, (s,)."""
    mean = np.ones(len(draws["beta"]))
    response = modulator.response(draws)
    for p, spectrum in enumerate(encoder.spectra.values()):
        z = draws["beta"][:, p, None] * spectrum.eigenvalues[spectrum.group_of]
        mean *= response.term(np.ones(()), z, np.ones_like(z), out=np.empty_like(z)).mean(axis=1)
    return mean
