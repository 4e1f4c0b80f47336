"""The warp of the only, exact objective of a study: "log", or "best" if its values differ by orders of magnitude.

Either warp is a transformation with one parameter, see `slayr_py.inference.warp`. From time to time both are fitted to
the values so far, at their modes, and "best" is chosen if it predicts these values much better, each from all others.
The best value is left out: it is the pivot of "best", whose density there grows with the strength of the warp whatever
the values are.
"""

from __future__ import annotations

import numpy as np
from optuna import Study

from slayr_py.errors import InferenceError
from slayr_py.inference import AutoWarp, FitOptions, GaussianProcess, Posterior
from slayr_py.study.model.fit_cache import FitCache, fit_key
from slayr_py.study.storage.trials import Observations, Results

EVIDENCE = 10.0  # measured in docs/decisions/warp.md
"""Difference of the sums of leave-one-out log densities above which "best" is chosen."""

_DUE = tuple(round(16 * 1.5**i) for i in range(-1, 8))
"""Numbers of observations at which the warp is chosen: 11, 16, 24, ..., 273. More values would change nothing."""

_OPTIONS = FitOptions(method="map", retries=0, pointwise=True)


def with_chosen_warp(study: Study, gp: GaussianProcess, observed: Observations, fits: FitCache) -> GaussianProcess:
    """Return the Gaussian process of one kernel with the warp that describes the first observations best.

    They are as many as were known when the warp was last chosen. So all suggestions until the next choice have the same
    warp, also those of another process. Without enough of them, or if a fit fails, the warp stays "log".
    """
    n = max((number for number in _DUE if number <= len(observed.y)), default=0)
    if n == 0:
        return gp
    first = Results(observed.numbers[:n], observed.configs[:n], observed.y[:n])
    best = np.argmin(-first.values if observed.maximize else first.values)

    def log_density(warp: AutoWarp) -> float:
        def fit() -> Posterior:
            model = gp.with_warp(warp, "")
            return model.fit(first.configs, first.values, options=_OPTIONS, maximize=observed.maximize)

        posterior = fits.get(fit_key(study, f"warp {warp}", first, [first.values], 1, _OPTIONS), fit)
        return float(np.delete(posterior.parts[0].leave_one_out.elpd, best).sum())

    try:
        gain = log_density("best") - log_density("log")
    except InferenceError:
        return gp
    if not gain > EVIDENCE:
        return gp
    note = f"warp 'best': the first {n} values have a leave-one-out log density that is {gain:.1f} above that of 'log'"
    return gp.with_warp("best", note)
