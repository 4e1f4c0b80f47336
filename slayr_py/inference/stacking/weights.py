"""Weights of models from their leave-one-out densities, and numbers of draws in proportion to weights.

Symbols
-------
n, k : numbers of observations and of models.
p : (n, k) leave-one-out densities, each row divided by its largest.
"""

from __future__ import annotations

import numpy as np

from slayr_py.errors import DataError
from slayr_py.space import FloatArray

_BARRIERS = 10.0 ** -np.arange(10)  # the last one bounds the loss of the mean log score by 1e-9 k
_NEWTON_STEPS = 50  # for each barrier; only ends iterations that rounding keeps from converging
_CONVERGED = 1e-24  # squared Newton decrement
_NEGLIGIBLE = 1e-6  # smaller weights are set to 0, which the barrier does not reach


def stacking_weights(elpd: FloatArray) -> FloatArray:
    r"""Return the weights that maximise the leave-one-out log score of the mixture.

    They maximise sum_i log sum_k w_k exp(elpd_ik) over the simplex (Yao, Vehtari, Simpson & Gelman 2018, eq. 1.6). The
    problem is concave. The objective is linear in log |w|, so the multiplier of the constraint sum(w) = 1 is n, and the
    weights maximise mean(log(p w)) - sum(w) over all w >= 0. Newton's method with a logarithmic barrier needs about 30
    steps. Equal models get equal weights.

    Parameters
    ----------
    elpd : (n, k) float64
        Leave-one-out log densities of n observations under k models.

    Returns
    -------
    (k,) float64
        Their sum is 1; weights below 1e-6 are 0.

    Raises
    ------
    DataError
        If the densities are not a table of finite numbers with at least one row and one column.
    """
    elpd = np.asarray(elpd, dtype=np.float64)
    if elpd.ndim != 2 or not elpd.size or not np.all(np.isfinite(elpd)):
        raise DataError(
            f"leave-one-out densities must be finite, with a row for each observation and a column for each model; "
            f"got shape {elpd.shape} with {np.sum(~np.isfinite(elpd))} values that are not finite"
        )
    p = np.exp(elpd - elpd.max(axis=1, keepdims=True))
    w = np.full(p.shape[1], 1 / p.shape[1])
    for barrier in _BARRIERS:
        w = _maximise(p, w, barrier)
    w = np.where(w < _NEGLIGIBLE, 0.0, w)
    return np.asarray(w / w.sum())


def _maximise(p: FloatArray, w: FloatArray, barrier: float) -> FloatArray:
    """Maximise mean(log(p w)) - sum(w) + barrier sum(log w) by Newton's method from w."""

    def objective(at: FloatArray) -> float:
        return float(np.mean(np.log(p @ at)) - at.sum() + barrier * np.log(at).sum())

    value = objective(w)
    for _ in range(_NEWTON_STEPS):
        ratio = p / (p @ w)[:, None]
        gradient = ratio.mean(axis=0) - 1 + barrier / w
        step = np.linalg.solve(ratio.T @ ratio / len(p) + np.diag(barrier / np.square(w)), gradient)
        if gradient @ step < _CONVERGED:
            break
        # Limit the step to the interior, then halve it until the objective grows.
        length = min(1.0, 0.99 / np.max(-step / w, initial=0.99))
        while length > 1e-10 and not (new := objective(w + length * step)) > value:
            length /= 2
        if length <= 1e-10:
            break  # at the maximum up to rounding
        w = w + length * step
        value = new
    return w
