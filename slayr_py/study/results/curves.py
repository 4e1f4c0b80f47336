"""Learning curves of a study: a table of the decisions about its trials, and a figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from optuna import Study
from optuna.trial import TrialState

from slayr_py.space import FloatArray
from slayr_py.study.results.colours import BEST, RUNNING, TRIAL
from slayr_py.study.results.figures import shown_figure
from slayr_py.study.storage.curves import curve_of, evidence_of, prune_record
from slayr_py.study.storage.objectives import check_one_objective

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_DRAWN = 50
"""Most points of a curve in a figure."""

_COLOURS = {TrialState.COMPLETE: TRIAL, TrialState.PRUNED: BEST, TrialState.RUNNING: RUNNING}


def curve_table(study: Study) -> pd.DataFrame:
    """Tabulate the last decision of `slayr_py.Prune` about each trial that has reported values.

    Returns
    -------
    pandas.DataFrame
        number, state, steps (last reported step), reported (number of values), ignored (reported values that are not
        finite), decided (step of the last decision), probability that the final value is better than ``best``, the best
        value at that time of the trials with the same fixed values; mean and sd of the predicted final value; evidence
        and evidence_sd, what the model of the objective learns from a pruned trial; value of a complete trial; why
        there was no decision.
    """
    columns = ["number", "state", "steps", "reported", "ignored", "decided", "probability", "best", "mean", "sd"]
    columns += ["evidence", "evidence_sd", "value", "why"]
    rows = []
    for trial in study.get_trials(deepcopy=False):
        if not trial.intermediate_values:
            continue
        record = prune_record(trial)
        decisions = record.get("decisions")
        last: Mapping[str, Any] = decisions[-1] if decisions else {}
        curve = curve_of(trial)
        evidence, sd = evidence_of(trial) or (None, None)
        rows.append(
            {
                "number": trial.number,
                "state": trial.state.name,
                "steps": curve.last_step,
                "reported": len(trial.intermediate_values),
                "ignored": curve.dropped,
                "decided": last.get("step"),
                **{name: last.get(name) for name in ("probability", "best", "mean", "sd")},
                "evidence": evidence,
                "evidence_sd": sd,
                "value": curve.final,
                "why": record.get("why"),
            }
        )
    numbers = dict.fromkeys(["probability", "best", "mean", "sd", "evidence", "evidence_sd", "value"], "float64")
    return pd.DataFrame(rows, columns=columns).astype({**numbers, "decided": "Int64"})


def pruning_text(study: Study) -> str:
    """Return one sentence about the trials that were pruned; empty if no trial has reported values."""
    table = curve_table(study)
    if table.empty:
        return ""
    pruned = table[table["state"] == TrialState.PRUNED.name]
    full = table.loc[table["state"] == TrialState.COMPLETE.name, "steps"].max()
    text = f"{len(pruned)} of {len(table)} trials with a curve were pruned"
    if np.isfinite(full):
        text += f", after {pruned['steps'].sum():.0f} of {len(pruned) * full:.0f} steps"
    ignored = int(table["ignored"].sum())
    return text + (f"; {ignored} reported values are not finite and were ignored" if ignored else "")


def curves_figure(study: Study) -> Figure:
    """Draw the reported values of all trials, and the predicted final values of those that were pruned.

    Parameters
    ----------
    study : optuna.Study
        With one objective.

    Returns
    -------
    matplotlib.figure.Figure
        Drawn without pyplot.

    Raises
    ------
    DataError
        If the study has several objectives.
    """
    check_one_objective(study, "learning curves belong to one")
    figure, axes = shown_figure(4.0)
    draw_curves(study, axes, _COLOURS)
    return figure


def draw_curves(study: Study, axes: Any, colours: Mapping[TrialState, str]) -> None:
    """Draw the curves of a study; an error bar at the last step is the last prediction for a pruned trial."""
    trials = study.get_trials(deepcopy=False)
    curves = [curve_of(trial, MOST_DRAWN) for trial in trials if trial.state in colours]
    ends = [curve.last_step for curve in curves if curve.last_step is not None]
    labelled: set[TrialState] = set()
    for curve in curves:
        if len(curve.steps):
            label = None if curve.state in labelled else curve.state.name.lower()
            labelled.add(curve.state)
            style = ".-" if len(curve.steps) < 3 else "-"
            axes.plot(
                curve.steps, curve.values, style, color=colours[curve.state], lw=0.8, ms=3, label=label, alpha=0.8
            )
    label = "predicted"
    for trial in trials:
        decisions = prune_record(trial).get("decisions")
        if trial.state == TrialState.PRUNED and decisions and ends:
            last = decisions[-1]
            colour = colours[TrialState.PRUNED]
            axes.errorbar(max(ends), last["mean"], last["sd"], fmt="_", color=colour, lw=0.6, label=label, alpha=0.5)
            label = "_predicted"
    values = np.concatenate([curve.values for curve in curves]) if curves else np.zeros(0)
    if len(values) and (limits := _limits(values)) is not None:
        axes.set_ylim(*limits)
    axes.set_xlabel("step")
    axes.set_ylabel("value")
    if labelled:
        axes.legend(loc="best")


def _limits(values: FloatArray) -> tuple[float, float] | None:
    """Return limits of the axis for values (n,) without those far outside the bulk; None if there are none of these.

    A diverged curve would hide all others.
    """
    first, third = np.quantile(values, [0.25, 0.75])
    reach = 5 * (third - first)
    near = values[(values >= first - reach) & (values <= third + reach)]
    if reach == 0 or len(near) == len(values):
        return None
    margin = 0.05 * np.ptp(near)
    return float(near.min() - margin), float(near.max() + margin)
