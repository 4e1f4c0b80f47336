"""Re-weighted kernels from features and moments.

theta_k(a) theta_k(b) = theta_k(a o b) for monomials, so the re-weighted kernel of a power series is diagonal in them:

    K^E(u, u') = sum_k w_k phi_k(u) phi_k(u'),  w_k = kappa_|k| |k|! m_k^2,  m_k = sum_i alpha_i theta_k(u_i),

with phi_k(u) = theta_k(u) / prod_c sqrt(k_c! sigma_c^k_c), see :meth:`PowerSeries.features`. Moments are summed before
they are squared, so the double sum's cancellation does not occur, and omitting features leaves the kernel positive
semi-definite.

Symbols
-------
N : points with weights alpha; R : features; n : points; d : columns; P : prefixes of multi-indices.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slayr_py.kernels.learned.power_series import PowerSeries
from slayr_py.space import FloatArray

_BLOCK = 2**19  # doubles of features computed at once: they stay in the cache until they are multiplied


class Level(NamedTuple):
    """The distinct prefixes of all multi-indices with one column more than the level before.

    Attributes
    ----------
    parent : (P,) int
        Row of the level before.
    order : (P,) int
        Order of this level's column.
    """

    parent: NDArray[np.intp]
    order: NDArray[np.intp]


class PrefixGroup(NamedTuple):
    """Prefixes whose last column has the same orders, ``least`` to ``most``; ``start`` is their first feature."""

    prefixes: slice
    least: int
    most: int
    start: int

    @property
    def features(self) -> slice:
        """Rows of the group's features."""
        n_prefixes = self.prefixes.stop - self.prefixes.start
        return slice(self.start, self.start + n_prefixes * (self.most - self.least + 1))


