"""Means and standard deviations of hyperparameters with their Monte Carlo errors, and whether two such agree.

Symbols
-------
c : chains; s : draws of a chain.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student_t

from slayr_py.inference.diagnostics.arviz_bridge import standard_error
from slayr_py.inference.model import Model
from slayr_py.inference.sampling.output import Run
from slayr_py.space.dimension import FloatArray

_DIGITS = 10
_FALSE_ALARM = 0.001  # probability that two right runs do not agree
_MODES_APART = 0.01
"""Relative difference of two modes that are the same. The optimiser stops where the log density hardly grows any more:
in a flat direction rounding alone moved that point by up to 0.0023 (accelerated against readable likelihood, 20 modes
of 4 problems). A fifth, observed without noise, has a ridge where it stops at random, and that is a disagreement.
"""


def summarise(model: Model, run: Run) -> dict[str, dict[str, float | None]]:
    """Of each entry of each hyperparameter, under ArviZ' names: two moments, their errors, effective sample sizes.

    Draws of an approximation are worth its effective number of different draws; the one draw of a mode has a mean only.
    What could not be computed is None.
    """
    return {
        entry: _moments(run.variables[name][..., i], run.importance_ess) for entry, (name, i) in entries(model).items()
    }


def entries(model: Model) -> dict[str, tuple[str, int]]:
    """Hyperparameter and place of every entry by its name, such as "lengthscale[x]"."""
    found: dict[str, tuple[str, int]] = {}
    labels = model.kernel.labels(model.encoder)
    for name in model.priors:
        vector = labels.get(name)
        if vector is None:
            found[name] = (name, 0)
        else:
            found |= {f"{name}[{label}]": (name, i) for i, label in enumerate(vector)}
    return found


def _moments(draws: FloatArray, importance_ess: float) -> dict[str, float | None]:
    mean = float(np.mean(draws))
    numbers = {"mean": mean, "sd": float(np.std(draws, ddof=1)) if draws.size > 1 else float("nan")}
    # The error of the mean of squares is 2 sd times that of its root.
    for name, values, slope in (("mean", draws, 1.0), ("sd", np.square(draws - mean), 2 * numbers["sd"])):
        deviation = float(np.std(values))
        sampled = np.isfinite(importance_ess)
        error = deviation / math.sqrt(importance_ess) if sampled else standard_error(values)
        numbers[f"mcse_{name}"] = error / slope if slope else 0.0
        numbers[f"ess_{name}"] = (deviation / error) ** 2 if error else float(draws.size)
    return {name: float(f"{number:.{_DIGITS}g}") if math.isfinite(number) else None for name, number in numbers.items()}


@dataclass(frozen=True)
class Agreement:
    """How far two summaries are apart.

    Attributes
    ----------
    worst : float
        Largest standardised difference: of two means, or standard deviations, over their joint Monte Carlo error. Of
        two modes the largest difference relative to the larger value.
    of : str
        What differs so much: "mean of lengthscale[x]".
    limit : float
        Up to which a difference is left to chance.
    """

    worst: float
    of: str
    limit: float

    @property
    def holds(self) -> bool:
        """Whether all differences are within the limit."""
        return self.worst <= self.limit


def compare(was: Mapping[str, Any], now: Mapping[str, Any]) -> Agreement:
    """Compare two summaries of the same hyperparameters.

    Notes
    -----
    Two right runs differ by chance. A difference over its joint error would be standard normal if the errors were
    known; they are estimated from few effective draws, skewed ones at that, so it is like Student's t. Of K differences
    one is beyond the quantile of 1 - 0.001 / (2 K) on either side with a probability of at most 0.001, however they
    depend on each other (Bonferroni). A quarter of the smallest effective sample size does for the degrees of freedom:
    of 9,360 pairs of runs that differed in the seed alone (40 runs of 4 models, 100 to 1,200 draws), 8 did not agree;
    with all of it 48 did not, with normal quantiles 98.

    Raises
    ------
    KeyError, TypeError, ValueError
        If something is missing, or not a number.
    """
    if all(entry["sd"] is None for entry in now.values()):
        apart = {f"mean of {name}": _relative(was[name]["mean"], now[name]["mean"]) for name in now}
        limit = _MODES_APART
    else:
        apart = {
            f"{moment} of {name}": _standardised(was[name], now[name], moment)
            for name in now
            for moment in ("mean", "sd")
        }
        sizes = [entry["ess_mean"] for entry in (*was.values(), *now.values()) if entry["ess_mean"] is not None]
        limit = float(student_t.isf(_FALSE_ALARM / (2 * len(apart)), max(1.0, min(sizes, default=1.0) / 4)))
    of = max(apart, key=lambda name: apart[name])
    return Agreement(apart[of], of, limit)


def _relative(was: float, now: float) -> float:
    return 0.0 if was == now else abs(was - now) / max(abs(was), abs(now))


def _standardised(was: Mapping[str, Any], now: Mapping[str, Any], moment: str) -> float:
    """Difference over its joint error; infinite where there is a difference and no error to compare it with."""
    apart = abs(float(was[moment]) - float(now[moment]))
    error = float(np.hypot(was[f"mcse_{moment}"] or 0.0, now[f"mcse_{moment}"] or 0.0))
    if apart == 0:
        return 0.0
    return apart / error if error > 0 and np.isfinite(apart) else float("inf")
