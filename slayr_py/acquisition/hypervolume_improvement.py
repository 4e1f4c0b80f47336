r"""Expected hypervolume improvement, averaged over the posteriors of independent objectives.

Symbols
-------
p, K : objectives and boxes [l_k, u_k] of the non-dominated region; s_j : draws of objective j.
psi_j(e; draw) = E[(e - Y_j)^+] : expected shortfall, `slayr_py.acquisition.shortfall`; Psi_j(e) : its mean over draws.
D_jk = Psi_j(u_kj) - Psi_j(l_kj).

A value y improves the hypervolume by sum_k prod_j (u_kj - y_j)^+ - (l_kj - y_j)^+ (Yang et al. 2019, arXiv:1904.12672).
Independent objectives have independent posteriors, so that the expectation of the product is a product of expectations:

    EHVI = sum_k prod_j D_jk

is the mean over all s_1 ... s_p combinations of draws, at the cost of s_1 + ... + s_p evaluations of psi.

A noisy front consists of posterior means, which an evaluation changes together with that at the evaluated
configuration. An edge is then the value of a configuration, and psi has the moments relative to that: see
`Predictor.front_moments`. The edges of a box move with the upper one, so that D_jk is not negative.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from slayr_py.acquisition.boxes import Boxes
from slayr_py.acquisition.functions import log_mean_exp
from slayr_py.acquisition.shortfall import Shortfall
from slayr_py.inference import log_sum_exp
from slayr_py.space import FloatArray

_EPSILON = np.finfo(np.float64).eps


@dataclass(frozen=True)
class Sides:
    """The edges of boxes in one objective.

    Attributes
    ----------
    edges : (k,) float64
        Finite edges in increasing order, distinct but for their owners.
    owners : (k,) int
        The configuration of a noisy front on whose value an improvement below this edge depends, by its position, or
        -1. A box belongs to the owner of its upper edge: with that, its lower edge moves too.
    lower, upper : (K,) int
        Positions of the edges of each box; -1 for an edge at minus infinity.
    """

    edges: FloatArray
    owners: NDArray[np.intp]
    lower: NDArray[np.intp]
    upper: NDArray[np.intp]

    @classmethod
    def of(cls, boxes: Boxes, objective: int, front: FloatArray | None = None) -> Sides:
        """Return the edges of boxes in an objective; ``front`` are the values (q,) of owners."""
        below = boxes.lower[:, objective]
        above = boxes.upper[:, objective]
        owners = np.full(len(above), -1, dtype=np.intp)
        if front is not None and len(front):
            equal = above[:, None] == front
            owners = np.where(equal.any(axis=1), equal.argmax(axis=1), -1)
        finite = np.isfinite(below)
        all_edges = np.concatenate([above, below[finite]])
        pairs = np.column_stack([all_edges, np.concatenate([owners, owners[finite]])])
        distinct, place = np.unique(pairs, axis=0, return_inverse=True)
        lower = np.full(len(below), -1, dtype=np.intp)
        lower[finite] = place.ravel()[len(above) :]
        return cls(distinct[:, 0], distinct[:, 1].astype(np.intp), lower, place.ravel()[: len(above)])

    def log_differences(self, log_psi: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return log D, and the logarithms of its terms, (m, K), from log Psi (m, k)."""
        upper = log_psi[:, self.upper]
        lower = np.where(self.lower < 0, -np.inf, log_psi[:, self.lower])
        # Edges that agree in all digits have a difference of rounding size.
        gap = np.minimum(lower - upper, -_EPSILON)
        return upper + np.log(-np.expm1(gap)), upper, lower

    @cached_property
    def incidence(self) -> tuple[FloatArray, FloatArray]:
        """Matrices (K, k) that add up terms of boxes by their upper and by their lower edge."""
        positions = np.arange(len(self.edges))
        return (self.upper[:, None] == positions).astype(float), (self.lower[:, None] == positions).astype(float)


@dataclass(frozen=True)
class Improvement:
    """The expected hypervolume improvement at m points.

    Attributes
    ----------
    log : (m,) float64
    sides : sequence of Sides
    log_terms : (m, K) float64
        Logarithms of the terms of the boxes.
    differences : sequence of tuple of (m, K) float64
        For each objective, log D and the logarithms of its terms.
    """

    log: FloatArray
    sides: Sequence[Sides]
    log_terms: FloatArray
    differences: Sequence[tuple[FloatArray, FloatArray, FloatArray]]

    @property
    def relevance(self) -> Iterator[FloatArray]:
        """For each objective, the derivatives (m, k) of ``log`` by log Psi at its edges."""
        share = np.exp(self.log_terms - self.log[:, None])
        for side, (log, upper, lower) in zip(self.sides, self.differences, strict=True):
            by_upper, by_lower = side.incidence
            yield (share * np.exp(upper - log)) @ by_upper - (share * np.exp(lower - log)) @ by_lower


def expected_improvement_of_boxes(sides: Sequence[Sides], log_psi: Sequence[FloatArray]) -> Improvement:
    """Return log EHVI from log Psi of each objective, each (m, k).

    The sum over boxes is a log-sum-exp, so that it does not underflow far from the front.
    """
    differences = [side.log_differences(log) for side, log in zip(sides, log_psi, strict=True)]
    log_terms = np.asarray(np.sum([log for log, _, _ in differences], axis=0))
    return Improvement(log_sum_exp(log_terms.T), sides, log_terms, differences)


def mean_over_draws(shortfall: Shortfall) -> FloatArray:
    """Return log Psi (m, k) from log psi (s, m, k)."""
    return log_mean_exp(shortfall.log)


def derivatives(shortfall: Shortfall, relevance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the derivatives of log EHVI by mean and standard deviation of an objective at each edge, (s, m, k)."""
    share = relevance * np.exp(shortfall.log - log_sum_exp(shortfall.log))
    return share * shortfall.by_mean, share * shortfall.by_sd


def terms_of_draws(shortfall: Shortfall, relevance: FloatArray) -> FloatArray:
    """Return terms (s, m) of the draws of an objective whose mean is 1, and whose error is the relative one of EHVI.

    They are the improvements with this objective under one draw and the others averaged, over their mean.
    """
    psi = np.exp(shortfall.log - log_mean_exp(shortfall.log))
    return np.asarray(np.einsum("mk,smk->sm", relevance, psi))
