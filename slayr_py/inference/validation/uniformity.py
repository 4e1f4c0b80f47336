r"""Exact test that ranks are uniform, from their empirical distribution function, and its simultaneous band.

Symbols
-------
N : number of ranks, each from 0 to L
c_i : number of ranks below i, for i = 1..L. Under uniformity c_i ~ Binomial(N, i / (L + 1)). The c_i are a Markov chain
    with c_i - c_{i-1} ~ Binomial(N - c_{i-1}, 1 / (L + 2 - i)).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln
from scipy.stats import binom

from slayr_py.errors import DataError
from slayr_py.space import FloatArray


def ecdf_p_value(ranks: ArrayLike, draws: int) -> float:
    """Return the p-value of the hypothesis that ranks are uniform on 0..draws.

    The statistic is the smallest two-sided binomial tail probability of all c_i. It is the level of the simultaneous
    band that the empirical distribution function touches. Its distribution is computed exactly.

    References
    ----------
    T. Säilynoja, P.-C. Bürkner, A. Vehtari (2022). Graphical test for discrete uniformity and its applications in
    goodness-of-fit evaluation and multiple sample comparison. Statistics and Computing 32:32. Section 2.2 for the
    statistic, algorithm 1 for its distribution.
    """
    values = np.asarray(ranks)
    if values.ndim != 1 or not len(values) or np.any((values < 0) | (values > draws)):
        raise DataError(f"ranks are {values!r:.200}; give integers from 0 to {draws}")
    below = np.cumsum(np.bincount(values, minlength=draws + 1))[:-1]
    levels = _levels(len(values), draws)
    return _reach_probability(levels, float(np.min(levels[np.arange(draws), below])))


def ecdf_band(replications: int, draws: int, probability: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """Return the simultaneous band of the empirical distribution function of uniform ranks.

    Returns
    -------
    lower, upper : (draws,) float64
        Smallest and largest share of ranks below i = 1..draws for which :func:`ecdf_p_value` exceeds
        1 - ``probability``.
    """
    levels = _levels(replications, draws)
    inside = 0.0
    outside = 1 - probability  # the simultaneous level is at least the level of a single c_i
    while outside - inside > 1e-6 * outside:
        middle = (inside + outside) / 2
        inside, outside = (
            (middle, outside) if _reach_probability(levels, middle) <= 1 - probability else (inside, middle)
        )
    allowed = levels > inside
    return allowed.argmax(axis=1) / replications, 1 - allowed[:, ::-1].argmax(axis=1) / replications


def _levels(n: int, draws: int) -> FloatArray:
    """Return the two-sided tail probability of every value 0..n of every c_i, (draws, n + 1)."""
    share = np.arange(1, draws + 1)[:, None] / (draws + 1)
    counts = np.arange(n + 1)
    return np.asarray(2 * np.minimum(binom.cdf(counts, n, share), binom.sf(counts - 1, n, share)))


def _reach_probability(levels: FloatArray, level: float) -> float:
    """Return the probability that uniform ranks have a c_i with a tail probability of at most ``level``."""
    draws = levels.shape[0]
    n = levels.shape[1] - 1
    log_factorial = gammaln(np.arange(n + 1) + 1)
    before = np.zeros(1, dtype=np.intp)
    weight = np.ones(1)
    for i in range(1, draws + 1):
        now = np.flatnonzero(levels[i - 1] > level)
        left = n - before[:, None]
        step = now[None, :] - before[:, None]
        share = 1 / (draws + 2 - i)
        possible = (step >= 0) & (step <= left)
        step = np.where(possible, step, 0)
        log_mass = log_factorial[left] - log_factorial[step] - log_factorial[left - step]
        log_mass += step * np.log(share) + (left - step) * np.log1p(-share)
        before = now
        weight = weight @ np.where(possible, np.exp(log_mass), 0.0)
    return float(np.clip(1 - weight.sum(), 0.0, 1.0))
