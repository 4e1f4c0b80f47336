"""Tables of the trials, suggestions, kernel searches and estimates of the regret of a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd
from ConfigSpace import ConfigurationSpace
from optuna import Study
from optuna.trial import FrozenTrial, TrialState

from slayr_py.acquisition import non_dominated
from slayr_py.display import cell
from slayr_py.errors import DataError
from slayr_py.inference import CHECKS, AbandonedAttempt
from slayr_py.study.sampler import declared_space_of
from slayr_py.study.storage.attributes import regret_records, stopping_record, suggestion_record
from slayr_py.study.storage.columns import CONSTRAINT, PARAMETER, STATE, TRIAL_COLUMNS, Outcomes
from slayr_py.study.storage.costs import cost_name, cost_of
from slayr_py.study.storage.objectives import finite_values, goal_of, goals_of, has_several, signs_of
from slayr_py.study.storage.optuna_private import partly_fixed
from slayr_py.study.storage.reading import trials_of
from slayr_py.study.storage.search_records import stored_searches
from slayr_py.study.storage.suggestion import StackPart, SuggestionRecord
from slayr_py.study.storage.trials import is_feasible, known_error, trial_configuration

_Table = TypeVar("_Table", bound=Mapping[str, Any])

FIT_COLUMNS = {
    "number": ("trial", ""),
    "phase": ("phase", ""),
    "kernel": ("kernel", ""),
    "method": ("method", ""),
    "observations": ("n", ""),
    **{name: (check.short, check.form) for name, check in CHECKS.items()},
    "start": ("start", ""),
    "since_cold": ("since_cold", ""),
    "attempts": ("attempts", ""),
    "ok": ("ok", ""),
    "feasible": ("feasible", ".2f"),
    "seconds_fit": ("fit [s]", ".1f"),
    "seconds_acquisition": ("search [s]", ".1f"),
}
"""Title and format of the columns of `suggestion_table` that are shown to a user."""


def finite_trials(study: Study) -> list[FrozenTrial]:
    """Return the complete trials with finite values, in order."""
    complete = trials_of(study, (TrialState.COMPLETE,))
    return [trial for trial in complete if finite_values(trial) is not None]


def feasible_trials(study: Study) -> list[FrozenTrial]:
    """Return the complete trials with a finite value that violate no constraint, in order.

    If the study has constraints, trials that do not report all of them are left out.
    """
    finite = finite_trials(study)
    names = {name for trial in finite for name in trial.constraints}
    return [trial for trial in finite if is_feasible(trial, names)]


def comparable_trials(study: Study) -> list[FrozenTrial]:
    """Return the feasible trials that have the fixed values of the study's sampler, in order.

    They include those of a `PartialFixedSampler`. Without a declared space, its parameters may be absent: conditions
    are unknown.
    """
    feasible = feasible_trials(study)
    declared = declared_space_of(study)
    if declared is None:
        given = partly_fixed(study).items()
        return [trial for trial in feasible if all(trial.params.get(name, value) == value for name, value in given)]
    if (fixed := declared.fixed_for_run(study)) is None:
        return feasible
    known = [
        (trial, config) for trial in feasible if (config := trial_configuration(trial, declared.space)) is not None
    ]
    holds = fixed.hold(declared.encoder.encode([config for _, config in known]))
    return [trial for (trial, _), same in zip(known, holds, strict=True) if same]


def fixed_values_text(study: Study) -> str:
    """Return " with the fixed values x=1", empty if the study's sampler fixes none."""
    declared = declared_space_of(study)
    fixed = None if declared is None else declared.fixed_for_run(study)
    values = partly_fixed(study) if declared is None else {} if fixed is None else fixed.values
    return _fixed_text(values)


def _fixed_text(values: Mapping[str, Any]) -> str:
    shown = ", ".join(f"{name}={value!r}" for name, value in values.items())
    return f" with the fixed values {shown}" if shown else ""


