r"""Sobol indices of expansions in kernels that are sums of products over parameters, by one-dimensional quadrature.

With k(x, x') = sum_t prod_d k_td(x_d, x_d') and f(x) = mu + sum_j w_j k(x, x_j), the integrals of f and f^2 over any
parameters are products of the one-dimensional integrals

    z_td[j] = E k_td(u, x_jd),    W_tsd[j, l] = E k_td(u, x_jd) k_sd(u, x_ld)

(Oakley & O'Hagan 2004, J. R. Statist. Soc. B 66, section 3; Durrande et al. 2013, J. Multivariate Analysis 115). Then

    var f = sum_ts w' (prod_d W_tsd) w - (E f)^2,
    the variance of E(f | x_~i) = sum_ts w' (prod_{d != i} W_tsd * z_ti z_si') w - (E f)^2,

and the variance of E(f | x_i) is the variance of a function of one variable on the nodes of the quadrature.

n nodes resolve f^2 up to about n / pi cycles of f over the range; the variance from fewer nodes shows whether they do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from slayr_py.inference.functions import Expansion
from slayr_py.inference.sensitivity.inputs import Rule, quadrature
from slayr_py.inference.sensitivity.pick_freeze import Indices, bounded, means_of
from slayr_py.kernels import Draws, Kernel
from slayr_py.space import Encoded, Encoder, FloatArray

_TESTS = 32  # pairs of configurations at which the factorisation is tested
_SAME = 1e-10  # largest relative difference of a product from the covariance
_NODES = (64, 128, 512)  # the next number if one does not resolve the functions
_RESOLVED = 0.01  # largest mean relative difference of the variances from those of three quarters of the nodes
_ROUNDING = 1e-17  # of the squared sum of the absolute terms of a mean: variances below it are those of constants


def product_indices(expansions: Sequence[Expansion], encoder: Encoder) -> Indices | None:
    """Return Sobol indices of functions without warps.

    None if their kernels are not sums of products, or if the functions vary too fast for the quadrature. Whether the
    summands of a kernel factor over the parameters is tested at random pairs of configurations.
    """
    if any(expansion.warp is not None for expansion in expansions) or encoder.is_conditional:
        return None
    if not all(_is_product(expansion.kernel, encoder, expansion.draws) for expansion in expansions):
        return None
    draws = [(expansion, i) for expansion in expansions for i in range(len(expansion.weights))]
    for nodes in _NODES:
        rules, fewer = ([quadrature(d, n) for d in encoder.dimensions] for n in (nodes, 3 * nodes // 4))
        before = np.concatenate([_Integrals.of(*draw, fewer).variance() for draw in draws])
        indices = [_Integrals.of(*draw, rules).indices() for draw in draws]
        first, total, variance = (np.concatenate(arrays) for arrays in zip(*indices, strict=True))
        difference = np.abs(before / variance - 1)
        varies = np.isfinite(difference)
        if not varies.any() or difference[varies].mean() <= _RESOLVED:
            first, total = bounded(first, total)  # up to rounding errors they are
            return Indices(first, total, means_of(first, total), 0.0)
    return None


def _is_product(kernel: Kernel, encoder: Encoder, draws: Draws) -> bool:
    """Return whether every summand of a kernel is a product of functions of one parameter each."""
    rng = np.random.default_rng(0)
    a, b = (encoder.from_uniform(rng.random((_TESTS, len(encoder.dimensions)))) for _ in range(2))
    draw = {name: values[:1] for name, values in draws.items()}
    scale, factors = _factors(kernel, encoder, draw, zip(a.T, b.T, strict=True))
    if not np.all(scale > 0):
        return False
    product = scale[:, None, None] * prod(factors)
    expected = kernel.component_cross(_encoded(encoder, a), _encoded(encoder, b), draw)[:, 0]
    return bool(np.all(np.abs(product - expected) <= _SAME * np.abs(expected).max(axis=(1, 2), keepdims=True)))


class _Integrals(NamedTuple):
    """Integrals of the j functions of one draw by quadrature.

    Attributes
    ----------
    rules : sequence of D Rule
    factors : sequence of D (t, g, N) float64
        Factors of the kernel's summands at the nodes and the centres.
    means : sequence of D (t, N) float64
        Their means over the nodes.
    scaled : (t, N, j) float64
        Weights of the expansion times the scales of the summands.
    mean : (j,) float64
        Means of the functions.
    """

    rules: Sequence[Rule]
    factors: Sequence[FloatArray]
    means: Sequence[FloatArray]
    scaled: FloatArray
    mean: FloatArray

    @classmethod
    def of(cls, expansion: Expansion, i: int, rules: Sequence[Rule]) -> _Integrals:
        """Integrate the functions of draw i."""
        encoder = expansion.centres.encoder
        assert isinstance(encoder, Encoder)
        draw = {name: values[i : i + 1] for name, values in expansion.draws.items()}
        centres = expansion.centres.unit_values
        pairs = ((rule.nodes, column) for rule, column in zip(rules, centres.T, strict=True))
        scale, factors = _factors(expansion.kernel, encoder, draw, pairs)
        means = [np.tensordot(rule.weights, k, axes=(0, 1)) for rule, k in zip(rules, factors, strict=True)]
        scaled = scale[:, None, None] * expansion.weights[i]
        mean = np.einsum("tnj,tn->j", scaled, prod(means))
        return cls(rules, factors, means, scaled, mean)

    def variance(self) -> FloatArray:
        """Return the variances of the functions (j,), NaN where they are constant."""
        variance = -np.square(self.mean)
        for t, s, squares in self._squares():
            variance += _forms(self.scaled[t], np.asarray(prod(squares)), self.scaled[s])
        return self._varying(variance)

    def indices(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return first-order and total indices (j, D) and the variances (j,)."""
        first, without = np.empty((2, len(self.mean), len(self.rules)))
        others = _products_of_others(self.means)
        for d, rule in enumerate(self.rules):
            main = np.einsum("tgn,tn,tnj->gj", self.factors[d], others[d], self.scaled)
            first[:, d] = rule.weights @ np.square(main) - np.square(self.mean)
        variance = -np.square(self.mean)
        without[:] = variance[:, None]
        for t, s, squares in self._squares():
            left, right = self.scaled[t], self.scaled[s]
            variance += _forms(left, np.asarray(prod(squares)), right)
            for d, rest in enumerate(_products_of_others(squares)):
                without[:, d] += _forms(left * self.means[d][t][:, None], rest, right * self.means[d][s][:, None])
        variance = self._varying(variance)
        return first / variance[:, None], 1 - without / variance[:, None], variance

    def _squares(self) -> Iterator[tuple[int, int, list[FloatArray]]]:
        """Yield t, s and the D matrices W_tsd (N, N) of every pair of summands."""
        for t in range(len(self.scaled)):
            for s in range(len(self.scaled)):
                factors = zip(self.rules, self.factors, strict=True)
                yield t, s, [k[t].T @ (rule.weights[:, None] * k[s]) for rule, k in factors]

    def _varying(self, variance: FloatArray) -> FloatArray:
        terms = np.einsum("tnj,tn->j", np.abs(self.scaled), np.abs(prod(self.means)))
        return np.where(variance > _ROUNDING * np.square(terms), variance, np.nan)


