"""``slayr inspect``: show a stored study."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import typer

from slayr_py.cli.checks import ConfigError
from slayr_py.cli.recommendation import recommendation_text
from slayr_py.cli.studies import load_study
from slayr_py.cli.wrapping import wrapped
from slayr_py.display import cell, config_lines, printable, table_text
from slayr_py.errors import DataError
from slayr_py.study import (
    FAILURE_KEY,
    FIT_COLUMNS,
    Result,
    convergence_figure,
    describe_kernel,
    fit_notes,
    fit_table,
    fits_remarks,
    found_kernels,
    has_recommendation,
    quiet_optuna,
    regret_table,
    search_table,
    space_of,
    study_record,
    suggestion_record,
    trials_table,
)


def run(study: str, *, study_name: str | None, n_trials: int, figure: Path | None) -> None:
    """Print a study.

    Parameters
    ----------
    study, study_name
        As in `load_study`.
    n_trials : int
        Number of trials and of fits to print, the last ones.
    figure : Path or None
        File for the convergence figure.

    Raises
    ------
    StorageError, DataError
        As raised by `load_study`.
    """
    with quiet_optuna():
        loaded = load_study(study, study_name)
    record = study_record(loaded)
    trials = loaded.get_trials(deepcopy=False)
    _print(f"study {loaded.study_name}: {len(trials)} trials, {loaded.direction.name.lower()}")
    if record is not None:
        noise = ", noisy objective" if record.get("noisy") else ""
        _print(f"kernel: {describe_kernel(record['kernel'])}")
        if found := found_kernels(loaded):
            typer.echo(wrapped(f"found: {found}", indent=""))
        _print(f"acquisition {record['acquisition']}, seed {record['seed']}{noise}")
        space = space_of(loaded)
    else:
        space = None
    result = Result(loaded, space) if space is not None else None
    if result is not None and has_recommendation(loaded):
        typer.echo("fitting the model for the recommendation ...", err=True)
        _print(f"\n{recommendation_text(result)}")
    try:
        value, config = (result.best_value, result.best_config) if result else (loaded.best_value, loaded.best_params)
        _print(f"\nbest value {value:.6g}, at\n{config_lines(config)}")
    except (DataError, ValueError) as error:
        _print(f"\nno best trial: {error}")

    table = trials_table(loaded, space)
    table.columns = table.columns.str.removeprefix("params_")
    _print(f"\ntrials{_last(len(table), n_trials)}\n{table_text(table.tail(n_trials) if n_trials else table[:0])}")
    for trial in trials[len(trials) - n_trials :] if n_trials < len(trials) else trials:
        if reason := trial.user_attrs.get(FAILURE_KEY):
            _print(f"  trial {trial.number} failed: {reason}")

    failed = [trial for trial in trials if trial.state.name == "FAIL"]
    if failed:
        _print(f"failures: {len(failed)} of {len(trials)} trials")
    violated = [trial for trial in trials if any(value > 0 for value in trial.constraints.values())]
    if violated:
        _print(f"constraints: violated by {len(violated)} of {len(trials)} trials")

    _print_regret(regret_table(loaded))
    _print_searches(search_table(loaded))
    fits = fit_table(loaded)
    _print(f"\nfits{_last(len(fits), n_trials)}")
    if fits.empty:
        _print("  none yet: all trials belong to the initial design")
    elif n_trials:
        _print_fits(fits.tail(n_trials), {trial.number: suggestion_record(trial) for trial in trials})
    if figure is not None:
        try:
            convergence_figure(loaded).savefig(figure, dpi=150)
        except (OSError, ValueError) as error:
            raise ConfigError(f"the figure {figure} cannot be written: {error}") from error
        _print(f"\nfigure {figure}")


def _print(text: str) -> None:
    typer.echo(printable(text))


def _print_regret(estimates: pd.DataFrame) -> None:
    """Print the last estimate of a stopping rule."""
    if estimates.empty:
        return
    last = estimates.iloc[-1]
    target = _cell(last["target"], "g")
    upper = _cell(last["upper"], ".3g")
    _print(
        f"stopping rule: after {last['observations']} observations P(regret < {_cell(last['epsilon'], 'g')}) = "
        f"{_cell(last['probability'], '.3f')}, {target} is needed; mean regret {_cell(last['mean'], '.3g')}, "
        f"P(regret < {upper}) = {target}"
    )


def _print_searches(searches: pd.DataFrame) -> None:
    """Print what each kernel search has found."""
    if searches.empty:
        return
    _print("\nkernel searches")
    for row in searches.to_dict("records"):
        error = f"; failed: {row['error']}" if row["error"] else ""
        found = row["expressions"] or "nothing better than the plain kernel"
        text = f"trial {row['number']}, due at {row['due']} observations, {_cell(row['fits'], '')} fits: {found}{error}"
        typer.echo(wrapped(text))


def _print_fits(fits: pd.DataFrame, records: Mapping[int, Mapping[str, Any]]) -> None:
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
            typer.echo(wrapped(f"trial {number}: {note}"))
    for remark in fits_remarks(shown):
        typer.echo(wrapped(remark))


def _cell(value: Any, form: str) -> str:
    """Format a number; write any other value of a stored study on one line."""
    if form and isinstance(value, float) and math.isfinite(value):
        return f"{value:{form}}"
    return " ".join(cell(value).split())


def _last(count: int, shown: int) -> str:
    return f" (the last {shown} of {count})" if shown < count else ""
