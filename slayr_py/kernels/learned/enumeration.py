"""Enumerate the features of a re-weighted kernel that contribute within a box.

Symbols
-------
N : points with weights alpha; R : features; d : columns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from slayr_py.kernels.learned.moments import MomentFeatures
from slayr_py.kernels.learned.power_series import PowerSeries
from slayr_py.space import FloatArray

MOST_FEATURES = 20_000
"""Most features with which a kernel is a product of matrices of features, not a double sum; chosen by hand."""

_MOST_SUMS = 2**24  # doubles of partial moments during the enumeration
_MOST_ORDERS = 10_000  # largest mean order of a column; higher orders need too many features
# Of the largest contribution, below which features are omitted: tried in turn.
_SHARES = tuple(10.0**-k for k in (11, 12, 13, 14, 15, 16, 17, 18, 20, 22, 24, 27, 30, 34, 38, 43, 48, 54, 60))
_GROWTH = 1.3  # least number of features relative to the set before

_Features = tuple[NDArray[np.intp], FloatArray, FloatArray]


def moment_features(
    series: PowerSeries,
    points: FloatArray,
    alpha: FloatArray,
    radius: FloatArray,
    limit: int,
    accuracy: float,
    tempering: float = 1.0,
) -> MomentFeatures | None:
    """Enumerate the features of a re-weighted kernel.

    All features of a finite series are kept. Features of an infinite series are dropped if their contribution, the
    largest w_k phi_k(u)^2 within the radius, is below a share of the largest one. The share decreases until the
    variances change by less than ``accuracy``. Short length-scales need tiny shares, since K^E(u, u) then varies by
    many orders of magnitude over the box.

    Parameters
    ----------
    points : (N, d) float64
    alpha : (N,) float64
    radius : (d,) float64
        Largest |u_c| at which the kernel will be evaluated.
    limit : int
        Largest number of features.
    accuracy : float
        Relative accuracy of K^E(u, u).
    tempering : float
        The weights are kappa_|k| |k|! |m_k|^(2 tempering).

    Returns
    -------
    MomentFeatures or None
        None if there are more than ``limit`` features.
    """
    orders = np.delete(np.square(radius) / series.sigma, series.binary)
    if series.degree is None and orders.max(initial=0.0) > _MOST_ORDERS:
        return None
    search = _Enumeration(series, points, alpha, radius, tempering)
    most = min(8 * limit, _MOST_SUMS // len(points))
    if series.degree is not None:
        return _limit(series, search.enumerate(0.0, series.degree, most), 0.0, limit)
    few = [low for total in (1, 2) if (low := search.enumerate(0.0, total, most)) is not None]
    largest = max((contribution.max() for _, _, contribution in few), default=0.0)
    reference = _reference_points(radius)
    reference[:, series.binary] = np.round(reference[:, series.binary])
    before: MomentFeatures | None = None
    variance = np.full(len(reference), np.inf)
    for share in _SHARES:
        features = _limit(series, search.enumerate(share * largest, None, most), share, 2 * limit)
        if features is None:
            return None
        if before is not None and len(features) < _GROWTH * len(before) and share != _SHARES[-1]:
            continue  # a few more features do not show that the others are negligible
        latest = features.variance(reference)
        if before is not None and np.all(np.abs(latest - variance) <= accuracy * latest):
            return before if len(before) <= limit else None
        before = features
        variance = latest
    return None


def _limit(series: PowerSeries, features: _Features | None, share: float, limit: int) -> MomentFeatures | None:
    """Return the features with more than a share of the largest contribution; None if there are too many or none."""
    if features is None:
        return None
    indices, weights, contribution = features
    keep = (contribution > 0) & (contribution >= share * contribution.max(initial=0.0))
    return MomentFeatures(series, indices[keep], weights[keep]) if 0 < keep.sum() <= limit else None


def _reference_points(radius: FloatArray) -> FloatArray:
    """Return points at which variances are compared: inner ones, corners and faces of the box [0, radius].

    Variances are even in every coordinate.
    """
    d = len(radius)
    uniform = qmc.Sobol(d, scramble=True, rng=np.random.default_rng(0)).random_base2(7)
    return np.asarray(radius * np.vstack([uniform, np.round(uniform[:64]), np.zeros((1, d)), np.ones((1, d))]))


class _Enumeration:
    """Enumerate multi-indices column by column and omit prefixes whose features cannot contribute."""

    def __init__(
        self, series: PowerSeries, points: FloatArray, alpha: FloatArray, radius: FloatArray, tempering: float
    ) -> None:
        d = points.shape[1]
        self.series = series
        self.alpha = alpha
        self.power = 2 * tempering
        self.envelopes = [series.envelope(c, radius[c]) for c in range(d)]
        self.tables = [series.powers(points[:, c], c, len(self.envelopes[c])) for c in range(d)]
        # The largest factor by which a column can raise the bound of a prefix.
        most = [e * np.abs(t).max(axis=1) ** self.power for e, t in zip(self.envelopes, self.tables, strict=True)]
        self.growth = np.append(np.cumprod([m.max() for m in most][::-1])[::-1], 1.0)

    def enumerate(self, least: float, total: int | None, limit: float) -> _Features | None:
        """Return multi-indices (R, d) that may contribute more than ``least``, weights and contributions (R,).

        None if a level has more than ``limit`` prefixes.
        """
        sums = self.alpha[None]
        envelope = np.ones(1)
        indices = np.empty((1, 0), dtype=np.intp)
        for c, (table, columns_envelope) in enumerate(zip(self.tables, self.envelopes, strict=True)):
            degree = indices.sum(axis=1)[:, None] + np.arange(len(table))
            bound = np.abs(sums).sum(axis=1)[:, None] * np.abs(table).max(axis=1)
            bound = bound**self.power * envelope[:, None] * columns_envelope * self.growth[c + 1]
            parent, order = np.nonzero((bound >= least) & (degree <= (np.inf if total is None else total)))
            if len(parent) > 4 * limit:
                return None
            sums = sums[parent] * table[order]
            envelope = envelope[parent] * columns_envelope[order]
            indices = np.column_stack([indices[parent], order])
            bound = np.abs(sums).sum(axis=1) ** self.power * envelope * self.growth[c + 1]
            keep = bound >= least
            if keep.sum() > limit:
                return None
            sums = sums[keep]
            envelope = envelope[keep]
            indices = indices[keep]
        weights = np.abs(sums.sum(axis=1)) ** self.power * self.series.coefficients(indices.sum(axis=1))
        return indices, weights, weights * envelope
