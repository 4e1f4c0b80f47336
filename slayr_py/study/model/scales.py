"""Whether the values of a study would be predicted better if parameters had a logarithmic scale.

The scale of a parameter is declared by the user, and easily forgotten. A wrong one costs most of a budget: where an
effect depends on ratios, the interesting part of a linear range from 1 to 2000 is a corner. From time to time the model
is therefore fitted, at its mode, as if parameters were logarithmic, and compared by its leave-one-out log density.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from ConfigSpace import Configuration
from optuna import Study

from slayr_py.errors import DataError, InferenceError, listed
from slayr_py.inference import GaussianProcess, Posterior, WarmStart
from slayr_py.kernels import Kernel
from slayr_py.space import Encoder, FloatArray
from slayr_py.study.model.fit_cache import Cache, fit_key, fit_to
from slayr_py.study.model.warp_choice import AT_MODE, LARGEST_GAIN
from slayr_py.study.storage.objectives import goals_of
from slayr_py.study.storage.trials import Observations, observations

EVIDENCE = 10.0  # measured in docs/decisions/scales.md, as the next one
"""Sum of the differences of leave-one-out log densities above which scales are logarithmic."""

GAIN = 0.5
"""Mean of these differences above which they are."""

_DUE = (16, 20, 24, 36, 54, 81)
"""Numbers of observations at which the scales are chosen."""

_VALUES = 3  # of a parameter, with which differences can depend on its scale
_LEAST = 0.02  # gain of a parameter with which it is tried together with others
_MANY = 12  # parameters of which none is tried alone or left out, which takes two fits for each


class Scales(NamedTuple):
    """Parameters whose scale should be logarithmic."""

    names: tuple[str, ...]
    """None of them unless the evidence for them is enough, now or earlier."""

    gain: float
    """Mean gain of a value in leave-one-out log density, at most 3 and at least -3 for each."""

    n: int
    """Number of observations that show it."""

    given_up: tuple[str, ...] = ()
    """Parameters with logarithmic scales at the choice before, of which this one has none."""


def better_scales(
    study: Study, gp: GaussianProcess, observed: Sequence[Observations], known: Cache[Scales]
) -> Scales | None:
    """Return the parameters with linear scales that are logarithmic in the best model found; None if nothing is due.

    They are one, all that may be logarithmic but one, those that are an improvement alone, all but those without which
    the others are better, or all, whichever is best; of more than 12 they are all. An effect of several parameters is
    often predicted worse if only one of them is logarithmic, and a few others would hide the gain of all.
    `Dimension.rescaled` says which may be. At least three of their values were evaluated, no comparison among the
    constraints on inputs reads them, and functions among these constraints still allow some of a few uniform draws.
    The first 16, 20, 24, ... observations by trial number decide, of these numbers the largest there is, so that
    suggestions until the next one have the same scales, also those of another process. Scales that were chosen stay as
    long as they predict better than the declared ones.

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
    due = [number for number in _DUE if number <= len(observed[0].y)]
    dimensions = [d for d in gp.encoder.dimensions if d.name not in gp.encoder.constrained]
    possible = [d.name for d in dimensions if d.rescaled() is not None]
    if not due or not possible or not _fits(gp, possible):
        return None

    def choice(due: Sequence[int]) -> Scales:
        """Return the choice at the last of these numbers; it knows the ones before."""
        if not due:
            return Scales((), 0.0, 0)
        numbers = observed[0].numbers[: due[-1]]
        first = [observations(study, gp.encoder.space, numbers, goal.number) for goal in goals_of(study)]
        data = [array for each in first for array in (each.y, each.y_sd)]
        key = fit_key(study, "scales", first[0], data, 1, AT_MODE)
        return known.get(key, lambda: _compared(gp, first, possible, choice(due[:-1]).names))

    return choice(due)


def scales_text(found: Scales, encoder: Encoder, chosen_for: Kernel | None) -> str:
    """Return a warning of better scales, which the model of a kernel has, or which no model has (None)."""
    names = listed(found.names)
    reason = (
        f"they predict the first {found.n} observations better (leave-one-out log density {found.gain:.1f} higher "
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


def given_up_text(found: Scales) -> str:
    """Return a warning that the model has the declared scales again."""
    return (
        f"the model has the declared scales of {listed(found.given_up)} again: no logarithmic ones are known to "
        f"predict the first {found.n} observations better"
    )


def _fits(gp: GaussianProcess, names: Sequence[str]) -> bool:
    """Return whether the kernels have other scales: one that was learned from related data has those of the data."""
    try:
        gp.on(gp.encoder.rescaled({*gp.encoder.logarithmic, *names}))
    except DataError:
        return False
    return True


def _count(configs: Sequence[Configuration], name: str) -> int:
    """Return the number of different values of a parameter."""
    return len({config[name] for config in configs if name in config})


def _searchable(encoder: Encoder, names: Sequence[str]) -> list[str]:
    """Return the names with whose logarithmic scales uniform draws still meet allowed configurations.

    A function that allows much of a linear scale may allow hardly anything of the logarithmic one. It may read any
    parameter, so that the names are added one after the other.
    """
    kept: list[str] = []
    for name in names:
        if encoder.rescaled({*encoder.logarithmic, *kept, name}).is_searchable:
            kept.append(name)
    return kept


def _compared(
    gp: GaussianProcess, first: Sequence[Observations], possible: Sequence[str], last: tuple[str, ...]
) -> Scales:
    """Fit with each set of logarithmic scales, and return the best, or the last choice if that is still better."""
    nothing = Scales((), 0.0, len(first[0].y), given_up=last)
    names = _searchable(gp.encoder, [name for name in possible if _count(first[0].configs, name) >= _VALUES])
    if not names:
        return nothing
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
        return float(np.clip(after - before, -LARGEST_GAIN, LARGEST_GAIN).mean())

    every = tuple(names)
    gains = {(): 0.0, every: gain(every)}
    if last not in gains:
        gains[last] = gain(last)

    def examine(sets: Iterable[tuple[str, ...]]) -> None:
        gains.update({each: gain(each) for each in dict.fromkeys(sets) if each not in gains})

    if len(every) <= _MANY:
        without = {name: tuple(other for other in every if other != name) for name in every}
        examine([*((name,) for name in every), *without.values()])
        better_alone = tuple(name for name in every if gains[name,] > _LEAST)
        not_better_without = tuple(name for name in every if gains[without[name]] <= gains[every] + _LEAST)
        examine([better_alone, not_better_without])
    best = max(gains, key=gains.__getitem__)
    if gains[best] <= max(GAIN, EVIDENCE / len(before)):
        best = last if gains[last] > 0 else ()
    return nothing._replace(names=best, gain=gains[best], given_up=() if best else last)


def _mode(gp: GaussianProcess, observed: Observations, start: WarmStart | None = None) -> Posterior:
    """Return the fit at the mode, of other scales at the one near the mode of the declared scales."""
    return fit_to(gp.with_errors(observed.errors), observed, AT_MODE, start=start)


def _log_densities(modes: Sequence[Posterior]) -> FloatArray:
    """Return the leave-one-out log densities of all values."""
    return np.concatenate([mode.parts[0].leave_one_out.elpd for mode in modes])
