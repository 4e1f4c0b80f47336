"""The front of several objectives: the trials that no other one dominates, and the hypervolume that they dominate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np
import pandas as pd
from ConfigSpace import ConfigurationSpace
from numpy.typing import NDArray
from optuna import Study
from optuna.trial import FrozenTrial

from slayr_py.acquisition import draw_fronts, hypervolume, infeasible, keys, non_dominated
from slayr_py.arguments import check_integer, check_probability
from slayr_py.errors import DataError, SlayrError
from slayr_py.inference import Posterior
from slayr_py.space import FloatArray
from slayr_py.study.model.feasibility import of_constraints
from slayr_py.study.model.incumbent import front_task
from slayr_py.study.results.noise import is_declared_noisy, is_exact, is_noisy
from slayr_py.study.results.recommendation import as_believed, comparable_rows
from slayr_py.study.results.tables import comparable_trials, front_trials, trials_table
from slayr_py.study.sampler import declared_space_of, fixed_for_results, space_of, warn_of_forgotten_functions
from slayr_py.study.storage.far_values import compress_far
from slayr_py.study.storage.objectives import check_several, default_reference, given_reference, goals_of, signs_of
from slayr_py.study.storage.trials import observations, observations_of_all, were_searched
from slayr_py.threads import one_thread

Reference = Mapping[str, float] | Sequence[float]
"""A reference point: one value for each objective, in their order or by name, in the user's units."""


def front_table(study: Study, space: ConfigurationSpace | None = None) -> pd.DataFrame:
    """Tabulate the feasible trials that no other one dominates, sorted by the first objective, the best first.

    Returns
    -------
    pandas.DataFrame
        The rows and columns of `trials_table`, without the state.

    Raises
    ------
    DataError
        If the study has one objective.
    """
    check_several(study)
    table = trials_table(study, space)
    numbers = [trial.number for trial in front_trials(study)]
    rows = table[table["number"].isin(numbers)].drop(columns="state")
    first = goals_of(study)[0]
    return rows.sort_values(rows.columns[1], ascending=not first.maximize, kind="stable").reset_index(drop=True)


def hypervolume_of(study: Study, reference: Reference) -> float:
    """Return the volume that the feasible trials dominate within a reference point, in the product of the units.

    Raises
    ------
    DataError
        If the study has one objective, or the reference point has not one finite number for each.
    """
    curve = hypervolume_curve(study, reference)
    return curve[-1] if curve else 0.0


def hypervolume_curve(study: Study, reference: Reference) -> list[float]:
    """Return the hypervolume after each feasible trial; parameters and errors as in :func:`hypervolume_of`."""
    check_several(study)
    goals = goals_of(study)
    sign = signs_of(goals)
    point = sign * given_reference(reference, goals)
    values = sign * np.array([trial.values for trial in comparable_trials(study)]).reshape(-1, len(goals))
    curve: list[float] = []
    for n, value in enumerate(values):
        before = curve[-1] if curve else 0.0
        dominated = np.any(np.all(values[:n] <= value, axis=1)) or np.any(value >= point)
        curve.append(before if dominated else hypervolume(values[: n + 1], point))
    return curve


def front_probabilities(
    study: Study, posteriors: Sequence[Posterior], feasibility: Mapping[str, Posterior], n: int, seed: int
) -> pd.DataFrame:
    """Return the probability that each configuration is on the front of the latent functions.

    They are those of the feasible trials that have the fixed values of the study's sampler, as for `front_table`. The
    values of objectives without noise are those of the functions, so that each probability is 0 or 1. Of noisy ones n
    functions of each objective are drawn jointly at the configurations. The posteriors of the objectives are
    independent, so that the k-th functions make one joint draw. They have the posterior standard deviations without an
    inflation, which is measured at configurations before their evaluation. The constraints of a study that is declared
    noisy are drawn too: a configuration that violates one of the k-th functions is not on the k-th front.

    Parameters
    ----------
    study : optuna.Study
    posteriors : sequence of Posterior
        Of each objective, given all finished trials; unused for objectives without noise.
    feasibility : mapping of str to Posterior
        Models of failures and constraints, by name; unused unless the study is declared noisy.
    n : int
        Number of functions; the standard error of a probability is at most 0.5 / sqrt(n).
    seed : int

    Returns
    -------
    pandas.DataFrame
        number, probability and params_<name>, the most probable first. Trials with the same configuration have the same
        probability.
    """
    if is_exact(study):
        trials = comparable_trials(study)
        sign = signs_of(goals_of(study))
        on_front = non_dominated(sign * np.array([trial.values for trial in trials]))
        table = pd.DataFrame({"number": [trial.number for trial in trials], "probability": on_front.astype(np.float64)})
    else:
        table = _drawn_front(study, posteriors, feasibility, n, seed)
    params = trials_table(study).set_index("number").filter(regex="^params_")
    table = table.join(params, on="number")
    return table.sort_values("probability", ascending=False, kind="stable").reset_index(drop=True)


