"""Separate kernels of real and discrete parameters, multiplied or added: what frequency modulation is compared with.

With k_SE = exp(-r^2/2) on the real parameters and k_G = prod_p sum_g W_pg f(beta_p lambda_pg) on the graphs, where f is
1/(1 + z) ("laplacian") or exp(-z) ("diffusion"), the covariance is sigma_f^2 k_SE k_G or sigma_f^2 (k_SE + k_G) (Oh,
Gavves & Welling 2021, supplement, section 5: ProdLap, ProdDif, AddLap, AddDif).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from typing_extensions import override

from slayr_py.errors import DataError, did_you_mean
from slayr_py.kernels.base import Kernel
from slayr_py.kernels.modulators import (
    Diffusion,
    Laplacian,
    Modulator,
    mean_response,
    squared_distance,
    squared_distance_gradient,
)
from slayr_py.kernels.priors import Prior, lengthscale_prior
from slayr_py.kernels.spectral import beta_prior, graph_data, own_weights, vertex_weights
from slayr_py.space import Encoded, Layout
from slayr_py.space.dimension import FloatArray

Combine = Literal["product", "sum"]
_GRAPHS: dict[str, Modulator] = {m.name: m for m in (Laplacian(), Diffusion())}


class Separable(Kernel):
    """Product or sum of a squared-exponential kernel and a kernel on graphs.

    Its hyperparameters are ``lengthscale``, one for each real parameter, and ``beta``, one for each graph.

    Parameters
    ----------
    graph : {"laplacian", "diffusion"}
        Kernel of the graphs.
    combine : {"product", "sum"}

    Raises
    ------
    DataError
        For an unknown name; when used, for a space without ordinal or categorical parameters.
    """

    name: ClassVar[str] = "separable"
    program: ClassVar[str] = "fm_gp"
    dims: ClassVar[Mapping[str, str]] = {"lengthscale": "real", "beta": "graph"}
    needs_graphs: ClassVar[bool] = True
    may_vanish: ClassVar[frozenset[str]] = frozenset({"beta"})

    def __init__(self, graph: str = "laplacian", combine: Combine = "product") -> None:
        if graph not in _GRAPHS:
            raise DataError(f"unknown graph kernel {graph!r}{did_you_mean(graph, tuple(_GRAPHS))}")
        if combine not in get_args(Combine):
            raise DataError(f"unknown combination {combine!r}{did_you_mean(combine, get_args(Combine))}")
        self.graph, self.combine = graph, combine
        self._response = _GRAPHS[graph]

    @override
    def options(self) -> dict[str, Any]:
        return {"graph": self.graph, "combine": self.combine}

    @property
    @override
    def description(self) -> str:
        return f"{self.combine} of a squared-exponential and a {self.graph} kernel"

    @override
    def labels(self, encoder: Layout) -> dict[str, tuple[str, ...] | None]:
        return {"lengthscale": encoder.real_names, "beta": encoder.graph_names}

    @override
    def kernel_priors(self, encoder: Layout) -> dict[str, Prior]:
        lengthscale = lengthscale_prior(len(encoder.real_names))
        return {"lengthscale": lengthscale, "beta": beta_prior(encoder, self._response.response_at_zero)}

    @override
    def stan_data(self, train: Encoded, new: Encoded) -> dict[str, Any]:
        absent = {"alpha_location": np.zeros(0), "alpha_scale": np.zeros(0)}
        return {
            **graph_data(train, new),
            **self._response.stan_data(train.encoder),
            "modulator": self._response.code,
            "combine": 1 if self.combine == "product" else 2,
            "n_alpha": 0,
            **absent,
        }

    @override
    def cross(self, a: Encoded, b: Encoded, draws: Mapping[str, FloatArray]) -> FloatArray:
        smooth = np.exp(-0.5 * squared_distance(a, b, draws["lengthscale"]))
        return self._combined(smooth, self._on_graphs(vertex_weights(a, b), (len(a), len(b)), draws), draws)

    @override
    def cross_gradient(self, a: Encoded, b: Encoded, draws: Mapping[str, FloatArray]) -> tuple[FloatArray, FloatArray]:
        smooth = np.exp(-0.5 * squared_distance(a, b, draws["lengthscale"]))
        on_graphs = self._on_graphs(vertex_weights(a, b), (len(a), len(b)), draws)
        by_square = -0.5 * smooth * np.square(draws["sigma_f"])[:, None, None]
        if self.combine == "product":
            by_square *= on_graphs
        gradient = by_square[..., None] * squared_distance_gradient(a, b, draws["lengthscale"])
        return self._combined(smooth, on_graphs, draws), gradient

    @override
    def diagonal(self, a: Encoded, draws: Mapping[str, FloatArray]) -> FloatArray:
        on_graphs = self._on_graphs(own_weights(a), (len(a),), draws)
        return self._combined(np.ones_like(on_graphs), on_graphs, draws)

    @override
    def reference_variance(self, encoder: Layout, draws: Mapping[str, FloatArray]) -> FloatArray:
        on_graphs = mean_response(encoder, draws, self._response)
        return on_graphs if self.combine == "product" else 1 + on_graphs

    def _on_graphs(
        self,
        graphs: Iterable[tuple[FloatArray, list[FloatArray]]],
        shape: tuple[int, ...],
        draws: Mapping[str, FloatArray],
    ) -> FloatArray:
        beta = draws["beta"]
        k = np.ones((len(beta), *shape))
        for p, (eigenvalues, weights) in enumerate(graphs):
            f = self._response.response_at_zero(beta[:, p, None] * eigenvalues)
            k *= np.tensordot(f, np.stack(weights), axes=1)
        return k

    def _combined(self, smooth: FloatArray, on_graphs: FloatArray, draws: Mapping[str, FloatArray]) -> FloatArray:
        variance = np.square(draws["sigma_f"]).reshape(-1, *[1] * (smooth.ndim - 1))
        return variance * (smooth * on_graphs if self.combine == "product" else smooth + on_graphs)