def _factors(
    kernel: Kernel,
    encoder: Encoder,
    draw: Draws,
    pairs: Iterable[tuple[FloatArray, FloatArray]],
) -> tuple[FloatArray, list[FloatArray]]:
    """Return k_t(r, r) (t,) and the factors k_t(r | a_d, r | b_d) / k_t(r, r) (t, n_a, n_b) of every parameter.

    The configuration r is arbitrary. It is random, so that no linear kernel is 0 there.

    Parameters
    ----------
    draw : mapping of str to (1, ...) float64
    pairs : iterable of pairs of (n_a,) and (n_b,) float64
        Unit values of each parameter.
    """
    reference = encoder.from_uniform(np.random.default_rng(1).random((1, len(encoder.dimensions))))
    r = _encoded(encoder, reference)
    scale = kernel.component_cross(r, r, draw)[:, 0, 0, 0]
    factors = []
    for d, (a, b) in enumerate(pairs):
        x, y = (_encoded(encoder, _with_column(reference, d, column)) for column in (a, b))
        with np.errstate(divide="ignore", invalid="ignore"):
            factors.append(kernel.component_cross(x, y, draw)[:, 0] / scale[:, None, None])
    return scale, factors


def _with_column(reference: FloatArray, d: int, column: FloatArray) -> FloatArray:
    points = np.repeat(reference, len(column), axis=0)
    points[:, d] = column
    return points


def _encoded(encoder: Encoder, unit_values: FloatArray) -> Encoded:
    return Encoded(unit_values, np.ones(unit_values.shape, dtype=np.bool_), encoder)


def _products_of_others(arrays: Sequence[FloatArray]) -> list[FloatArray]:
    """Return the product of all other arrays, for each array."""
    before = [np.ones_like(arrays[0])]
    after = [np.ones_like(arrays[0])]
    for array in arrays[:-1]:
        before.append(before[-1] * array)
    for array in arrays[:0:-1]:
        after.append(after[-1] * array)
    return [left * right for left, right in zip(before, reversed(after), strict=True)]


def _forms(left: FloatArray, matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Return the forms l' M r of j columns, (j,)."""
    return np.asarray(np.einsum("nj,nj->j", left, matrix @ right))
