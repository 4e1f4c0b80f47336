"""Predictions from the draws of several posteriors, with the methods of `Predictor`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from slayr_py.inference.prediction import Latent, Moments, Prediction, Predictor
from slayr_py.inference.stacking.weights import counts, evenly
from slayr_py.space import Encoded, FloatArray

NO_WARP = 1e-12
"""Parameter of a warp that differs from the identity by less than rounding errors, for draws of a part without one."""


class StackedPredictor:
    """Predictors of several kernels as one: their draws are concatenated along the leading axis.

    Parameters
    ----------
    parts : sequence of Predictor
        All for the same observations.
    rows : sequence of (s_k,) int
        Draws of each part that are used, in the order of the result. A part with fewer draws than its weight asks for
        has each of them several times, with a single factor.
    """

    def __init__(self, parts: Sequence[Predictor], rows: Sequence[NDArray[np.intp]]) -> None:
        self.parts = tuple(parts)
        self.rows = tuple(rows)

    @classmethod
    def of(
        cls, predictor_of: Sequence[Callable[[NDArray[np.intp]], Predictor]], rows: Sequence[NDArray[np.intp]]
    ) -> StackedPredictor:
        """Make the predictors of the different rows of each part; parts without rows are left out."""
        parts = []
        places = []
        for make, wanted in zip(predictor_of, rows, strict=True):
            if len(wanted):
                different, place = np.unique(wanted, return_inverse=True)
                parts.append(make(different))
                places.append(place)
        return cls(parts, places)

    @property
    def train(self) -> Encoded:
        """The observed configurations, and the pending ones."""
        return self.parts[0].train

    @property
    def n_draws(self) -> int:
        """Number of draws of all parts, repeated ones included."""
        return sum(map(len, self.rows))

    def subset(self, n_chains: int, n_draws: int) -> StackedPredictor:
        """Return the predictor of at most ``n_draws`` of these draws, in the same proportions.

        The draws of a part are thinned evenly over its chains; ``n_chains`` is ignored.
        """
        if n_draws >= self.n_draws:
            return self
        shares = np.array([len(rows) / self.n_draws for rows in self.rows])
        kept = [rows[evenly(len(rows), k)] for rows, k in zip(self.rows, counts(shares, n_draws, 0.5), strict=True)]
        return self.of([part.at for part in self.parts], kept)

    def with_pending(self, pending: Encoded) -> StackedPredictor:
        """Condition every draw on its own mean at configurations that are still being evaluated."""
        return StackedPredictor([part.with_pending(pending) for part in self.parts], self.rows)

    def linearised(self, best: float) -> StackedPredictor:
        """Return a predictor of the function itself, on the standardised scale, near the value ``best``."""
        return StackedPredictor([part.linearised(best) for part in self.parts], self.rows)

    def moments(self, new: Encoded) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance at m new configurations, both (s, m)."""
        means, variances = zip(*(part.moments(new) for part in self.parts), strict=True)
        return self._joined(means), self._joined(variances)

    def moments_with_gradient(self, new: Encoded) -> Moments:
        """Return mean and variance (s, m), and their derivatives by the real inputs, (s, m, D_real)."""
        found = [part.moments_with_gradient(new) for part in self.parts]
        return Moments(*(self._joined(arrays) for arrays in zip(*found, strict=True)))

    def predict(self, new: Encoded, y_mean: float, y_sd: float) -> Prediction:
        """Return the prediction in units of the user, for targets standardised with ``y_mean`` and ``y_sd``."""
        return Prediction.from_latent(
            joined([part.predict(new, y_mean, y_sd).latent for part in self.parts], self.rows)
        )

    def _joined(self, arrays: Sequence[FloatArray]) -> FloatArray:
        return np.concatenate([array[rows] for array, rows in zip(arrays, self.rows, strict=True)])


def joined(latents: Sequence[Latent], rows: Sequence[NDArray[np.intp]]) -> Latent:
    """Return the latent function under the given rows of the draws of several posteriors of the same targets."""

    def pick(arrays: Sequence[FloatArray]) -> FloatArray:
        return np.concatenate([array[some] for array, some in zip(arrays, rows, strict=True)])

    warp = None
    if any(latent.warp is not None for latent in latents):
        warp = pick([np.full(len(one.mean), NO_WARP) if one.warp is None else one.warp for one in latents])
    return Latent(
        pick([latent.mean for latent in latents]),
        pick([latent.sd for latent in latents]),
        warp,
        latents[0].y_mean,
        latents[0].y_sd,
        pick([latent.sigma_n for latent in latents]),
    )