def trials_table(study: Study, space: ConfigurationSpace | None = None) -> pd.DataFrame:
    """Tabulate a study's trials: number, value, y_sd if a trial has a known error, state, params_<name>.

    Several objectives have the columns values_<name> and y_sd_<name> each. If a trial has reported values, last_step
    follows the state: `curve_table` has the decisions to prune trials. The cost of a study with one is a column of its
    name after the state, and so are constraints_<name>, by how much a trial exceeds the bound of a constraint, which
    holds where that is not positive.

    Parameters
    ----------
    study : optuna.Study
    space : ConfigurationSpace, optional
        Its parameters come first, in its order, even if no trial has them.
    """
    trials = study.get_trials(deepcopy=False)
    declared = list(space) if space is not None else []
    parameters = [*declared, *sorted({name for trial in trials for name in trial.params} - set(declared))]
    complete = [trial.values if trial.state == TrialState.COMPLETE else None for trial in trials]
    outcomes = Outcomes(tuple(goal.name for goal in goals_of(study)), cost_name(study))
    own = {
        name: pd.Series([attrgetter(attribute)(trial) for trial in trials], dtype=dtype)
        for name, (attribute, dtype) in TRIAL_COLUMNS.items()
    }
    values = {name: [each and each[i] for each in complete] for i, name in enumerate(outcomes.values)}
    errors = {name: [_known_error(trial, i) for trial in trials] for i, name in enumerate(outcomes.errors)}
    known = errors if any(map(any, errors.values())) else {}
    costs = {name: [cost_of(trial, name) for trial in trials] for name in outcomes.costs[:1]}
    bounded = sorted({name for trial in trials for name in trial.constraints})
    excess = {CONSTRAINT + name: [trial.constraints.get(name) for trial in trials] for name in bounded}
    return pd.DataFrame(
        {
            "number": own.pop("number"),
            **{name: pd.Series(cells, dtype="float64") for name, cells in {**values, **known}.items()},
            STATE: own.pop(STATE),
            **{name: pd.Series(cells, dtype="float64") for name, cells in {**costs, **excess}.items()},
            **{name: cells for name, cells in own.items() if cells.notna().any()},
            **{PARAMETER + name: pd.Series([trial.params.get(name) for trial in trials]) for name in parameters},
        }
    )


def _known_error(trial: FrozenTrial, objective: int) -> float | None:
    """Return the known error of a value; None if it is unknown, or one that a fit rejects."""
    try:
        return known_error(trial, objective) or None
    except DataError:
        return None


def front_trials(study: Study) -> list[FrozenTrial]:
    """Return the feasible trials that no other one dominates, in order; equal ones do not dominate each other."""
    trials = comparable_trials(study)
    if not trials:
        return []
    sign = signs_of(goals_of(study))
    values = sign * np.array([trial.values for trial in trials])
    return [trial for trial, chosen in zip(trials, non_dominated(values), strict=True) if chosen]


def best_trial(study: Study) -> FrozenTrial | None:
    """Return the first trial with the best value among the `comparable_trials`, or None if there is none."""
    choose = max if goal_of(study, None).maximize else min
    return choose(comparable_trials(study), key=lambda trial: float(trial.values[0]), default=None)


