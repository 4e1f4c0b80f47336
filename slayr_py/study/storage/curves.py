"""Learning curves: the values that trials report before they end, and the decisions of `Prune` about them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from slayr_py.errors import DataError
from slayr_py.space import FloatArray

PRUNE_KEY = "slayr:prune"
"""Trial attribute: {"decisions", "pruned", "threshold", "evidence", "why"}.

A decision is {"step", "probability", "mean", "sd", "best", "inflation", "without", "by_curve"}: probability of a better
final value than ``best``, the best value so far of the trials with the same fixed values; median and half the interval
of one standard deviation of the predicted final value, in the objective's units; the factor on the standard deviation;
and the probability without the trial's own curve, and under this curve alone (1 if it says nearly nothing). The last
decision ``pruned`` the trial or not. "evidence" is [value, sd]: what the curve says about the final value or, if that
is nearly nothing, the prediction. The model of the objective is fitted to it if the trial was pruned. "why" is the
reason for a decision that was due and is missing; absent otherwise."""

MOST_POINTS = 8
"""Most points of a curve that a model is fitted to."""


class Curve(NamedTuple):
    """The curve of one trial, thinned, in the user's units."""

    number: int
    """Number of the trial."""

    state: TrialState

    params: dict[str, Any]

    distributions: dict[str, BaseDistribution]

    steps: FloatArray
    """Shape (k,): increasing steps with finite values."""

    values: FloatArray
    """Shape (k,)."""

    last_step: int | None
    """Largest reported step, whether its value is finite or not; None without a report."""

    dropped: int
    """Number of reported values that are not finite."""

    final: float | None
    """Value of a complete trial, if it is finite."""


def curve_of(trial: FrozenTrial, most: int = MOST_POINTS) -> Curve:
    """Return the curve of a trial with at most this many points: see `thinned`."""
    reported = trial.intermediate_values
    known = sorted((step, value) for step, value in reported.items() if math.isfinite(value))
    steps = np.array([step for step, _ in known], dtype=np.float64)
    values = np.array([value for _, value in known], dtype=np.float64)
    kept = thinned(steps, most)
    final = None
    if trial.state == TrialState.COMPLETE and trial.values and math.isfinite(trial.values[0]):
        final = float(trial.values[0])
    return Curve(
        trial.number,
        trial.state,
        dict(trial.params),
        dict(trial.distributions),
        steps[kept],
        values[kept],
        trial.last_step,
        len(reported) - len(known),
        final,
    )


def thinned(steps: FloatArray, most: int) -> NDArray[np.intp]:
    """Return the places of at most ``most`` increasing steps (k,), evenly spaced in log(1 + step), the last one kept.

    The rows of a long curve are nearly equal, and the time of a fit grows with the cube of their number.
    """
    if len(steps) <= most:
        return np.arange(len(steps), dtype=np.intp)
    wanted = np.geomspace(1 + steps[0], 1 + steps[-1], most) - 1
    places = np.minimum(np.searchsorted(steps, wanted - 1e-9), len(steps) - 1)
    return np.unique(np.append(places[:-1], len(steps) - 1)).astype(np.intp)


def prune_record(trial: FrozenTrial) -> dict[str, Any]:
    """Return the decisions about a trial; empty without any."""
    record = trial.user_attrs.get(PRUNE_KEY)
    return record if isinstance(record, dict) else {}


def evidence_of(trial: FrozenTrial) -> tuple[float, float] | None:
    """Return what the curve of a pruned trial says about its final value, with a standard deviation; None if nothing.

    Raises
    ------
    DataError
        If another program has written something else.
    """
    evidence = prune_record(trial).get("evidence") if trial.state == TrialState.PRUNED else None
    if evidence is None:
        return None
    try:
        value, sd = map(float, evidence)
        if not (math.isfinite(value) and 0 < sd < math.inf):
            raise ValueError(sd)
    except (TypeError, ValueError):
        raise DataError(
            f"trial {trial.number} has the user attribute {PRUNE_KEY!r} with the evidence {evidence!r:.80}; it must be "
            "a value and its standard deviation"
        ) from None
    return value, sd