def _drawn_front(
    study: Study, posteriors: Sequence[Posterior], feasibility: Mapping[str, Posterior], n: int, seed: int
) -> pd.DataFrame:
    """Return number and probability of the trials, from functions at their distinct configurations."""
    encoder = posteriors[0].encoder
    observed = observations(study, encoder.space)
    rows = comparable_rows(study, observed)
    same = keys(encoder.encode([observed.configs[row] for row in rows]))
    configs = {key: observed.configs[row] for key, row in zip(same, rows, strict=True)}
    signs = signs_of(goals_of(study))
    constraints = of_constraints(feasibility) if is_declared_noisy(study) else []
    models = [*posteriors, *constraints]
    seeds = [int(stream.generate_state(1)[0]) for stream in np.random.SeedSequence(seed).spawn(len(models))]
    drawn = [model.sample(list(configs.values()), n, stream) for model, stream in zip(models, seeds, strict=True)]
    values = np.stack([sign * each for sign, each in zip(signs, drawn, strict=False)], axis=2)
    feasible = np.ones(values.shape[:2], dtype=np.bool_)
    for model, each in zip(constraints, drawn[len(signs) :], strict=True):
        feasible &= ~infeasible(model, each)
    shares = np.mean([_on_front(*draw) for draw in zip(values, feasible, strict=True)], axis=0)
    probability = dict(zip(configs, shares, strict=True))
    numbers = [observed.numbers[row] for row in rows]
    return pd.DataFrame({"number": numbers, "probability": [probability[key] for key in same]})