def suggestion_table(study: Study) -> pd.DataFrame:
    """Tabulate the suggestions of a study and their diagnostics, one row per trial.

    Parameters
    ----------
    study : optuna.Study
        Trials of other samplers have empty cells.

    Returns
    -------
    pandas.DataFrame
        number, phase, kernel, method, observations (number fitted); rhat_max, ess_bulk_min, ess_tail_min,
        divergences, max_treedepth_hits, ebfmi_min, loo_pareto_k_max (of leave-one-out), pareto_k (of importance ratios)
        and ok, as in `Diagnostics`; start ("carried" or "warm" from an earlier fit, or "cold"), since_cold (number of
        fits since the last cold start), attempts (number of fits), trusted (whether the suggestion comes from a fit
        that passed its diagnostics; None if it needs no fit);
        predicted_mean, predicted_sd (in the objective's units; of several objectives each with "_" and a name),
        acquisition, feasible (probability of success and of no violated constraint; empty if neither is modelled),
        seconds_fit, seconds_acquisition, error.
    """
    rows = []
    since_cold = None
    for trial in study.get_trials(deepcopy=False):
        record = suggestion_record(trial)
        phase = record.get("phase")
        fit, seconds = entry(record.get("fit")), entry(record.get("seconds"))
        diagnostics = entry(record.get("diagnostics"))
        if fit.get("start") == "cold":
            since_cold = 0
        elif record.get("method") and since_cold is not None:
            since_cold += 1
        rows.append(
            {
                "number": trial.number,
                "phase": phase,
                "kernel": record.get("kernel"),
                "method": record.get("method"),
                "observations": record.get("observations"),
                **{name: diagnostics.get(name) for name in (*CHECKS, "ok")},
                "start": fit.get("start"),
                "since_cold": since_cold if fit else None,
                "attempts": 1 + len(abandoned_attempts(record)) if fit else None,
                "trusted": _all_ok(record) if phase in ("model", "random") else None,
                **_predicted(study, record),
                "acquisition": entry(record.get("acquisition")).get("value"),
                "feasible": record.get("feasible"),
                "seconds_fit": seconds.get("fit"),
                "seconds_acquisition": seconds.get("acquisition"),
                "error": record.get("error"),
            }
        )
    return pd.DataFrame(rows)


def _predicted(study: Study, record: SuggestionRecord) -> dict[str, Any]:
    """Return the columns of the predictions of the only objective, or of each of several."""
    if not has_several(study):
        predicted = entry(record.get("predicted"))
        return {"predicted_mean": predicted.get("mean"), "predicted_sd": predicted.get("sd")}
    stored = record.get("objectives")
    parts = stored if isinstance(stored, list) else []
    columns: dict[str, Any] = {}
    for goal in goals_of(study):
        part = entry(parts[goal.number] if goal.number < len(parts) else None)
        predicted = entry(part.get("predicted"))
        columns[f"predicted_mean_{goal.name}"] = predicted.get("mean")
        columns[f"predicted_sd_{goal.name}"] = predicted.get("sd")
    return columns


def fit_table(study: Study) -> pd.DataFrame:
    """Return the rows of `suggestion_table` with a fit, or with a fit that failed."""
    table = suggestion_table(study)
    return table[table["phase"].isin(["model", "random"])] if not table.empty else table


def search_table(study: Study) -> pd.DataFrame:
    """Tabulate the kernel searches of a study, one row per search.

    Returns
    -------
    pandas.DataFrame
        number of the trial that was suggested after it, observations at which it was ``due``, expressions (the best
        first), the name of the ``score`` and the ``best`` one, fits, seconds, seed, error.
    """
    rows = []
    for search in stored_searches(study):
        record = search.record
        scores = search.record.get("scores")
        rows.append(
            {
                "number": search.trial,
                "due": search.due,
                "expressions": ", ".join(search.expressions),
                "score": record.get("score"),
                "best": scores[0] if isinstance(scores, list) and scores else None,
                **{name: record.get(name) for name in ("fits", "seconds", "seed", "error")},
            }
        )
    columns = ["number", "due", "expressions", "score", "best", "fits", "seconds", "seed", "error"]
    return pd.DataFrame(rows, columns=columns)


def regret_table(study: Study) -> pd.DataFrame:
    """Tabulate the estimates of a stopping rule, one row per estimate.

    An estimate from the same trials replaces the last one, unless that stopped the study by a looser rule.

    Returns
    -------
    pandas.DataFrame
        number of the last trial that was fitted, incumbent (number of the best trial), observations (number of fitted
        trials), epsilon, target (the wanted probability), probability that the regret of the incumbent is below
        epsilon, mean of the regret, upper (its quantile with the probability target), inflation (factor on the standard
        deviations of the function), stop (whether the rule held). See `slayr_py.Regret`.
    """
    return _regret_rows(regret_records(study))


