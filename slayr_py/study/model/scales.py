"""Whether the values of a study would be predicted better if parameters had a logarithmic scale.

The scale of a parameter is the choice of the user. A wrong one costs most of a budget: where an effect depends on
ratios, the interesting part of a linear range from 1 to 2000 is a corner. From time to time the model is therefore
fitted, at its mode, as if parameters were logarithmic, and a large gain in the leave-one-out log density is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from slayr_py.errors import InferenceError, listed
from slayr_py.inference import GaussianProcess
from slayr_py.space import Dimension, Encoded, FloatArray
from slayr_py.study.model.session import Session
from slayr_py.study.model.warp_choice import AT_MODE, MOST
from slayr_py.study.storage.objectives import Goal
from slayr_py.study.storage.trials import Observations

EVIDENCE = 0.6  # measured in docs/decisions/scales.md
"""Mean of the differences of leave-one-out log densities above which scales are reported."""

_DUE = (16, 24, 36, 54, 81)
"""Numbers of observations from which the scales are examined, once each."""

_LEAST = 0.02  # gain of a parameter alone with which it is tried together with others
_MANY = 12  # parameters of which none is tried alone, which takes a fit for each
_RATIO = 100.0  # of the bounds of a range for which the scale matters


class Scales(NamedTuple):
    """Parameters whose scale should be logarithmic."""

    names: list[str]
    gain: float
    """Mean gain of a value in leave-one-out log density, at most 3 and at least -3 for each."""


def better_scales(gp: GaussianProcess, observed: Observations) -> Scales:
    """Return the parameters with linear scales that are logarithmic in the best model found, and its gain.

    They are one, those that are an improvement alone, or all that may be logarithmic, whichever is best; of more than
    12 they are all. Their ranges are positive and span two decades.

    Raises
    ------
    InferenceError
        If a fit fails.
    """
    rows = np.unique(np.linspace(0, len(observed.y) - 1, _DUE[-1]).astype(int))  # of many, some are enough
    train = gp.encoder.encode([observed.configs[row] for row in rows])
    errors = None if observed.errors is None else observed.errors[rows]
    gp = gp.parts[0].with_errors(errors)
    dimensions = gp.encoder.dimensions
    possible = [j for j, dimension in enumerate(dimensions) if _may_be_logarithmic(dimension)]
    if not possible:
        return Scales([], 0.0)

    def log_densities(logarithmic: Sequence[int]) -> FloatArray:
        posterior = gp.fit(
            _rescaled(train, logarithmic),
            observed.y[rows],
            y_sd=errors,
            maximize=observed.maximize,
            options=AT_MODE,
        )
        return posterior.parts[0].leave_one_out.elpd

    linear = log_densities([])

    def gain(logarithmic: Sequence[int]) -> float:
        return float(np.clip(log_densities(logarithmic) - linear, -MOST, MOST).mean())

    alone = {} if len(possible) > _MANY else {(j,): gain([j]) for j in possible}
    better = tuple(j for (j,), value in alone.items() if value > _LEAST)
    gains = alone | {several: gain(several) for several in {better, tuple(possible)} if len(several) > 1}
    best = max(gains, key=gains.__getitem__)
    return Scales([dimensions[j].name for j in best], gains[best])


def _may_be_logarithmic(dimension: Dimension) -> bool:
    return dimension.is_real and not dimension.log and dimension.upper >= _RATIO * dimension.lower > 0


def _rescaled(train: Encoded, logarithmic: Sequence[int]) -> Encoded:
    """Return configurations whose unit values of some parameters are those of a logarithmic scale."""
    unit_values = train.unit_values.copy()
    for j in logarithmic:
        dimension = train.encoder.dimensions[j]
        ratios = dimension.numbers(unit_values[:, j]) / dimension.lower
        logs = np.log(ratios) / np.log(dimension.upper / dimension.lower)
        unit_values[:, j] = np.where(train.active[:, j], logs, unit_values[:, j])
    return Encoded(unit_values, train.active, train.encoder)


def warn_of_scales(session: Session, goal: Goal, gp: GaussianProcess, observed: Observations) -> None:
    """Warn once if an objective would be predicted much better with logarithmic scales, as far as that is due."""
    n = len(observed.y)
    due = max((number for number in _DUE if number <= n), default=0)
    if due == 0 or not session.is_first(f"scales {goal.fit_name} {due}"):
        return
    try:
        names, gain = better_scales(gp, observed)
    except InferenceError:
        return  # the fit of the objective itself is reported
    if gain > EVIDENCE:
        values = "values" if goal.is_only else f"values of objective {goal.name!r}"
        session.warn(
            f"the {n} {values} so far are predicted much better if {listed(names)} "
            f"{'has a logarithmic scale' if len(names) == 1 else 'have logarithmic scales'} (leave-one-out log density "
            f"of a value {gain:.1f} higher): declare log=True in another study, and give it these trials as history=",
            about=f"scales {goal.fit_name}",
        )
