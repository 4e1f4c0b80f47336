"""Posterior of the optimum of a study: where it is, the best evaluated configuration, and nearly optimal ones."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from optuna import Study

from slayr_py.acquisition import Optima, distinct, extend_pool, sample_optima
from slayr_py.arguments import check_number, check_probability
from slayr_py.errors import DataError
from slayr_py.inference import Posterior
from slayr_py.space import Dimension, Encoded, jsonable
from slayr_py.study.model.prediction_error import inflation_of
from slayr_py.study.results.figures import optimum_figure
from slayr_py.study.results.latest_fits import feasibility_of_all
from slayr_py.study.results.noise import is_exact
from slayr_py.study.results.recommendation import as_believed
from slayr_py.study.results.tables import best_trial
from slayr_py.study.sampler import declared_space_of, fixed_for_results, forgotten_functions
from slayr_py.study.storage.columns import PARAMETER
from slayr_py.study.storage.objectives import check_one_objective
from slayr_py.study.storage.trials import known_infeasible, observations, trial_configuration
from slayr_py.threads import one_thread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_INTERVAL = (0.05, 0.5, 0.95)  # quantiles: the median and a 90% interval
_UNEXPLAINED = 3.0  # posterior standard deviations of the best exact value from its prediction; in studies of smooth
# functions it was below 1, in those of functions with a kink at the optimum above 3
_STREAM = 1  # of the random numbers of a seed, for nearly optimal configurations; those of the optima have no number
_ROUNDING = 1e-6  # of the values' standard deviation: such a difference is none


@dataclass(frozen=True)
class Optimum:
    """Posterior of the optimum of the latent function.

    Attributes
    ----------
    table : DataFrame
        One row per number, and one per level of the other parameters: parameter, level, probability, low, median, high.
        The probability is that of the level at the optimum or, of a number, of being active there; low and high are the
        90% interval where it is active.
    evaluated : DataFrame
        number, probability and params_<name>: the probability that an evaluated configuration is the best one among
        all that were evaluated, the most probable first. Repetitions of a noisy objective have the number of the first.
    value : tuple of (float, float, float)
        90% interval of the optimal value and its median: low, median, high, in the user's units.
    draws : DataFrame
        Location of the optimum of each drawn function, a column per parameter, NaN where it is inactive, and its
        "value". A parameter called "value" is the column "params_value".
    notes : tuple of str
        Sentences on limits of the result.
    dimensions : tuple of Dimension
        The parameters, in the order of the table.
    """

    table: pd.DataFrame
    evaluated: pd.DataFrame
    value: tuple[float, float, float]
    draws: pd.DataFrame
    notes: tuple[str, ...]
    dimensions: tuple[Dimension, ...]

    def plot(self) -> Figure:
        """Draw the location of the optimum: a histogram of each number, and the probability of each level."""
        return optimum_figure(self.table, self.draws.drop(columns="value"), self.dimensions)

    def __repr__(self) -> str:
        """Return the interval of the value, the table and the notes."""
        low, median, high = self.value
        interval = f"optimum {median:.4g}, 90% interval {low:.4g} to {high:.4g}"
        return "\n".join([interval, self.table.to_string(index=False), *self.notes])

    def _repr_html_(self) -> str:
        table: str = self.table.to_html(index=False)
        return table + "".join(f"<p>{escape(note)}</p>" for note in self.notes)


def optima_of(study: Study, posterior: Posterior, seed: int) -> tuple[Optima, list[int]]:
    """Return the optima of functions drawn from the posterior of a study, and the numbers of the evaluated trials.

    Of trials of a noisy objective with the same configuration it is the first.
    """
    check_one_objective(study, "the optimum is that of one; see result.front")
    observed = observations(study, posterior.encoder.space)
    declared = declared_space_of(study)
    fixed = fixed_for_results(study, posterior.encoder)
    encoder = posterior.encoder if declared is None else declared.encoder.rescaled(posterior.encoder.logarithmic)
    evaluated = encoder.encode(observed.configs)
    if not observed.usable(evaluated, fixed).any():
        raise DataError(f"study {study.study_name!r} has no feasible trial to compare with the optimum")
    feasibility = feasibility_of_all(study, posterior.encoder)
    (observed,) = as_believed(study, [observed], feasibility, evaluated, fixed)
    rows = np.flatnonzero(observed.usable(evaluated, fixed))
    models = list(feasibility.values())
    with one_thread():
        scale = inflation_of(study, posterior, observed)
        exact, infeasible = None, None
        if is_exact(study):
            exact = observed.uncompressed[rows]
            infeasible = encoder.encode(known_infeasible(study, posterior.encoder.space, observed.penalties))
        else:
            rows = rows[distinct(evaluated[rows])]  # repetitions are one configuration
        rng = np.random.default_rng(seed)
        optima = sample_optima(posterior, evaluated[rows], rng, models, fixed, scale, exact, infeasible)
    return optima, [observed.numbers[row] for row in rows]


def optimum(study: Study, posterior: Posterior, seed: int) -> Optimum:
    """Return the posterior of the optimum of a study."""
    optima, numbers = optima_of(study, posterior, seed)
    encoded = optima.encoded
    wins = _wins(optima.at_evaluated)
    trials = study.get_trials(deepcopy=False)
    rows: list[dict[str, Any]] = []
    for row in np.argsort(-wins, kind="stable"):
        params = {f"{PARAMETER}{name}": value for name, value in trials[numbers[row]].params.items()}
        rows.append({"number": numbers[row], "probability": wins[row], **params})
    low, median, high = np.quantile(optima.values, _INTERVAL)
    draws = _table_of(encoded).rename(columns={"value": f"{PARAMETER}value"}).assign(value=optima.values)
    interval = float(low), float(median), float(high)
    notes = tuple(filter(None, (forgotten_functions(study), _unexplained(study, posterior))))
    return Optimum(_locations(encoded), pd.DataFrame(rows), interval, draws, notes, tuple(encoded.encoder.dimensions))


def _unexplained(study: Study, posterior: Posterior) -> str:
    """Describe an exact best value that is far from what the model predicts at its configuration; empty if it is near.

    The noise of the model is not a part of its standard deviation: it is what the model takes exact values for.
    """
    best = best_trial(study) if is_exact(study) else None
    config = None if best is None else trial_configuration(best, posterior.encoder.space)
    if best is None or config is None:
        return ""
    mean, sd = (float(each[0]) for each in posterior.predict([config]).centre_and_spread())
    value = float(best.values[0])
    if abs(value - mean) <= max(_UNEXPLAINED * sd, _ROUNDING * abs(posterior.y_sd)):
        return ""
    return (
        f"the model predicts {mean:.6g} ± {sd:.2g} at the best trial, {best.number}, and explains the difference from "
        f"its exact value {value:.6g} by noise: details of the function near the optimum, such as a kink, are missing, "
        "and the intervals are too narrow. Another kernel may describe them; if repeated evaluations differ, declare "
        "noisy=True"
    )


def good(study: Study, posterior: Posterior, epsilon: float, probability: float, seed: int) -> pd.DataFrame:
    """Return the ranges of the configurations that are nearly optimal: see `Result.good`."""
    epsilon = check_number("epsilon", epsilon)
    probability = check_probability("probability", probability)
    optima, _ = optima_of(study, posterior, seed)
    with one_thread():
        optima = extend_pool(optima, epsilon, probability, np.random.default_rng([seed, _STREAM]))
    near = np.mean(optima.regrets < epsilon, axis=0)
    chosen = near >= probability
    if not chosen.any():
        best = int(np.argmax(near))
        # "linear" would interpolate between infinite regrets; with 1% more, three digits are never too few
        enough = 1.01 * np.quantile(optima.regrets, probability, axis=0, method="higher").min()
        config = jsonable(dict(optima.pool.encoder.decode(optima.pool[[best]])[0]))  # type: ignore[attr-defined]
        raise DataError(
            f"no configuration is within {epsilon:g} of the optimum with probability {probability:g}; the most "
            f"probable is {config} with {near[best]:.2g}. Evaluate more, or take epsilon >= {enough:.3g}"
        )
    ranges = _locations(optima.pool[np.flatnonzero(chosen)], (0.0, 0.5, 1.0))
    ranges = ranges[(ranges["level"] == "") | (ranges["probability"] > 0)]
    return ranges.drop(columns=["median", "probability"]).reset_index(drop=True)


def _wins(at_evaluated: np.ndarray[Any, np.dtype[np.float64]]) -> NDArray[np.float64]:
    """Return the share of functions under which each configuration is the best, (n,)."""
    best = np.argmin(at_evaluated, axis=1)
    return np.bincount(best, minlength=at_evaluated.shape[1]) / len(at_evaluated)


def _table_of(encoded: Encoded) -> pd.DataFrame:
    columns: dict[str, Any] = {}
    for j, d in enumerate(encoded.encoder.dimensions):
        values = np.array(d.values(d.numbers(encoded.unit_values[:, j])), dtype=object)
        values[~encoded.active[:, j]] = np.nan
        column = pd.Series(values, dtype=object)  # a level may be None
        columns[d.name] = pd.to_numeric(column) if d.is_real else column
    return pd.DataFrame(columns)


def _locations(encoded: Encoded, quantiles: tuple[float, float, float] = _INTERVAL) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for j, d in enumerate(encoded.encoder.dimensions):
        active = encoded.active[:, j]
        units = encoded.unit_values[active, j]
        if d.is_real:
            values = d.numbers(units)
            shown = np.full(3, np.nan)
            if len(values):  # quantiles of integers are integers
                shown = np.quantile(values, quantiles, method="linear" if d.kind == "float" else "inverted_cdf")
            limits = dict(zip(("low", "median", "high"), map(float, shown), strict=True))
            rows.append({"parameter": d.name, "level": "", "probability": float(active.mean()), **limits})
            continue
        for index, level in enumerate(d.levels):
            share = float(np.sum(np.rint(units) == index) / len(active))
            nothing = {"low": np.nan, "median": np.nan, "high": np.nan}
            rows.append({"parameter": d.name, "level": level, "probability": share, **nothing})
    return pd.DataFrame(rows).assign(level=pd.Series([row["level"] for row in rows], dtype=object))
