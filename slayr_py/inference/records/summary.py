"""Means and standard deviations of hyperparameters with Monte Carlo errors, and the comparison of two summaries.

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
from slayr_py.space import FloatArray

_DIGITS = 10  # of stored numbers; far more than their Monte Carlo errors need
_FALSE_ALARM = 0.001  # probability that two correct runs disagree
_MODES_APART = 0.01
"""Largest relative difference between two modes that count as equal. The optimiser stops where the log density hardly
increases. In a flat direction, rounding moved that point by up to 0.0023 (accelerated against readable likelihood, 20
modes of 4 problems). In a fifth problem, observed without noise, the optimiser stops at random points of a ridge; these
modes count as different.
"""


def summarise(model: Model, run: Run) -> dict[str, dict[str, float | None]]:
    """Return mean and standard deviation of each entry with their errors and effective sample sizes, named as in ArviZ.

    The effective sample size of an approximation is its effective number of distinct draws. The draws of chains that
    are resampled by importance ratios have the larger one of both errors. A mode has only a mean. Values that cannot be
    computed are None.
    """
    are_chains = bool(run.sampler)
    return {
        entry: _moments(run.variables[name][..., i], run.importance_ess, are_chains)
        for entry, (name, i) in entries(model).items()
    }


def entries(model: Model) -> dict[str, tuple[str, int]]:
    """Return hyperparameter and position of every entry by its name, such as "lengthscale[x]"."""
    return {entry: (h.name, i) for h in model.hyperparameters for i, entry in enumerate(h.entries)}


def _moments(draws: FloatArray, importance_ess: float, are_chains: bool) -> dict[str, float | None]:
    mean = float(np.mean(draws))
    numbers = {"mean": mean, "sd": float(np.std(draws, ddof=1)) if draws.size > 1 else float("nan")}
    # The error of the mean of squares is 2 sd times the error of its root.
    for name, values, slope in (("mean", draws, 1.0), ("sd", np.square(draws - mean), 2 * numbers["sd"])):
        deviation = float(np.std(values))
        weighted = math.isfinite(importance_ess)
        error = deviation / math.sqrt(importance_ess) if weighted else 0.0
        if are_chains or not weighted:
            error = float(np.maximum(error, standard_error(values)))
        numbers[f"mcse_{name}"] = error / slope if slope else 0.0
        numbers[f"ess_{name}"] = (deviation / error) ** 2 if error else float(draws.size)
    return {name: float(f"{number:.{_DIGITS}g}") if math.isfinite(number) else None for name, number in numbers.items()}


@dataclass(frozen=True)
class Agreement:
    """Difference between two summaries.

    Attributes
    ----------
    worst : float
        Largest difference of two means or standard deviations, divided by their joint Monte Carlo error. For two modes,
        the largest difference relative to the larger value.
    of : str
        The quantity with the largest difference, such as "mean of lengthscale[x]".
    limit : float
        Largest difference that is attributed to chance.
    """

    worst: float
    of: str
    limit: float

    @property
    def holds(self) -> bool:
        """Return whether all differences are within the limit."""
        return self.worst <= self.limit


def compare(was: Mapping[str, Any], now: Mapping[str, Any]) -> Agreement:
    """Compare two summaries of the same hyperparameters.

    Notes
    -----
    Two correct runs differ by chance. A difference divided by its joint error would be standard normal if the errors
    were known. The errors are estimated from few effective draws with skewed distributions, so Student's t fits better.
    The probability that any of K differences lies beyond the quantile of 1 - 0.001 / (2 K) on either side is at most
    0.001 for any dependence between the differences (Bonferroni). The degrees of freedom are a quarter of the smallest
    effective sample size. With them, 8 of 9,360 pairs of runs that differed only in the seed disagreed (40 runs of 4
    models, 100 to 1,200 draws); 48 disagreed with the whole effective sample size, and 98 with normal quantiles.

    Raises
    ------
    KeyError, TypeError, ValueError
        If an entry is missing or not a number.
    """
    if all(entry["sd"] is None for entry in now.values()):
        differences = {f"mean of {name}": _relative(was[name]["mean"], now[name]["mean"]) for name in now}
        limit = _MODES_APART
    else:
        differences = {
            f"{moment} of {name}": _standardised(was[name], now[name], moment)
            for name in now
            for moment in ("mean", "sd")
        }
        sizes = [entry["ess_mean"] for entry in (*was.values(), *now.values()) if entry["ess_mean"] is not None]
        limit = float(student_t.isf(_FALSE_ALARM / (2 * len(differences)), max(1.0, min(sizes, default=1.0) / 4)))
    of = max(differences, key=lambda name: differences[name])
    return Agreement(differences[of], of, limit)


def _relative(was: float, now: float) -> float:
    return 0.0 if was == now else abs(was - now) / max(abs(was), abs(now))


def _standardised(was: Mapping[str, Any], now: Mapping[str, Any], moment: str) -> float:
    """Return the difference divided by its joint error; infinite if there is a difference but no error estimate."""
    difference = abs(float(was[moment]) - float(now[moment]))
    error = float(np.hypot(was[f"mcse_{moment}"] or 0.0, now[f"mcse_{moment}"] or 0.0))
    if difference == 0:
        return 0.0
    return difference / error if error > 0 and np.isfinite(difference) else float("inf")
