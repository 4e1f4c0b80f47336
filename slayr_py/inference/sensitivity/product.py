r"""Sobol indices of expansions in kernels that are sums of products over parameters, by one-dimensional quadrature.

With k(x, x') = sum_t prod_d k_td(x_d, x_d') and f(x) = mu + sum_j w_j k(x, x_j), the integrals of f and f^2 over any
parameters are products of the one-dimensional integrals

    z_td[j] = E k_td(u, x_jd),    W_tsd[j, l] = E k_td(u, x_jd) k_sd(u, x_ld)

(Oakley & O'Hagan 2004, J. R. Statist. Soc. B 66, section 3; Durrande et al. 2013, J. Multivariate Analysis 115). Then

    var f = sum_ts w' (prod_d W_tsd) w - (E f)^2,
    the variance of E(f | x_~i) = sum_ts w' (prod_{d != i} W_tsd * z_ti z_si') w - (E f)^2,

and the variance of E(f | x_i) is the variance of a function of one variable on the nodes of the quadrature.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

import numpy as np

from slayr_py.inference.functions import Expansion
from slayr_py.inference.sensitivity.inputs import Rule, quadrature
from slayr_py.inference.sensitivity.pick_freeze import Indices
from slayr_py.kernels import Draws, Kernel
from slayr_py.space import Encoded, Encoder, FloatArray

_TESTS = 32  # pairs of configurations at which the factorisation is tested
_SAME = 1e-10  # largest relative difference of a product from the covariance


def product_indices(expansions: Sequence[Expansion], encoder: Encoder) -> Indices | None:
    """Return Sobol indices of functions without warps; None if their kernels are not sums of products.

    Whether the summands of a kernel factor over the parameters is tested at random pairs of configurations.
    """
    if any(expansion.warp is not None for expansion in expansions) or encoder.is_conditional:
        return None
    if not all(_is_product(expansion.kernel, encoder, expansion.draws) for expansion in expansions):
        return None
    rules = [quadrature(dimension) for dimension in encoder.dimensions]
    indices = [_draw_indices(expansion, i, rules) for expansion in expansions for i in range(len(expansion.weights))]
    first, total = (np.concatenate(arrays) for arrays in zip(*indices, strict=True))
    return Indices(first, total, 0.0)


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


def _draw_indices(expansion: Expansion, i: int, rules: Sequence[Rule]) -> tuple[FloatArray, FloatArray]:
    """Return first-order and total indices (j, D) of the functions of one draw."""
    encoder = expansion.centres.encoder
    assert isinstance(encoder, Encoder)
    draw = {name: values[i : i + 1] for name, values in expansion.draws.items()}
    centres = expansion.centres.unit_values
    w = expansion.weights[i]
    pairs = ((rule.nodes, column) for rule, column in zip(rules, centres.T, strict=True))
    scale, factors = _factors(expansion.kernel, encoder, draw, pairs)
    means = [np.tensordot(rule.weights, k, axes=(0, 1)) for rule, k in zip(rules, factors, strict=True)]  # (t, N) each
    scaled = scale[:, None, None] * w  # (t, N, j)
    mean = np.einsum("tnj,tn->j", scaled, prod(means))
    first, without = np.empty((2, w.shape[1], len(rules)))
    others = _products_of_others(means)
    for d, rule in enumerate(rules):
        main = np.einsum("tgn,tn,tnj->gj", factors[d], others[d], scaled)
        first[:, d] = rule.weights @ np.square(main) - np.square(mean)
    variance = -np.square(mean)
    without[:] = -np.square(mean)[:, None]
    for t in range(len(scale)):
        for s in range(len(scale)):
            squares = [k[t].T @ (rule.weights[:, None] * k[s]) for rule, k in zip(rules, factors, strict=True)]
            variance += _forms(scaled[t], prod(squares), scaled[s])
            for d, rest in enumerate(_products_of_others(squares)):
                without[:, d] += _forms(scaled[t] * means[d][t][:, None], rest, scaled[s] * means[d][s][:, None])
    varies = np.where(variance > 0, variance, np.nan)[:, None]
    return first / varies, 1 - without / varies


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
