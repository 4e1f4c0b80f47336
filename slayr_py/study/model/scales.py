"""Whether the values of a study would be predicted better if parameters had a logarithmic scale.

The scale of a parameter is declared by the user, and easily forgotten. A wrong one costs most of a budget: where an
effect depends on ratios, the interesting part of a linear range from 1 to 2000 is a corner. From time to time the model
is therefore fitted, at its mode, as if parameters were logarithmic, and compared by its leave-one-out log density.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from optuna import Study

from slayr_py.errors import DataError, InferenceError, listed
from slayr_py.inference import GaussianProcess, Posterior, WarmStart
from slayr_py.kernels import Kernel
from slayr_py.space import Encoder, FloatArray
from slayr_py.study.model.fit_cache import Cache, fit_key
from slayr_py.study.model.warp_choice import AT_MODE, MOST
from slayr_py.study.storage.objectives import goals_of
from slayr_py.study.storage.trials import Observations, observations

EVIDENCE = 10.0  # measured in docs/decisions/scales.md, as the next one
"""Sum of the differences of leave-one-out log densities above which scales are logarithmic."""

GAIN = 0.4
"""Mean of these differences above which they are."""

_DUE = (16, 20, 24, 36, 54, 81)
"""Numbers of observations at which the scales are chosen."""

_LEAST = 0.02  # gain of a parameter alone with which it is tried together with others
_MANY = 12  # parameters of which none is tried alone, which takes a fit for each


class Scales(NamedTuple):
    """Parameters whose scale should be logarithmic."""

    names: tuple[str, ...]
    """None of them unless the evidence for them is enough."""

    gain: float
    """Mean gain of a value in leave-one-out log density, at most 3 and at least -3 for each."""

    n: int
    """Number of observations that show it."""


def better_scales(
    study: Study, gp: GaussianProcess, observed: Sequence[Observations], known: Cache[Scales]
) -> Scales | None:
    """Return the parameters with linear scales that are logarithmic in the best model found; None if nothing is due.

    They are one, those that are an improvement alone, or all that may be logarithmic, whichever is best; of more than
    12 they are all. `Dimension.rescaled` says which may be, and no constraint on inputs reads them. The first
    16, 20, 24, ... observations by trial number decide, of these numbers the largest there is, so that suggestions
    until the next one have the same scales, also those of another process.

    Parameters
    ----------
    study : optuna.Study
    gp : GaussianProcess
        Of one kernel.
    observed : sequence of Observations
        One for each objective: all objectives have the same scales.
    known : Cache
        Earlier choices.
    """
    n = max((number for number in _DUE if number <= len(observed[0].y)), default=0)
    dimensions = [d for d in gp.encoder.dimensions if d.name not in gp.encoder.constrained]
    possible = [d.name for d in dimensions if d.rescaled() is not None]
    if not n or not possible or not _fits(gp, possible):
        return None
    space, numbers = gp.encoder.space, observed[0].numbers[:n]
    first = [observations(study, space, numbers, goal.number) for goal in goals_of(study)]
    key = fit_key(study, "scales", first[0], [each.y for each in first], 1, AT_MODE)
    return known.get(key, lambda: _compared(gp, first, possible))


def scales_text(found: Scales, encoder: Encoder, chosen_for: Kernel | None) -> str:
    """Return a warning of better scales, which the model of a kernel has, or which no model has (None)."""
    names = listed(found.names)
    reason = (
        f"they predict the first {found.n} observations much better (leave-one-out log density {found.gain:.1f} higher "
        "for each)"
    )
    positive = [d.name for d in encoder.dimensions if d.name in found.names and d.lower > 0]
    remedy = f" Declare log=True for {listed(positive)} in another study" if positive else ""
    if chosen_for is None:
        past = f"{remedy}, and give it these trials as history=" if positive else ""
        return f"logarithmic scales of {names} would be better than the linear ones of the space: {reason}.{past}"
    design = f"{remedy}, so that its initial design has the scale too." if positive else ""
    return (
        f"the model has logarithmic scales of {names}, which the space declares linear: {reason}.{design} "
        f"kernel={chosen_for.name!r} keeps the declared scales"
    )


def _fits(gp: GaussianProcess, names: Sequence[str]) -> bool:
    """Return whether the kernels have other scales: one that was learned from related data has those of the data."""
    try:
        gp.on(gp.encoder.rescaled({*gp.encoder.logarithmic, *names}))
    except DataError:
        return False
    return True


def _compared(gp: GaussianProcess, first: Sequence[Observations], names: Sequence[str]) -> Scales:
    """Fit with each set of logarithmic scales, and return the best."""
    nothing = Scales((), 0.0, len(first[0].y))
    try:
        declared = [_mode(gp, each) for each in first]
    except InferenceError:
        return nothing  # the fit of the objective itself is reported
    before = _log_densities(declared)

    def gain(logarithmic: Sequence[str]) -> float:
        model = gp.on(gp.encoder.rescaled({*gp.encoder.logarithmic, *logarithmic}))
        pairs = zip(first, declared, strict=True)
        try:
            after = _log_densities([_mode(model, each, mode.warm_start()) for each, mode in pairs])
        except InferenceError:
            return 0.0
        return float(np.clip(after - before, -MOST, MOST).mean())

    alone = {} if len(names) > _MANY else {(name,): gain([name]) for name in names}
    better = tuple(name for (name,), value in alone.items() if value > _LEAST)
    gains = alone | {several: gain(several) for several in {better, tuple(names)} if len(several) > 1}
    best = max(gains, key=gains.__getitem__)
    is_enough = gains[best] > max(GAIN, EVIDENCE / len(before))
    return nothing._replace(names=best, gain=gains[best]) if is_enough else nothing


def _mode(gp: GaussianProcess, observed: Observations, start: WarmStart | None = None) -> Posterior:
    """Return the fit at the mode, of other scales at the one near the mode of the declared scales."""
    return gp.with_errors(observed.errors).fit(
        observed.configs,
        observed.y,
        y_sd=observed.errors,
        maximize=observed.maximize,
        start=start,
        options=AT_MODE,
    )


def _log_densities(modes: Sequence[Posterior]) -> FloatArray:
    """Return the leave-one-out log densities of all values."""
    return np.concatenate([mode.parts[0].leave_one_out.elpd for mode in modes])
