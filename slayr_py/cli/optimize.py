"""``slayr optimize``: run the study of a configuration file and print the result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from slayr_py.cli.checks import ConfigError, check_file_name
from slayr_py.cli.config import load_config
from slayr_py.cli.csv_files import read_past_experiments
from slayr_py.cli.recommendation import recommendation_text
from slayr_py.display import config_lines, printable
from slayr_py.errors import DataError, ObjectiveError
from slayr_py.study import (
    Result,
    declared_space_of,
    describe_kernel,
    found_kernels,
    has_recommendation,
    is_history,
    minimize,
    regret_table,
    suggestion_table,
    url_without_password,
)


def run(
    path: Path,
    *,
    overrides: dict[str, Any],
    storage: str | None,
    study_name: str | None,
    output: Path | None,
    quiet: bool,
    history: Path | None = None,
) -> None:
    """Run the study of a configuration file; arguments that are not None override the file.

    Raises
    ------
    SlayrError
        As raised by `load_config` and `minimize`.
    """
    config = load_config(path)
    if history is not None:
        overrides = {**overrides, "history": read_past_experiments(history, config.space)}
    name = check_file_name(config.name if study_name is None else study_name)
    folder = output or config.output
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"the output folder {str(folder)!r} cannot be created: {reason}; choose another") from error
    url = storage or config.storage or f"sqlite:///{(folder / name).as_posix()}.db"
    shown = url_without_password(url)
    command = _resume_command(path, storage and shown, study_name, output)
    try:
        result = minimize(
            config.objective,
            config.space,
            **{**config.options, **overrides},
            storage=url,
            study_name=name,
            progress=not quiet,
        )
    except ObjectiveError as error:
        raise type(error)(f"{error}: {shown}. After correcting it, resume with: {command}") from error.__cause__
    except KeyboardInterrupt:
        typer.echo(f"stopped; finished evaluations are in {shown}. Resume with: {command}", err=True)
        raise
    _report(result, name, folder, shown, command)


def _report(result: Result, name: str, folder: Path, url: str, command: str) -> None:
    try:
        best = config_lines(result.best_config)
    except DataError as error:
        # Every trial failed or returned NaN.
        raise ObjectiveError(str(error)) from None
    if has_recommendation(result.study):
        typer.echo(recommendation_text(result))
    trials = result.trials
    failed = int((trials["state"] == "FAIL").sum())
    past = sum(map(is_history, result.study.get_trials(deepcopy=False)))
    counts = [f"{past} past experiments"] * (past > 0) + [f"{failed} failed"] * (failed > 0)
    among = f" ({', '.join(counts)})" if counts else ""
    typer.echo(f"best value {result.best_value:.6g} in {len(trials)} trials{among}, at")
    typer.echo(best)
    declared = declared_space_of(result.study)
    assert declared is not None
    typer.echo(f"kernel      {describe_kernel(declared.kernel_record)}")
    if found := found_kernels(result.study):
        typer.echo(printable(f"found       {found}"))
    typer.echo(_fits_line(result))
    stopped = _stopped_line(result)
    if stopped:
        typer.echo(stopped)
    typer.echo(f"figure      {_save_figure(result, folder / f'{name}_convergence.png')}")
    typer.echo(f"study       {url}")
    typer.echo(f"inspect     slayr inspect {url.removeprefix('sqlite:///')} --study-name {name}")
    first = "after lowering epsilon in stop: " if stopped else ""
    typer.echo(f"resume      {first}{command} --budget {2 * (len(trials) - past)}")


def _save_figure(result: Result, path: Path) -> str:
    """Save the convergence figure; an error of the disk does not fail the finished study."""
    try:
        result.plot_convergence().savefig(path, dpi=150)
    except OSError as error:
        return f"none: {path} cannot be written: {error.strerror or error}"
    return str(path)


def _fits_line(result: Result) -> str:
    """Return a line with the number of fits that passed their diagnostics."""
    table = suggestion_table(result.study)
    fitted = table[table["phase"] == "model"]
    failed = int((table["phase"] == "random").sum())
    if fitted.empty and not failed:
        return "fits        none: the initial design used the whole budget"
    passed = int((fitted["ok"].fillna(False) == True).sum())  # noqa: E712  (a column of objects)
    line = f"fits        {passed} of {len(fitted)} passed their diagnostics"
    return f"{line}; {failed} suggestions without a fit" if failed else line


def _stopped_line(result: Result) -> str:
    """Return a line about the stopping rule if it holds, else nothing."""
    estimates = regret_table(result.study)
    if estimates.empty or not estimates["stop"].iloc[-1]:
        return ""
    last = estimates.iloc[-1]
    return f"stopped     P(regret < {last['epsilon']:g}) = {last['probability']:.2f} >= {last['target']:g}"


def _resume_command(path: Path, storage: str | None, study_name: str | None, output: Path | None) -> str:
    """Return the command that resumes this study."""
    parts = [f"slayr optimize {path}"]
    if storage:
        parts.append(f"--storage {storage}")
    if study_name:
        parts.append(f"--study-name {study_name}")
    if output:
        parts.append(f"--output {output}")
    return " ".join(parts)
