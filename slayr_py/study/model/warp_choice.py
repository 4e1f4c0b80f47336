"""The warp of the only, exact objective of a study: "log", or "best" if its values differ by orders of magnitude.

Either warp is a transformation with one parameter, see `slayr_py.inference.warp`. From time to time both are fitted to
the values so far, at their modes, and "best" is chosen if it predicts these values much better, each from all others.
The best value and those that equal it are left out: it is the pivot of "best", whose density there grows with the
strength of the warp whatever the values are. Values that nearly equal it gain much for the same reason. So no value
counts much, and if the worse half of the values loses much, "best" only describes that many values are near the best.
"""

from __future__ import annotations

import numpy as np
from optuna import Study

from slayr_py.errors import InferenceError
from slayr_py.inference import AutoWarp, FitOptions, GaussianProcess
from slayr_py.space import FloatArray
from slayr_py.study.model.fit_cache import FitCache, fit_key, fit_to
from slayr_py.study.storage.trials import Observations, observations

EVIDENCE = 10.0  # measured in docs/decisions/warp.md
"""Sum of the differences of leave-one-out log densities above which "best" is chosen."""

LARGEST_GAIN = 3.0
"""Largest difference of the leave-one-out log densities of a value that counts; chosen by hand, as the next two."""

_LOST = 0.5  # most share of the sum that the worse half of the values may lose
_EQUAL = (1e-9, 1e-12)  # distances of equal values, relative to the best value and to the largest distance

_DUE = (11, 16, 24, 36, 54, 81)
"""Numbers of observations at which the warp is chosen."""

AT_MODE = FitOptions(method="map", retries=0, pointwise=True)
"""Options of fits whose leave-one-out log densities are compared."""


def with_chosen_warp(study: Study, gp: GaussianProcess, observed: Observations, fits: FitCache) -> GaussianProcess:
    """Return the Gaussian process of one kernel with the warp that the values choose.

    The first 11, 16, 24, ... observations by trial number decide, of these numbers the largest there is, so that
    suggestions until the next one have the same warp, also those of another process, unless an earlier trial is told
    between them. If values are far, they are compressed among these alone. With fewer, or if a fit fails, it is "log".
    """
    gp = gp.with_warp("log")
    n = max((number for number in _DUE if number <= len(observed.y)), default=0)
    if n == 0:
        return gp
    # Later values would change how far ones among these are compressed.
    first = observations(study, gp.encoder.space, observed.numbers[:n])

    def log_densities(warp: AutoWarp) -> FloatArray:
        key = fit_key(study, f"warp {warp}", first, [first.y], 1, AT_MODE)
        posterior = fits.get(key, lambda: fit_to(gp.with_warp(warp), first, AT_MODE))
        return posterior.parts[0].leave_one_out.elpd

    try:
        gains = log_densities("best") - log_densities("log")
    except InferenceError:
        return gp
    gain = _evidence(-first.y if observed.maximize else first.y, gains)
    if not gain > EVIDENCE:
        return gp
    note = f"warp 'best': the first {n} values have a leave-one-out log density that is {gain:.1f} above that of 'log'"
    return gp.with_warp("best", note)


def _evidence(y: FloatArray, gains: FloatArray) -> float:
    """Return the sum of the gains (n,) that count, of values (n,) of which small ones are good; 0 if bad ones lose."""
    distances = y - y.min()
    others = distances > max(_EQUAL[0] * abs(y.min()), _EQUAL[1] * distances.max())
    counted = np.clip(gains[others], -LARGEST_GAIN, LARGEST_GAIN)
    if not len(counted):
        return 0.0
    total = float(counted.sum())
    worse = float(gains[others][distances[others] >= np.median(distances[others])].sum())
    return total if worse >= -_LOST * total else 0.0
