r"""The probability that a value is new, where an objective has exactly the same value in regions.

Tables that return the value of the nearest row, rounding and thresholds inside an objective make it constant in
regions. The model is smooth: it expects an improvement between two points with the best value, and just beyond them,
and every evaluation there returns the same value again. Whether earlier evaluations repeated a value tells how wide
the plateaus are. At the distance d from the nearest point that was observed before, a value is repeated with
probability

    s exp(-(d / w)^2),   s ~ Beta(5, 1), log w uniform,

independently of others. Distances are Euclidean, of the real parameters in unit values, between points with equal
levels and active parameters; other points are infinitely far away. The share s and the width w have a posterior for
each value, from the evaluations whose nearest point had it. All other evaluations count as a few, so that plateaus are
alike as long as little is known about one. The prior says that beside a point its value is mostly repeated.

The criterion is multiplied by the probability of a new value to the power 1 + r, if there are plateaus. r is the number
of repetitions of the best value in a row at the end, of those with the values that the search has fixed: they say that
the posterior is too sure of new values where the criterion is large. Repetitions of worse values do not: the factor
itself leads to the corners of a space, and the more of them repeat the worst value, the less would count where an
improvement is expected.

Values may also repeat by chance, such as accuracies of few examples; then the nearest point has the repeated value no
more often than any other point. So plateaus are assumed only if the Bayes factor of `_evidence` for them is above 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import betaln

from slayr_py.acquisition.identity import branch_rows
from slayr_py.errors import DataError
from slayr_py.space import Encoded, FloatArray

_SHARES, _WIDTHS = (a.ravel() for a in np.meshgrid(np.linspace(0.05, 1.0, 20), np.geomspace(1e-3, 10.0, 50)))
_LOG_PRIOR = 4.0 * np.log(_SHARES)  # of shares and widths, but for a constant
_OTHERS = 3.0  # evaluations as which all those near other values count
_DISTANCES = np.geomspace(1e-4, 10.0, 200)  # knots of the tabulated factor; beyond the ends it is constant
_SMALLEST = 1e-12  # probability of a new value


class Outcomes(NamedTuple):
    """What n evaluations returned, in their order."""

    rows: FloatArray
    """Shape (n,) or (n, k), such as the value of each and whether it is feasible; repetitions are equal rows."""

    leading: NDArray[np.bool_]
    """Shape (n,): which of them count as repetitions in a row, such as those with the best value."""

    compared: NDArray[np.bool_]
    """Shape (n,): which of them end a row unless they count; the others, as those of other contexts, do neither."""


@dataclass(frozen=True, eq=False)
class Plateaus:
    """The factor of the criterion: the posterior probability of a new value, to the power 1 + r.

    Attributes
    ----------
    train : Encoded
        n configurations in the order of their evaluation.
    log_new : (n, 200) float64
        Logarithms of the factor at the distances ``_DISTANCES`` from each of them.
    """

    train: Encoded
    log_new: FloatArray

    @classmethod
    def of(cls, train: Encoded, outcomes: Outcomes) -> Plateaus | None:
        """Return the factor given the outcomes; None if repetitions are none, or probably by chance.

        The value of an evaluation is its whole row: it is repeated where all k numbers are equal.

        Raises
        ------
        DataError
            If there are not n rows, or for anything but `Outcomes`.
        """
        if not isinstance(outcomes, Outcomes):
            raise DataError(
                f"outcomes is {outcomes!r:.200}; give slayr_py.acquisition.Outcomes(rows, leading, compared)"
            )
        n = len(train)
        for name, array in outcomes._asdict().items():
            if len(array) != n:
                raise DataError(f"{name} of outcomes has {len(array)} rows; give one for each of the {n} observations")
        distinct, value_of = np.unique(outcomes.rows.reshape(n, -1), axis=0, return_inverse=True)
        if len(distinct) == n:
            return None
        value_of = value_of.ravel()
        earlier = np.tril(np.ones((n, n), dtype=np.bool_), -1)
        before = np.where(earlier, _squared_distances(train, train), np.inf)
        equal = value_of[:, None] == value_of
        if _evidence(equal, before) <= 0:
            return None
        nearest = before.min(axis=1)
        rows = np.flatnonzero(np.isfinite(nearest))
        p = _repetition(np.sqrt(nearest[rows]))
        repeats = (earlier & equal).any(axis=1)
        log_likelihood = np.where(repeats[rows, None], np.log(p), np.log1p(-p))
        value_near = value_of[before.argmin(axis=1)[rows]]
        posteriors = []
        for value in range(len(distinct)):
            own = value_near == value
            others = log_likelihood[~own].sum(axis=0) * min(1.0, _OTHERS / max(np.sum(~own), 1))
            posteriors.append(_posterior(log_likelihood[own].sum(axis=0) + others))
        repeated = np.stack(posteriors) @ _repetition(_DISTANCES).T
        repeats_compared = (earlier & equal & outcomes.compared).any(axis=1)
        counts = (repeats_compared & outcomes.leading)[outcomes.compared]
        in_a_row = len(counts) - np.flatnonzero(np.append(True, ~counts))[-1]
        return cls(train, (1 + in_a_row) * np.log(np.maximum(1 - repeated, _SMALLEST))[value_of])

    def values(self, encoded: Encoded) -> FloatArray:
        """Return the logarithm of the factor (m,) at configurations."""
        return self.values_and_gradients(encoded)[0]

    def values_and_gradients(self, encoded: Encoded) -> tuple[FloatArray, FloatArray]:
        """Return these logarithms (m,), and their derivatives by the real inputs (m, D_real).

        The logarithms are linear in log d between two of the distances.
        """
        squared = _squared_distances(encoded, self.train)
        nearest = squared.argmin(axis=1)
        squared = np.take_along_axis(squared, nearest[:, None], axis=1)[:, 0]
        knots = np.log(_DISTANCES)
        log_distance = 0.5 * np.log(np.clip(squared, _DISTANCES[0] ** 2, _DISTANCES[-1] ** 2))
        left = np.clip(np.searchsorted(knots, log_distance, side="right") - 1, 0, len(knots) - 2)
        lower, upper = self.log_new[nearest, left], self.log_new[nearest, left + 1]
        slope = (upper - lower) / (knots[left + 1] - knots[left])
        values = np.where(np.isfinite(squared), lower + slope * (log_distance - knots[left]), 0.0)
        inside = (squared > _DISTANCES[0] ** 2) & (squared < _DISTANCES[-1] ** 2)
        by_square = np.divide(slope, squared, out=np.zeros_like(slope), where=inside)
        return values, by_square[:, None] * (encoded.real - self.train.real[nearest])


def _evidence(equal: NDArray[np.bool_], before: FloatArray) -> float:
    """Return the logarithm of the Bayes factor of plateaus against repetitions by chance.

    Under plateaus the nearest earlier point has the repeated value with a probability that is uniform in (0, 1); by
    chance, with the share of the earlier points that have this value. If it has the value less often, the result is 0.

    Parameters
    ----------
    equal : (n, n) bool
        Which values are equal.
    before : (n, n) float64
        Squared distances of each point from earlier ones; infinite for others.
    """
    comparable = np.isfinite(before)
    shares = np.sum(equal & comparable, axis=1) / np.maximum(comparable.sum(axis=1), 1)
    repeats = (shares > 0) & (shares < 1)
    shares = shares[repeats]
    nearest = equal[np.arange(len(equal)), before.argmin(axis=1)][repeats]
    if nearest.sum() <= shares.sum():
        return 0.0
    by_chance = np.log(np.where(nearest, shares, 1 - shares)).sum()
    return float(betaln(1 + nearest.sum(), 1 + np.sum(~nearest)) - by_chance)


def _repetition(distances: FloatArray) -> FloatArray:
    """Return probabilities (n, k) of a repetition at distances (n,) for each share and width."""
    return np.clip(_SHARES * np.exp(-np.square(distances[:, None] / _WIDTHS)), _SMALLEST, 1 - _SMALLEST)


def _posterior(log_likelihood: FloatArray) -> FloatArray:
    log_posterior = log_likelihood + _LOG_PRIOR
    weights = np.exp(log_posterior - log_posterior.max())
    return np.asarray(weights / weights.sum())


def _squared_distances(a: Encoded, b: Encoded) -> FloatArray:
    """Return squared distances (n_a, n_b), infinite between points with different levels or active parameters."""
    differ = cdist(branch_rows(a), branch_rows(b), "hamming") > 0
    return np.where(differ, np.inf, cdist(a.real, b.real, "sqeuclidean"))