def _regret_rows(records: Sequence[tuple[int, Mapping[str, Any]]]) -> pd.DataFrame:
    columns = ["number", "incumbent", "observations", "epsilon", "target", "probability", "mean", "upper"]
    columns += ["inflation", "stop"]
    return pd.DataFrame([{"number": number, **record} for number, record in records], columns=columns)


def last_regret(study: Study) -> pd.Series | None:
    """Return the last row of `regret_table`, or that by which its rule had stopped the study; None without rows."""
    records = regret_records(study)
    if not records:
        return None
    return _regret_rows(records).iloc[_deciding(records)]


def last_regret_about(study: Study) -> str:
    """Return within which reference point and with which fixed values the estimate of `last_regret` holds.

    It is " within the reference point (0.6, 0) with the fixed values x=1"; empty without both, or if they are unknown.
    """
    records = regret_records(study)
    about = entry(records[_deciding(records)][1].get("about")) if records else {}
    text = ""
    if has_several(study) and "reference_point" in about:
        point = about["reference_point"]
        given = f"reference point ({', '.join(map(cell, point))})" if isinstance(point, list) else ""
        text = f" within the {given or 'default reference point'}"
    return text + _fixed_text(entry(about.get("fixed")))


def stopping_text(study: Study) -> str:
    """Return the probability by which the rule of the last estimate had stopped the study; empty if it has not.

    It is "P(regret < 0.1) = 0.97 >= 0.95 after 20 observations".
    """
    estimates = [record for _, record in regret_records(study)]
    record = stopping_record(estimates, estimates[-1]) if estimates else None
    if record is None:
        return ""
    probability = record.get("probability")
    reached = f"{probability:.2f}" if isinstance(probability, float) else cell(probability)
    rule = f"P(regret < {record['epsilon']:g}) = {reached} >= {record['target']:g}"
    return f"{rule} after {cell(record.get('observations'))} observations"


def _deciding(records: Sequence[tuple[int, Mapping[str, Any]]]) -> int:
    """Return the place of the estimate by which the rule of the last one had stopped the study, else of the last."""
    estimates = [record for _, record in records]
    stopped = stopping_record(estimates, estimates[-1])
    return -1 if stopped is None else estimates.index(stopped)


def found_kernels(study: Study) -> str | None:
    """Describe the kernels behind the last suggestion after a kernel search, with their weights, the largest first.

    None if there was no search, or if no suggestion has used its expressions.
    """
    if next(stored_searches(study), None) is None:
        return None
    for trial in reversed(study.get_trials(deepcopy=False)):
        if parts := sorted(stack_parts(suggestion_record(trial)), key=lambda part: -part["weight"]):
            return ", ".join(f"{part['weight']:.2f} {part.get('kernel')}" for part in parts)
    return None


def stack_parts(record: SuggestionRecord) -> list[StackPart]:
    """Return the parts with a weight in the suggestion record of a stack; none if it has no stack."""
    parts = entry(record.get("stack")).get("parts")
    mappings = [part for part in parts if isinstance(part, Mapping)] if isinstance(parts, list) else []
    return [part for part in mappings if isinstance(part.get("weight"), float)]


def _all_ok(record: SuggestionRecord) -> bool:
    """Return whether the fit behind a suggestion and the models of its feasibility passed their diagnostics."""
    models = [entry(model).get("diagnostics") for model in entry(record.get("conditions")).values()]
    return all(entry(checks).get("ok") is True for checks in (record.get("diagnostics"), *models))


def entry(value: _Table | None) -> _Table:
    """Return an entry of a record that is a mapping; empty if it is missing or, in a damaged study, anything else."""
    return value if isinstance(value, Mapping) else cast(_Table, {})


def abandoned_attempts(record: SuggestionRecord | StackPart) -> list[AbandonedAttempt]:
    """Return the discarded attempts in the suggestion record of a trial or of a part of a stack."""
    abandoned = entry(record.get("fit")).get("abandoned")
    return [attempt for attempt in abandoned if isinstance(attempt, Mapping)] if isinstance(abandoned, list) else []
