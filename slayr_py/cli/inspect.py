"""``slayr inspect``: show a stored study."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import optuna
import pandas as pd
import typer
from ConfigSpace import ConfigurationSpace
from optuna.trial import FrozenTrial

from slayr_py.acquisition import prior_text
from slayr_py.cli.checks import ConfigError
from slayr_py.cli.front import directions_text, front_text
from slayr_py.cli.options import Study, StudyName, announce
from slayr_py.cli.recommendation import recommendation_text
from slayr_py.cli.studies import load_study
from slayr_py.cli.wrapping import wrap
from slayr_py.display import cell, config_lines, printable, table_text
from slayr_py.errors import DataError, StorageError
from slayr_py.study import (
    FAILURE_KEY,
    FIT_COLUMNS,
    Result,
    SuggestionRecord,
    convergence_figure,
    cost_name,
    curve_table,
    describe_kernel,
    fit_notes,
    fit_table,
    fits_remarks,
    fitted_numbers,
    found_kernels,
    front_figure,
    has_recommendation,
    has_several,
    last_regret,
    last_regret_about,
    pruning_text,
    quiet_optuna,
    reference_of,
    search_table,
    space_of,
    spent,
    study_record,
    suggestion_record,
    trials_table,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DECISION = ["number", "state", "decided", "probability", "best", "mean", "sd", "value"]


def inspect(
    study: Study,
    study_name: StudyName = None,
    trials: Annotated[int, typer.Option(min=0, help="Number of trials to show, the last ones.")] = 20,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also save a figure of the convergence or front.")
    ] = None,
) -> None:
    """Show a study and the diagnostics of its fits.

    Diagnostics:
      rhat       near 1 if the chains agree; do not trust a fit above 1.03, or
                 1.11 in a loop
      ess        effective sample size in the bulk and in the tails
      div        divergent transitions: many mean that the draws may miss a part
                 of the posterior
      treedepth  trajectories stopped at the largest tree depth
      ebfmi      energy fraction: below 0.2 the sampler explores slowly
      pareto_k   error of importance sampling: at most 0.7
      method     carried: importance sampling from the last fit, or the prior
      since_cold number of fits since the last cold start
      k_loo      influence of a single observation; a note, not a failure
      start      carried or warm from an earlier fit, or cold
      attempts   number of fits
      ok         all but k_loo are within the limits printed below the table
      *          after the number: no fit behind the suggestion is ok

    For example:
      slayr inspect nusvr_diabetes.db
      slayr inspect sqlite:///studies.db --study-name net --figure net.png
    """
    with quiet_optuna():
        loaded = load_study(study, study_name)
    stored = loaded.get_trials(deepcopy=False)
    _print(f"study {loaded.study_name}: {len(stored)} trials, {directions_text(loaded)}")
    record = study_record(loaded)
    space = None if record is None else space_of(loaded)
    if record is not None:
        noise = ", noisy objective" if record.get("noisy") else ""
        _print(f"kernel: {describe_kernel(record['kernel'])}")
        if kernels := found_kernels(loaded):
            typer.echo(wrap(f"found: {kernels}", indent=""))
        _print(f"acquisition {record['acquisition']}, seed {record['seed']}{noise}")
        if record.get("prior"):
            typer.echo(wrap(f"prior of the optimum: {prior_text(record['prior'])}", indent=""))
    _print_best(loaded, space)

    table = trials_table(loaded, space)
    table.columns = table.columns.str.removeprefix("params_")
    _print(f"\ntrials{_last(len(table), trials)}\n{table_text(table.tail(trials) if trials else table[:0])}")
    _print_failures(stored, trials)
    if (cost := cost_name(loaded)) is not None:
        _print(f"cost: {spent(loaded, cost).describe(cost)}")
    _print_pruning(loaded, trials)
    _print_regret(last_regret(loaded), last_regret_about(loaded))
    _print_searches(search_table(loaded))
    fits = fit_table(loaded)
    _print(f"\nfits{_last(len(fits), trials)}")
    if fits.empty:
        _print("  none yet: all trials belong to the initial design")
    elif trials:
        _print_fits(fits.tail(trials), {trial.number: suggestion_record(trial) for trial in stored})
    if figure is not None:
        try:
            _figure(loaded, space).savefig(figure, dpi=150)
        except OSError as error:
            raise StorageError(f"the figure {figure} cannot be written: {error}") from error
        except ValueError as error:  # an unknown format
            raise ConfigError(f"the figure {figure} cannot be written: {error}") from error
        _print(f"\nfigure {figure}")


def _figure(study: optuna.Study, space: ConfigurationSpace | None) -> Figure:
    """Return the figure of the convergence, or of the front, with the band of two objectives that have a fit."""
    if not has_several(study):
        return convergence_figure(study)
    if space is None or len(study.directions) != 2 or not fitted_numbers(study) or reference_of(study) is None:
        return front_figure(study)
    announce("fitting the models for the band of the front")
    return Result(study, space).plot_front(band=0.9)


def _print_best(study: optuna.Study, space: ConfigurationSpace | None) -> None:
    """Print the recommendation of a noisy study, and the best trial, or the front of several objectives."""
    result = None if space is None else Result(study, space)
    if has_several(study):
        probabilities = None
        try:
            if result is not None and has_recommendation(study):
                announce("fitting the models for the probabilities of the front")
                probabilities = result.front_probability()
            _print(f"\n{front_text(study, probabilities)}")
        except DataError as error:
            _print(f"\nno front: {error}")
        return
    if result is not None and has_recommendation(study):
        announce("fitting the model for the recommendation")
        _print(f"\n{recommendation_text(result)}")
    try:
        value, config = (result.best_value, result.best_config) if result else (study.best_value, study.best_params)
        _print(f"\nbest value {value:.6g}, at\n{config_lines(config)}")
    except (DataError, ValueError) as error:
        _print(f"\nno best trial: {error}")


def _print_failures(trials: Sequence[FrozenTrial], n_shown: int) -> None:
    """Print the reasons of the last failures, and how many trials have failed or violate a constraint."""
    for trial in trials[max(len(trials) - n_shown, 0) :]:
        if reason := trial.user_attrs.get(FAILURE_KEY):
            _print(f"  trial {trial.number} failed: {reason}")
    failed = [trial for trial in trials if trial.state.name == "FAIL"]
    if failed:
        _print(f"failures: {len(failed)} of {len(trials)} trials")
    violated = [trial for trial in trials if any(value > 0 for value in trial.constraints.values())]
    if violated:
        _print(f"constraints: violated by {len(violated)} of {len(trials)} trials")


def _print_pruning(study: optuna.Study, n_shown: int) -> None:
    """Print how many trials were pruned, the last decisions about them, and why there was none."""
    if not (pruning := pruning_text(study)):
        return
    _print(f"\npruning: {pruning}")
    table = curve_table(study)
    for why in table["why"].dropna().unique():
        typer.echo(wrap(f"no decision: {why}"))
    decided = table[table["decided"].notna()]
    if n_shown and len(decided):
        shown = decided.tail(n_shown)
        _print(f"last decision about each trial{_last(len(decided), n_shown)}")
        columns = {name: [_cell(value, ".4g") for value in shown[name]] for name in _DECISION}
        _print(table_text(pd.DataFrame(columns)))


def _print(text: str) -> None:
    typer.echo(printable(text))


def _print_regret(last: pd.Series | None, about: str) -> None:
    """Print the estimate by which a stopping rule stopped the study, or the last one, and what it is about."""
    if last is None:
        return
    target = _cell(last["target"], "g")
    upper = _cell(last["upper"], ".3g")
    _print(
        f"stopping rule: after {last['observations']} observations P(regret < {_cell(last['epsilon'], 'g')}) = "
        f"{_cell(last['probability'], '.3f')}, {target} is needed; mean regret {_cell(last['mean'], '.3g')}, "
        f"P(regret < {upper}) = {target}" + (f";{about}" if about else "")
    )


def _print_searches(searches: pd.DataFrame) -> None:
    """Print the result of each kernel search."""
    if searches.empty:
        return
    _print("\nkernel searches")
    for row in searches.to_dict("records"):
        error = f"; failed: {row['error']}" if row["error"] else ""
        outcome = f"{row['expressions'] or 'nothing better than the plain kernel'}{error}"
        fits = f"{_cell(row['fits'], '')} fits"
        typer.echo(wrap(f"trial {row['number']}, due at {row['due']} observations, {fits}: {outcome}"))


def _print_fits(fits: pd.DataFrame, records: Mapping[int, SuggestionRecord]) -> None:
    """Print one row per fit, then the discarded attempts and the limits of the diagnostics."""
    columns = {name: column for name, column in FIT_COLUMNS.items() if fits[name].notna().any()}
    cells = {title: [_cell(value, form) for value in fits[name]] for name, (title, form) in columns.items()}
    doubtful = [trusted is False for trusted in fits["trusted"].tolist()]
    number = FIT_COLUMNS["number"][0]
    cells[number] = [f"{n}{'*' if mark else ' '}" for n, mark in zip(cells[number], doubtful, strict=True)]
    _print(table_text(pd.DataFrame(cells)))
    if any(doubtful):
        _print("  * this suggestion does not come from a fit that passed its diagnostics")
    shown = {number: records[number] for number in fits["number"]}
    for number, record in shown.items():
        for note in fit_notes(record):
            typer.echo(wrap(f"trial {number}: {note}"))
    for remark in fits_remarks(shown):
        typer.echo(wrap(remark))


def _cell(value: Any, form: str) -> str:
    """Format a number; write any other value of a stored study on one line."""
    if form and isinstance(value, float) and math.isfinite(value):
        return f"{value:{form}}"
    return " ".join(cell(value).split())


def _last(count: int, shown: int) -> str:
    return f" (the last {shown} of {count})" if shown < count else ""