def _on_front(values: FloatArray, feasible: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which of n configurations are feasible and on the front of such ones; ``values`` are (n, p)."""
    on_front = np.zeros(len(values), dtype=np.bool_)
    on_front[feasible] = non_dominated(values[feasible])
    return on_front


def with_probabilities(table: pd.DataFrame, probabilities: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Add the probabilities of :func:`front_probabilities` to the table of a front.

    Returns
    -------
    pandas.DataFrame
        The table with a last column, "probability".
    str
        Number and probability of the other trials that are probably on the front; empty if there are none.
    """
    probability = probabilities.set_index("number")["probability"]
    others = probability[(probability > 0.5) & ~probability.index.isin(table["number"])]
    text = ", ".join(f"{number} ({value:.2f})" for number, value in others.items())
    return table.assign(probability=table["number"].map(probability)), text


def front_band(
    study: Study,
    posteriors: Sequence[Posterior],
    feasibility: Mapping[str, Posterior],
    probability: float,
    n: int,
    seed: int,
    reference: Reference | None = None,
) -> pd.DataFrame:
    """Return the posterior of the front of two objectives: the best second value at values of the first one.

    Functions of both objectives and of the models of feasibility are drawn jointly at the evaluated configurations and
    at a pool of others, as for `slayr_py.Regret` and with its inflation. At each value of the first objective, a draw
    has the best second value that any configuration attains at this value or a better one, and the reference point's if
    none attains it.

    Parameters
    ----------
    study : optuna.Study
        With two objectives and a feasible trial.
    posteriors : sequence of Posterior
    feasibility : mapping of str to Posterior
        Models of failures and constraints, by name.
    probability : float
        Probability of the band at each value, in (0, 1).
    n : int
        Number of values of the first objective, from the best of the drawn fronts to the reference point.
    seed : int
    reference : sequence or mapping, optional
        By default that of the present front.

    Returns
    -------
    pandas.DataFrame
        The first objective under its name, and low, median and high of the second one.

    Raises
    ------
    DataError
        If the study has not two objectives, no trial is feasible, or an argument is illegal.
    """
    check_several(study)
    goals = goals_of(study)
    if len(goals) != 2:
        raise DataError(
            f"study {study.study_name!r} has {len(goals)} objectives; the band of a front is for two of them"
        )
    probability = check_probability("probability", probability)
    n = check_integer("n", n, minimum=2)
    fixed = fixed_for_results(study, posteriors[0].encoder)
    every = observations_of_all(study, posteriors[0].encoder.space)
    observed = as_believed(study, every, feasibility, posteriors[0].train, fixed)
    models = list(feasibility.values())
    task = front_task(study, observed, posteriors, models, fixed, is_noisy(study), reference)
    if task is None:
        raise DataError(f"study {study.study_name!r} has no feasible trial with finite values")
    warn_of_forgotten_functions(study)
    with one_thread():
        fronts = draw_fronts(task, np.random.default_rng(check_integer("seed", seed, minimum=0))).fronts
    signs = signs_of(goals)
    limit = signs * task.reference
    best = np.median([np.min(signs[0] * front[:, 0], initial=limit[0]) for front in fronts])
    places = np.linspace(best, limit[0], n)
    attained = np.full((len(fronts), n), limit[1])
    for row, front in zip(attained, fronts, strict=True):
        first, second = (signs * front).T
        reached = first[:, None] <= places
        row[:] = np.where(reached, second[:, None], limit[1]).min(axis=0, initial=limit[1])
    tail = 0.5 * (1 - probability)
    low, median, high = np.sort(signs[1] * np.quantile(attained, [tail, 0.5, 1 - tail], axis=0), axis=0)
    return pd.DataFrame({goals[0].name: signs[0] * places, "low": low, "median": median, "high": high})


def beliefs_at_front(study: Study, posteriors: Sequence[Posterior]) -> tuple[FloatArray, FloatArray]:
    """Return posterior means and standard deviations (n, p) of the objectives at the trials of the front."""
    observed = observations(study, posteriors[0].encoder.space)
    numbers = {trial.number for trial in front_trials(study)}
    rows = [row for row, number in enumerate(observed.numbers) if number in numbers]
    predicted = [each.predict(each.train[rows]).centre_and_spread() for each in posteriors]
    centres, spreads = zip(*predicted, strict=True)
    return np.column_stack(centres), np.column_stack(spreads)


def reference_of(study: Study) -> FloatArray | None:
    """Return the reference point of the sampler, by default one for the present front; None without a feasible trial.

    It is in the user's units.
    """
    check_several(study)
    sign = signs_of(goals_of(study))
    trials = comparable_trials(study)
    if not trials:
        return None
    if (given := users_reference_of(study)) is not None:
        return given
    values = _values_seen(study, trials)
    return sign * default_reference(values, values[non_dominated(values)])


def users_reference_of(study: Study) -> FloatArray | None:
    """Return the reference point that the user gave the sampler; None if there is none, as of a loaded study."""
    declared = declared_space_of(study)
    given = None if declared is None else declared.options.reference_point
    return None if given is None else given_reference(given, goals_of(study))


def _values_seen(study: Study, trials: Sequence[FrozenTrial]) -> FloatArray:
    """Return the values (n, p) of trials as the model sees them, smaller is better.

    Without a declared space they are compressed among these trials alone.
    """
    signs = signs_of(goals_of(study))
    with suppress(SlayrError):  # no declared space, or a damaged attribute, which the model's own errors name
        observed = observations_of_all(study, space_of(study))
        rows = np.isin(observed[0].numbers, [trial.number for trial in trials])
        if rows.any():
            return np.asarray(signs * np.column_stack([each.y[rows] for each in observed]))
    values = signs * np.array([trial.values for trial in trials])
    near, searched = non_dominated(values), were_searched(trials)
    return np.column_stack([compress_far(each, near, searched).values for each in values.T])