class MomentFeatures:
    """Features of a re-weighted kernel.

    The orders of the last column are kept as ranges: features that were omitted inside one have weight 0. Most of the
    work is then one product of arrays for each of a few ranges.

    Parameters
    ----------
    series : PowerSeries
    indices : (R, d) int
        Distinct multi-indices.
    weights : (R,) float64
        w_k >= 0.

    Attributes
    ----------
    indices : (R', d) int
        Multi-indices of all features, R' >= R.
    weights : (R',) float64
    name : str
        "features", the name of the engine.
    """

    name: ClassVar[str] = "features"

    def __init__(self, series: PowerSeries, indices: NDArray[np.intp], weights: FloatArray) -> None:
        self.series = series
        # The column with most orders comes last, since few prefixes save multiplications.
        self._columns = np.argsort(indices.max(axis=0, initial=0), kind="stable")
        rows = np.lexsort(indices[:, self._columns[::-1]].T)
        indices = indices[rows][:, self._columns]
        self._levels, prefix = _levels(indices[:, :-1])
        first = np.flatnonzero(np.diff(prefix, prepend=-1))
        least = np.minimum.reduceat(indices[:, -1], first)
        most = np.maximum.reduceat(indices[:, -1], first)
        by_range = np.lexsort((least, most))
        if self._levels:
            self._levels[-1] = Level(*(array[by_range] for array in self._levels[-1]))
        self._groups = _groups(least[by_range], most[by_range])
        lengths = (most - least + 1)[by_range]
        starts = np.empty_like(least)
        starts[by_range] = np.cumsum(lengths) - lengths
        self.weights = np.zeros(self._groups[-1].features.stop)
        self.weights[starts[prefix] + indices[:, -1] - least[prefix]] = weights[rows]
        self.indices = np.empty((len(self), indices.shape[1]), dtype=np.intp)
        self.indices[:, self._columns[:-1]] = np.repeat(indices[first[by_range], :-1], lengths, axis=0)
        self.indices[:, self._columns[-1]] = np.concatenate(
            [np.arange(low, high + 1) for low, high in zip(least[by_range], most[by_range], strict=True)]
        )
        self._last: tuple[bytes, FloatArray] = (b"", np.empty((len(self), 0)))

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def bounded(self) -> bool:
        """Whether features were omitted that matter beyond the radius."""
        return self.series.degree is None

    def features(self, u: FloatArray, slope: int | None = None) -> FloatArray:
        """Return phi_k(u), (R, n), or its derivative by the column ``slope``."""
        values = np.ones((1, len(u)))
        for level, column in zip(self._levels, self._columns[:-1], strict=True):
            table = self._table(u, column, int(level.order.max()) + 1, slope)
            values = np.take(values, level.parent, axis=0)
            values *= np.take(table, level.order, axis=0)
        table = self._table(u, self._columns[-1], max(group.most for group in self._groups) + 1, slope)
        features = np.empty((len(self), len(u)))
        for group in self._groups:
            orders = table[group.least : group.most + 1]
            n_prefixes = group.prefixes.stop - group.prefixes.start
            out = features[group.features].reshape(n_prefixes, len(orders), len(u))
            np.multiply(values[group.prefixes, None, :], orders, out=out)
        return features

    def _table(self, u: FloatArray, column: int, size: int, slope: int | None) -> FloatArray:
        x = np.ascontiguousarray(u[:, column])
        table = self.series.features(x, column, size)
        return self.series.feature_slopes(table, x, column) if column == slope else table

    def covariance(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return K^E, (n_a, n_b)."""
        if len(a) < len(b):
            return self.covariance(b, a).T
        weighted = self._weighted(b)
        k = np.empty((len(a), len(b)))
        for rows in self._blocks(len(a)):
            np.matmul(self.features(a[rows]).T, weighted, out=k[rows])
        return k

    def covariance_and_variances(self, a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return K^E(a, b) (n_a, n_b), K^E(a, a) (n_a,) and K^E(b, b) (n_b,); the features are computed once."""
        if len(a) < len(b):
            k, own_b, own_a = self.covariance_and_variances(b, a)
            return k.T, own_a, own_b
        weighted = self._weighted(b)
        k = np.empty((len(a), len(b)))
        own_a = np.empty(len(a))
        for rows in self._blocks(len(a)):
            features = self.features(a[rows])
            np.matmul(features.T, weighted, out=k[rows])
            own_a[rows] = self.weights @ np.square(features, out=features)
        return k, own_a, self.variance(b)

    def variance(self, a: FloatArray) -> FloatArray:
        """Return K^E(a, a), (n_a,)."""
        k = np.empty(len(a))
        for rows in self._blocks(len(a)):
            k[rows] = self.weights @ np.square(self.features(a[rows]))
        return k

    def covariance_gradient(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return the derivatives of K^E(a, b) by a, (n_a, n_b, d)."""
        weighted = self._weighted(b)
        gradient = np.empty((len(a), len(b), a.shape[1]))
        for rows in self._blocks(len(a)):
            for c in range(a.shape[1]):
                gradient[rows, :, c] = self.features(a[rows], slope=c).T @ weighted
        return gradient

    def variance_gradient(self, a: FloatArray) -> FloatArray:
        """Return the derivatives of K^E(a, a) by a, (n_a, d)."""
        gradient = np.empty(a.shape)
        for rows in self._blocks(len(a)):
            weighted = self.features(a[rows]) * self.weights[:, None]
            for c in range(a.shape[1]):
                gradient[rows, c] = 2 * np.einsum("ij,ij->j", weighted, self.features(a[rows], slope=c))
        return gradient

    def _weighted(self, b: FloatArray) -> FloatArray:
        """Return w_k phi_k(b), (R, n_b); the last result is stored, since a fit repeats its observations."""
        key = b.tobytes()
        last = self._last
        if last[0] != key or last[1].shape[1] != len(b):
            self._last = last = (key, self.features(b) * self.weights[:, None])
        return last[1]

    def _blocks(self, n: int) -> list[slice]:
        step = max(_BLOCK // max(len(self), 1), 16)
        return [slice(i, min(i + step, n)) for i in range(0, n, step)]


def _levels(indices: NDArray[np.intp]) -> tuple[list[Level], NDArray[np.intp]]:
    """Return the tree of prefixes of sorted multi-indices, and the row in its last level of each of them."""
    levels = []
    row = np.zeros(len(indices), dtype=np.intp)
    for order in indices.T:
        new = np.ones(len(indices), dtype=np.bool_)
        new[1:] = (np.diff(row) != 0) | (np.diff(order) != 0)
        levels.append(Level(row[new], order[new]))
        row = np.cumsum(new) - 1
    return levels, row


def _groups(least: NDArray[np.intp], most: NDArray[np.intp]) -> list[PrefixGroup]:
    """Return runs of prefixes with equal ranges."""
    ends = np.append(np.flatnonzero((np.diff(least) != 0) | (np.diff(most) != 0)) + 1, len(least))
    groups: list[PrefixGroup] = []
    for end in ends.tolist():
        begin = groups[-1].prefixes.stop if groups else 0
        start = groups[-1].features.stop if groups else 0
        groups.append(PrefixGroup(slice(begin, end), int(least[begin]), int(most[begin]), start))
    return groups
