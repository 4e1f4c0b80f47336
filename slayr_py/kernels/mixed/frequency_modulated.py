r"""Frequency-modulated kernels for mixed spaces (Oh, Gavves & Welling 2021): twin of ``stan/fm_gp.stan``.

Each ordinal or categorical parameter is a graph; the continuous parameters modulate the frequencies of its Laplacian:

    k = sigma_f^2 prod_p sum_g W_pg(v_p, v'_p) f(lambda_pg, t(c, c'))      (eq. 5),

with W of :mod:`slayr_py.kernels.mixed.spectral` and f, t of :mod:`slayr_py.kernels.mixed.modulators`. A parameter that
may be inactive has an extra vertex for that state; an inactive real parameter takes the middle of its range.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from slayr_py.errors import DataError, did_you_mean
from slayr_py.kernels.base import Kernel
from slayr_py.kernels.contracts import Contract, StanValue
from slayr_py.kernels.hierarchical import Hierarchical
from slayr_py.kernels.hyperparameters import Draws, Hyperparameter
from slayr_py.kernels.mixed.conditional_tree import product_and_others
from slayr_py.kernels.mixed.contract import FM_GP
from slayr_py.kernels.mixed.modulators import (
    ByHierarchical,
    Diffusion,
    Laplacian,
    Modulator,
    Neural,
    Power,
    mean_response,
)
from slayr_py.kernels.mixed.spectral import damping, graph_data, own_weights, vertex_weights
from slayr_py.space import Encoded, FloatArray, Layout

_MODULATORS: dict[str, type[Modulator]] = {m.name: m for m in (Laplacian, Power, Neural, Diffusion)}


class FrequencyModulated(Kernel):
    r"""Frequency-modulated kernel.

    Its hyperparameters are ``lengthscale`` for each real parameter (the paper's theta), and for each graph ``alpha``
    (strength of the modulation) and ``beta`` (damping of the frequencies). "power" adds ``weights`` of the orders;
    "neural" has ``bias`` instead of ``alpha``; a hierarchical modulator adds ``gamma``, ``rho`` and, for its base "rq",
    ``rq_alpha``.

    Parameters
    ----------
    modulator : {"laplacian", "power", "neural", "diffusion"} or Hierarchical
        Modulator of the frequencies; "laplacian" is the paper's ModLap. "diffusion" (ModDif) is meant for comparison:
        it breaks the frequency modulation principle, so that nearer configurations may correlate less.
    orders, tau : int, float
        For "power": number of orders (default 3), and exponent of the distance, in (0, 2] (default 2).
    ordinals : {"graphs", "ranks"}
        Whether an ordinal parameter is a path graph, as in the paper, or counts as a continuous one: its rank, scaled
        to [0, 1]. One whose graph the user gives is a graph.

    Raises
    ------
    DataError
        For an unknown modulator or treatment of ordinals, or for orders or tau that are out of range or belong to
        another modulator. When the kernel is used, for a space in which nothing is a graph.

    Notes
    -----
    *Ordinals.* The ends of a path have fewer neighbours, so that their variance is larger: with five ordinals of six
    levels, the variance at a corner may be six times that in the middle, and a search prefers corners. With ranks it
    is the same everywhere. ``kernel="auto"`` has ranks.

    The factors are not normalised: k(x, x) is ``sigma_f**2`` times a product of factors that decrease with the number
    of levels and with beta. The prior of ``sigma_f`` is therefore a prior of the function's standard deviation,
    averaged over the vertices of every graph.

    *Positive definiteness with a hierarchical modulator.* Let k_H <= u be positive definite and alpha, delta > 0.

    1. u - k_H is conditionally negative definite and >= 0, so exp(-s (u - k_H)) is positive definite for every s >= 0
       (Schoenberg).
    2. 1/(delta + beta lambda + alpha (u - k_H)) = integral_0^inf exp(-s (delta + beta lambda)) exp(-s alpha (u - k_H))
       ds is a mixture of such kernels with positive weights, hence positive definite; with alpha = 1 it is the form
       1/(delta + u + beta lambda - k_H) of the paper's Proposition 3. We fix delta = 1: beside ``sigma_f`` only its
       ratios to alpha and beta matter.
    3. u_i[v] u_i[v'] is positive definite on the vertices; products, sums over i and products over graphs stay so.

    Examples
    --------
    Two levels and one real parameter. The complete graph of two vertices has the eigenvalues 0 and 2 with
    W = [[1, 1], [1, 1]]/2 and [[1, -1], [-1, 1]]/2. At r^2 = 1, alpha = beta = 1: (1/(1 + 1) +- 1/(1 + 2 + 1))/2.

    >>> from ConfigSpace import Categorical, ConfigurationSpace, Float
    >>> from slayr_py.space import Encoder
    >>> space = ConfigurationSpace()
    >>> space.add(Float("c", (0.0, 1.0)), Categorical("v", ["a", "b"]))
    >>> encoder = Encoder(space)
    >>> origin = encoder.encode([{"c": 0.0, "v": "a"}])
    >>> points = encoder.encode([{"c": 1.0, "v": "a"}, {"c": 1.0, "v": "b"}])
    >>> theta = {"lengthscale": [1.0], "alpha": [1.0], "beta": [1.0]}
    >>> FrequencyModulated().gram(origin, points, theta).round(6)
    array([[0.375, 0.125]])
    """

    name: ClassVar[str] = "fm"
    contract: ClassVar[Contract] = FM_GP
    needs_graphs: ClassVar[bool] = True
    tolerated: ClassVar[frozenset[str]] = frozenset({"alpha"})

    def __init__(
        self,
        modulator: str | Hierarchical = "laplacian",
        orders: int | None = None,
        tau: float | None = None,
        ordinals: str = "graphs",
    ) -> None:
        if ordinals not in ("graphs", "ranks"):
            raise DataError(f"ordinals is {ordinals!r}; use 'graphs' or 'ranks'")
        self.ordinals = ordinals
        given = {"orders": orders, "tau": tau}
        self.modulator = _modulator(modulator, {name: value for name, value in given.items() if value is not None})
        ranks = "; ordinals by their ranks" * self._ranks
        self.description = f"frequency-modulated kernel ({self.modulator.description}{ranks})"

    @override
    def options(self) -> dict[str, Any]:
        return self.modulator.options | ({"ordinals": self.ordinals} if self._ranks else {})

    @property
    def _ranks(self) -> bool:
        return self.ordinals == "ranks"

    def _layout(self, encoder: Layout) -> Layout:
        return encoder.ranked if self._ranks else encoder

    def _inputs(self, points: Encoded) -> Encoded:
        return points.ranked if self._ranks else points

    def _by_real(self, gradient: FloatArray, encoder: Layout) -> FloatArray:
        """Return the derivatives by the real inputs of the space alone, from those by all continuous ones."""
        names = self._layout(encoder).real_names
        if names == encoder.real_names:
            return gradient
        return gradient[..., [names.index(name) for name in encoder.real_names]]

    @override
    def check_encoder(self, encoder: Layout) -> None:
        super().check_encoder(encoder)
        if not self._layout(encoder).graph_names:
            raise DataError(
                "with ordinals='ranks' the kernel 'fm' needs a categorical parameter; use kernel='matern', which has "
                "ranks too, or ordinals='graphs'"
            )

    @override
    def hyperparameters(self, encoder: Layout) -> tuple[Hyperparameter, ...]:
        layout = self._layout(encoder)
        beta = damping(layout, self.modulator.response_at_zero)
        return self.contract.ordered((*self.modulator.hyperparameters(layout), beta))

    @override
    def stan_data(self, train: Encoded, new: Encoded) -> dict[str, StanValue]:
        train, new = self._inputs(train), self._inputs(new)
        return graph_data(train, new) | self.modulator.stan_data(train.encoder)

    @override
    def cross(self, a: Encoded, b: Encoded, draws: Draws) -> FloatArray:
        a, b = self._inputs(a), self._inputs(b)
        return self._covariance(vertex_weights(a, b), self.modulator.distance(a, b, draws), draws)

    @override
    def cross_gradient(self, a: Encoded, b: Encoded, draws: Draws) -> tuple[FloatArray, FloatArray]:
        x, y = self._inputs(a), self._inputs(b)
        t, by_inputs = self.modulator.distance_with_gradient(x, y, draws)
        return self._with_gradient(vertex_weights(x, y), t, self._by_real(by_inputs, a.encoder), draws)

    @override
    def diagonal(self, a: Encoded, draws: Draws) -> FloatArray:
        x = self._inputs(a)
        return self._covariance(own_weights(x), self.modulator.own_distance(x, draws), draws)

    @override
    def reference_variance(self, encoder: Layout, draws: Draws) -> FloatArray:
        return mean_response(self._layout(encoder), draws, self.modulator)

    @override
    def diagonal_gradient(self, a: Encoded, draws: Draws) -> FloatArray:
        if self.modulator.stationary:
            return super().diagonal_gradient(a, draws)
        x = self._inputs(a)
        by_inputs = self._by_real(self.modulator.own_distance_gradient(x, draws), a.encoder)
        return self._with_gradient(own_weights(x), self.modulator.own_distance(x, draws), by_inputs, draws)[1]

    def _covariance(
        self, graphs: Iterable[tuple[FloatArray, list[FloatArray]]], t: FloatArray, draws: Draws
    ) -> FloatArray:
        """Return the covariances (s, ...) at distances t."""
        ones = [1] * (t.ndim - 1)
        response = self.modulator.response(draws)
        # The arrays are used for every graph: new ones would cost as much as the arithmetic on them.
        product, modulated, k, term = (np.empty_like(t) for _ in range(4))
        product[:] = np.square(draws["sigma_f"]).reshape(-1, *ones)
        for p, (eigenvalues, weights) in enumerate(graphs):
            np.multiply(self.modulator.strength(t, draws, p), t, out=modulated)
            modulated += 1
            for i, (eigenvalue, weight) in enumerate(zip(eigenvalues, weights, strict=True)):
                z = eigenvalue * draws["beta"][:, p].reshape(-1, *ones)
                if i:
                    k += response.term(weight, z, modulated, out=term)
                else:
                    response.term(weight, z, modulated, out=k)
            product *= k
        return product

    def _with_gradient(
        self,
        graphs: Iterable[tuple[FloatArray, list[FloatArray]]],
        t: FloatArray,
        by_inputs: FloatArray,
        draws: Draws,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the covariances (s, ...) at distances t, and their derivatives by the real inputs, (s, ..., D_c)."""
        ones = [1] * (t.ndim - 1)
        response = self.modulator.response(draws)
        term = np.empty_like(t)
        factors = []
        slopes = []
        for p, (eigenvalues, weights) in enumerate(graphs):
            alpha = self.modulator.strength(t, draws, p)
            modulated = 1 + alpha * t
            k = np.zeros_like(t)
            by_t = np.zeros_like(t)
            for eigenvalue, weight in zip(eigenvalues, weights, strict=True):
                z = eigenvalue * draws["beta"][:, p].reshape(-1, *ones)
                k += response.term(weight, z, modulated, out=term)
                by_t += response.slopes(weight, z, modulated, out=term)[1]
            factors.append(k)
            slopes.append(alpha * by_t)
        product, others = product_and_others(factors, t.shape)
        total = sum((slope * other for slope, other in zip(slopes, others, strict=True)), start=np.zeros(t.shape))
        variance = np.square(draws["sigma_f"]).reshape(-1, *ones)
        return variance * product, (variance * total)[..., None] * by_inputs


def _modulator(modulator: str | Hierarchical, options: dict[str, Any]) -> Modulator:
    by_kernel = isinstance(modulator, Hierarchical)
    if not by_kernel and modulator not in _MODULATORS:
        known = (*_MODULATORS, "a Hierarchical kernel")
        raise DataError(f"unknown modulator {modulator!r}{did_you_mean(modulator, known)}")
    if options and modulator != Power.name:
        raise DataError(f"{sorted(options)} cannot be given for the modulator {modulator!r}; use them with 'power'")
    return ByHierarchical(modulator) if isinstance(modulator, Hierarchical) else _MODULATORS[modulator](**options)
