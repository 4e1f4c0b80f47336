"""Predictions from the draws of several kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from slayr_py.inference.log_sum_exp import log_sum_exp
from slayr_py.inference.prediction.comparison import FrontGradient
from slayr_py.inference.prediction.distribution import NO_WARP, Latent, common_pivot
from slayr_py.inference.prediction.draws import counts, evenly
from slayr_py.inference.prediction.kernel_predictor import KernelPredictor
from slayr_py.inference.prediction.predictor import Moments, Predictor
from slayr_py.space import Encoded, FloatArray


class MixturePredictor(Predictor):
    """Predictors of several kernels, whose draws are concatenated along the leading axis.

    Parameters
    ----------
    parts : sequence of KernelPredictor
        Predictors for the same observations.
    rows : sequence of (s_k,) int
        Draws of each part that are used, in the order of the result. Rows repeat if a part has fewer draws than its
        weight requires; the factor of a repeated draw is computed once.
    """

    def __init__(self, parts: Sequence[KernelPredictor], rows: Sequence[NDArray[np.intp]]) -> None:
        self.parts = tuple(parts)
        self.rows = tuple(rows)
        self.train = self.parts[0].train

    @classmethod
    def of(
        cls, predictor_of: Sequence[Callable[[NDArray[np.intp]], KernelPredictor]], rows: Sequence[NDArray[np.intp]]
    ) -> Self:
        """Compute the predictors of the distinct rows of each part; omit parts without rows."""
        parts = []
        places = []
        for predict, part_rows in zip(predictor_of, rows, strict=True):
            if len(part_rows):
                distinct, place = np.unique(part_rows, return_inverse=True)
                parts.append(predict(distinct))
                places.append(place)
        return cls(parts, places)

    @property
    @override
    def n_draws(self) -> int:
        return sum(map(len, self.rows))

    @override
    def subset(self, n_chains: int, n_draws: int) -> Self:
        # The parts keep their proportions. The draws of a part follow its chains, so n_chains is not needed.
        if n_draws >= self.n_draws:
            return self
        shares = np.array([len(rows) / self.n_draws for rows in self.rows])
        chosen = [rows[evenly(len(rows), k)] for rows, k in zip(self.rows, counts(shares, n_draws, 0.5), strict=True)]
        return self.of([part.at for part in self.parts], chosen)

    @override
    def for_search(self) -> Self:
        return type(self)([part.for_search() for part in self.parts], self.rows)

    @override
    def with_pending(self, pending: Encoded, *, exact: bool = False) -> Self:
        return type(self)([part.with_pending(pending, exact=exact) for part in self.parts], self.rows)

    @property
    @override
    def warp(self) -> FloatArray | None:
        warps = [part.warp for part in self.parts]
        if all(warp is None for warp in warps):
            return None
        return self._join(
            [
                np.full((part.n_draws, 1), NO_WARP) if warp is None else warp
                for part, warp in zip(self.parts, warps, strict=True)
            ]
        )

    @property
    @override
    def pivot(self) -> float | None:
        return common_pivot([(part.warp is not None, part.pivot) for part in self.parts])

    @property
    @override
    def noise(self) -> FloatArray:
        return self._join([part.noise for part in self.parts])

    @override
    def with_error(self, error: float | None) -> Self:
        return type(self)([part.with_error(error) for part in self.parts], self.rows)

    @override
    def compared(self, recommended: Encoded | None, believed: Encoded | None = None) -> Self:
        return type(self)([part.compared(recommended, believed) for part in self.parts], self.rows)

    @override
    def beside(self, front: Encoded, values: FloatArray) -> Self:
        return type(self)([part.beside(front, values) for part in self.parts], self.rows)

    @override
    def front_moments(self, new: Encoded) -> tuple[FloatArray, FloatArray]:
        means, sds = zip(*(part.front_moments(new) for part in self.parts), strict=True)
        return self._join(means), self._join(sds)

    @override
    def front_moments_with_gradient(self, new: Encoded) -> tuple[FloatArray, FloatArray, FrontGradient]:
        means, sds, gradients = zip(*(part.front_moments_with_gradient(new) for part in self.parts), strict=True)

        def gradient(by_mean: FloatArray, by_sd: FloatArray) -> FloatArray:
            ends = np.cumsum([len(rows) for rows in self.rows])[:-1]
            shares = zip(gradients, means, self.rows, np.split(by_mean, ends), np.split(by_sd, ends), strict=True)
            total = [of_part(*(_added(each, rows, len(mean)) for each in by)) for of_part, mean, rows, *by in shares]
            return np.asarray(np.sum(total, axis=0))

        return self._join(means), self._join(sds), gradient

    @property
    @override
    def is_compared(self) -> bool:
        return self.parts[0].is_compared

    @override
    def log_doubts(self, recommended: Encoded, others: Encoded) -> FloatArray:
        shares = [len(rows) / self.n_draws for rows in self.rows]
        doubts = [part.log_doubts(recommended, others) for part in self.parts]
        return log_sum_exp(np.array(doubts) + np.log(shares)[:, None])

    @override
    def linearised(self, best: float, believed: Encoded | None = None) -> Self:
        return type(self)([part.linearised(best, believed) for part in self.parts], self.rows)

    @property
    @override
    def incumbent(self) -> FloatArray | None:
        known = [part.incumbent for part in self.parts if part.incumbent is not None]
        return self._join(known) if known else None

    @override
    def moments(self, new: Encoded) -> tuple[FloatArray, FloatArray]:
        means, variances = zip(*(part.moments(new) for part in self.parts), strict=True)
        return self._join(means), self._join(variances)

    @override
    def moments_with_gradient(self, new: Encoded) -> Moments:
        moments = [part.moments_with_gradient(new) for part in self.parts]
        return Moments(*(self._join(arrays) for arrays in zip(*moments, strict=True)))

    @override
    def log_success(self, new: Encoded) -> FloatArray:
        return self._join([part.log_success(new) for part in self.parts])

    @override
    def log_success_with_gradient(self, new: Encoded) -> tuple[FloatArray, FloatArray]:
        values, gradients = zip(*(part.log_success_with_gradient(new) for part in self.parts), strict=True)
        return self._join(values), self._join(gradients)

    @override
    def latent(self, new: Encoded, y_mean: float, y_sd: float) -> Latent:
        return Latent.concatenated([part.latent(new, y_mean, y_sd) for part in self.parts], self.rows)

    def _join(self, arrays: Sequence[FloatArray]) -> FloatArray:
        return np.concatenate([array[rows] for array, rows in zip(arrays, self.rows, strict=True)])


def _added(values: FloatArray, rows: NDArray[np.intp], n: int) -> FloatArray:
    """Return the sums (n, ...) of values of the same row."""
    total = np.zeros((n, *values.shape[1:]))
    np.add.at(total, rows, values)
    return total
