"""Product or sum of separate kernels of real and discrete parameters, for comparison with frequency modulation.

With k_SE = exp(-r^2/2) on the real parameters and k_G = prod_p sum_g W_pg f(beta_p lambda_pg) on the graphs, where f is
1/(1 + z) ("laplacian") or exp(-z) ("diffusion"), the covariance is sigma_f^2 k_SE k_G or sigma_f^2 (k_SE + k_G) (Oh,
Gavves & Welling 2021, supplement, section 5: ProdLap, ProdDif, AddLap, AddDif).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from typing_extensions import override

from slayr_py.errors import DataError, did_you_mean
from slayr_py.kernels.base import Kernel
from slayr_py.kernels.base_kernels import BASES, DEFAULT_ORDER, correlation, order_of_base, slope
from slayr_py.kernels.contracts import Contract, StanValue
from slayr_py.kernels.hyperparameters import Draws, Hyperparameter
from slayr_py.kernels.mixed.contract import COMBINATIONS, FM_GP, MODULATORS
from slayr_py.kernels.mixed.modulators import Diffusion, Laplacian, Modulator, mean_response
from slayr_py.kernels.mixed.real_distance import real_lengthscale, squared_distance, squared_distance_gradient
from slayr_py.kernels.mixed.spectral import damping, graph_data, own_weights, vertex_weights
from slayr_py.kernels.priors import lengthscale_prior
from slayr_py.space import Encoded, FloatArray, Layout

Combine = Literal["product", "sum"]
_GRAPHS: dict[str, Modulator] = {m.name: m for m in (Laplacian(), Diffusion())}


class Separable(Kernel):
    """Product or sum of a kernel on real parameters and a kernel on graphs.

    Its hyperparameters are ``lengthscale`` for each real parameter and ``beta`` for each graph. On a complete graph the
    diffusion kernel has one correlation between different levels: it is the exponential of the Hamming distance.

    Parameters
    ----------
    graph : {"laplacian", "diffusion"}
        Kernel of the graphs.
    combine : {"product", "sum"}
    base : {"se", "matern"}
        Kernel of the real parameters: squared-exponential, or Matérn of the order ``p``, with one distance over all.
    p : int
        Order of the Matérn kernel, nu = p + 1/2.

    Raises
    ------
    DataError
        For an unknown name. When the kernel is used, for a space without ordinal or categorical parameters.
    """

    name: ClassVar[str] = "separable"
    contract: ClassVar[Contract] = FM_GP
    needs_graphs: ClassVar[bool] = True

    def __init__(
        self,
        graph: str = "laplacian",
        combine: Combine = "product",
        base: Literal["se", "matern"] = "se",
        p: int = DEFAULT_ORDER,
    ) -> None:
        if graph not in _GRAPHS:
            raise DataError(f"unknown graph kernel {graph!r}{did_you_mean(graph, tuple(_GRAPHS))}")
        if combine not in get_args(Combine):
            raise DataError(f"unknown combination {combine!r}{did_you_mean(combine, get_args(Combine))}")
        if base not in ("se", "matern"):
            raise DataError(f"unknown base kernel {base!r}{did_you_mean(base, ('se', 'matern'))}")
        self.graph = graph
        self.combine = combine
        self.base: Literal["se", "matern"] = base
        self.p = order_of_base(base, p)
        smooth = "squared-exponential" if base == "se" else f"Matérn-{2 * p + 1}/2"
        self.description = f"{combine} of a {smooth} and a {graph} kernel"
        self._response = _GRAPHS[graph]

    @override
    def options(self) -> dict[str, Any]:
        base = {} if self.base == "se" else {"base": self.base, "p": self.p}
        return {"graph": self.graph, "combine": self.combine, **base}

    @override
    def hyperparameters(self, encoder: Layout) -> tuple[Hyperparameter, ...]:
        lengthscale = real_lengthscale(encoder, lengthscale_prior(len(encoder.real_names) + len(encoder.graph_names)))
        return lengthscale, damping(encoder, self._response.response_at_zero)

    @override
    def stan_data(self, train: Encoded, new: Encoded) -> dict[str, StanValue]:
        modulator = MODULATORS[self._response.name]
        combine = COMBINATIONS[self.combine]
        data = graph_data(train, new) | {"modulator": modulator, "combine": combine}
        return data if self.base == "se" else data | {"base": BASES[self.base], "p": self.p}

    @override
    def cross(self, a: Encoded, b: Encoded, draws: Draws) -> FloatArray:
        smooth = correlation(squared_distance(a, b, draws["lengthscale"]), self.base, self.p, None)
        return self._combined(smooth, self._on_graphs(vertex_weights(a, b), draws), draws)

    @override
    def cross_gradient(self, a: Encoded, b: Encoded, draws: Draws) -> tuple[FloatArray, FloatArray]:
        h = squared_distance(a, b, draws["lengthscale"])
        smooth = correlation(h, self.base, self.p, None)
        on_graphs = self._on_graphs(vertex_weights(a, b), draws)
        by_square = slope(h, self.base, self.p, None) * np.square(draws["sigma_f"])[:, None, None]
        if self.combine == "product":
            by_square *= on_graphs
        gradient = by_square[..., None] * squared_distance_gradient(a, b, draws["lengthscale"])
        return self._combined(smooth, on_graphs, draws), gradient

    @override
    def diagonal(self, a: Encoded, draws: Draws) -> FloatArray:
        on_graphs = self._on_graphs(own_weights(a), draws)
        return self._combined(np.ones_like(on_graphs), on_graphs, draws)

    @override
    def reference_variance(self, encoder: Layout, draws: Draws) -> FloatArray:
        on_graphs = mean_response(encoder, draws, self._response)
        return on_graphs if self.combine == "product" else 1 + on_graphs

    def _on_graphs(self, graphs: Iterable[tuple[FloatArray, list[FloatArray]]], draws: Draws) -> FloatArray:
        factors = []
        for p, (eigenvalues, weights) in enumerate(graphs):
            f = self._response.response_at_zero(draws["beta"][:, p, None] * eigenvalues)
            factors.append(np.tensordot(f, np.stack(weights), axes=1))
        return np.asarray(reduce(np.multiply, factors))

    def _combined(self, smooth: FloatArray, on_graphs: FloatArray, draws: Draws) -> FloatArray:
        variance = np.square(draws["sigma_f"]).reshape(-1, *[1] * (smooth.ndim - 1))
        return variance * (smooth * on_graphs if self.combine == "product" else smooth + on_graphs)
