"""Compression of the values of constraints, whose tails may be long, or none if they predict each other better so.

One violation that is a thousand times larger than the others would decide the scale of the values, and small violations
would be invisible. But a constraint that is linear in the parameters, or nearly, is learned from a few values as they
are, and hardly at all from compressed ones.
"""

from __future__ import annotations

import numpy as np
from optuna import Study

from slayr_py.errors import InferenceError
from slayr_py.inference import GaussianProcess
from slayr_py.space import FloatArray
from slayr_py.study.model.fit_cache import Cache, fit_key
from slayr_py.study.model.warp_choice import AT_MODE
from slayr_py.study.storage.trials import Results

_SCALED_BY = 10  # trials that scale the values of a constraint: about an initial design
_DUE = (11, 13, 16, 20, 24, 36, 54, 81)
"""Numbers of values at which their form is chosen."""

_JUMP = 10.0  # times all values before: with a larger one, which would decide the scale, the form is chosen again


def compress(values: FloatArray) -> FloatArray:
    """Compress the tails of constraint values (n,), in the order of the trials: asinh(c / s), s from the first trials.

    Unlike the sign(c) log(1 + |c| / s) of Eriksson & Poloczek (2021, "Scalable constrained Bayesian optimization") the
    function is smooth at 0, where the model decides.

    s is the median of the first `_SCALED_BY` |c| that are not 0. The median over all trials shrinks when the loop
    converges to a border, until the compressed values are a step there.
    """
    return _asinh(off_the_border(values), _scale(values))


def _asinh(moved: FloatArray, scale: float) -> FloatArray:
    """Return asinh(c / scale) of values (n,), also if the quotient overflows."""
    with np.errstate(over="ignore"):
        ratios = moved / scale
        beyond = np.copysign(np.log(2.0) + np.log(np.maximum(np.abs(moved), scale)) - np.log(scale), moved)
    return np.where(np.isfinite(ratios), np.arcsinh(ratios), beyond)


def off_the_border(values: FloatArray) -> FloatArray:
    """Return constraint values (n,) with those of 0, which are feasible, inside of the border if there is an inside.

    The model gives 0 a probability of 1/2. Among values of both signs it counts as half of the smallest |c| inside the
    border. If no value is negative, 0 may be anywhere inside, and stays the border: with a step there the model would
    expect the border among the violations. If all values are 0, there is neither a violation nor a border, and the
    constraint counts like any other negative constant.
    """
    sizes = np.abs(values[values != 0])
    if not len(sizes):
        return np.full(len(values), -1.0)
    margin = 0.5 * sizes.min() if (values < 0).any() else 0.0
    return np.where(values == 0, -margin, values)


def compressed_unless_better(
    study: Study, name: str, gp: GaussianProcess, results: Results, known: Cache[bool]
) -> Results:
    """Return the values of a constraint as the model learns them: compressed, or as they are, which is noted.

    The first 11, 13, 16, 20, ... values by trial number decide, of these numbers the largest there is, or those up to a
    later one that is more than ten times as large as all before. Either form is fitted at its mode; the one with the
    larger leave-one-out log density of the values is taken. With fewer values, or if a fit fails, they are compressed.
    ``known`` has earlier choices.
    """
    n = _deciding(results.values)
    first = results._replace(numbers=results.numbers[:n], configs=results.configs[:n], values=results.values[:n])
    if n == 0 or np.all(first.values == first.values[0]):
        return as_learned(results, linear=False)
    key = fit_key(study, f"{name} on {gp.encoder.logarithmic}", first, [first.values], 1, AT_MODE)
    return as_learned(results, known.get(key, lambda: _predict_better_as_they_are(gp, first)))


def as_learned(results: Results, linear: bool) -> Results:
    """Return the values of a constraint as the model learns them; ``linear`` if they are not compressed."""
    if results.half_width is None:
        learned = off_the_border(results.values) if linear else compress(results.values)
        return results._replace(values=learned, linear=linear)
    if linear:
        return results._replace(linear=True)
    scale = _scale(results.values)
    border = float(_asinh(np.array([results.half_width]), scale)[0])
    return results._replace(values=_asinh(results.values, scale), half_width=border)


def _deciding(values: FloatArray) -> int:
    """Return how many of the first values decide on their form; 0 if they are too few."""
    sizes = np.abs(values)
    jumps = 2 + np.flatnonzero(sizes[1:] / _JUMP > np.maximum.accumulate(sizes)[:-1])
    return max((n for n in (*_DUE, *jumps.tolist()) if _DUE[0] <= n <= len(values)), default=0)


def _predict_better_as_they_are(gp: GaussianProcess, results: Results) -> bool:
    def log_density(linear: bool) -> float:
        mode = gp.fit(results.configs, as_learned(results, linear).values, options=AT_MODE)
        return float(mode.parts[0].leave_one_out.elpd.sum())

    # Squares of 1e200 are infinite, and so may the hypotenuse of two of the largest numbers be.
    moved = as_learned(results, linear=True).values
    halves = np.hypot(0.5 * moved, 0.5 * _scale(results.values))
    log_slope = -np.sum(np.log(halves) + np.log(2.0))
    try:
        return log_density(linear=True) > log_density(linear=False) + float(log_slope)
    except InferenceError:
        return False


def _scale(values: FloatArray) -> float:
    sizes = np.abs(values[values != 0])
    if not len(sizes):
        return 1.0
    half = float(np.median(0.5 * sizes[:_SCALED_BY]))  # a sum of two may be infinite
    return 2.0 * max(half, np.finfo(np.float64).tiny)
