"""``slayr optimize``: run the study of a configuration file and print the result."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from slayr_py.cli.checks import ConfigError, check_file_name
from slayr_py.cli.config import load_config
from slayr_py.cli.experiments import read_history
from slayr_py.cli.front import directions_text, front_text
from slayr_py.cli.keys import STUDY
from slayr_py.cli.manual import manual
from slayr_py.cli.options import Quiet
from slayr_py.cli.recommendation import recommendation_text
from slayr_py.cli.studies import study_argument
from slayr_py.display import config_lines, printable
from slayr_py.errors import DataError, ObjectiveError
from slayr_py.study import (
    Result,
    cost_name,
    declared_space_of,
    describe_kernel,
    fixed_values_text,
    found_kernels,
    has_recommendation,
    has_several,
    is_history,
    minimize,
    spent,
    stopping_text,
    suggestion_table,
    url_without_password,
)


def optimize(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="The configuration file, described above.")],
    budget: Annotated[int | None, typer.Option(help=STUDY["budget"].help)] = None,
    seed: Annotated[int | None, typer.Option(help=STUDY["seed"].help)] = None,
    storage: Annotated[str | None, typer.Option(metavar="URL", help=STUDY["storage"].help)] = None,
    study_name: Annotated[str | None, typer.Option(metavar="NAME", help=STUDY["name"].help)] = None,
    output: Annotated[Path | None, typer.Option(metavar="DIR", help=STUDY["output"].help)] = None,
    noisy: Annotated[bool | None, typer.Option("--noisy/--no-noisy", help=STUDY["noisy"].help)] = None,
    history: Annotated[Path | None, typer.Option(metavar="FILE", help=STUDY["history"].help)] = None,
    quiet: Quiet = False,
) -> None:
    """Minimise (or maximise) the objective of a configuration file."""
    settings = load_config(config)
    assert settings.objective is not None
    overrides = {"budget": budget, "seed": seed, "noisy": noisy}
    options = settings.options | {key: value for key, value in overrides.items() if value is not None}
    if (table := history or settings.history) is not None:
        options["history"], _ = read_history(table, settings)
    name = check_file_name(settings.name if study_name is None else study_name)
    folder = output or settings.output
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"the output folder {str(folder)!r} cannot be created: {reason}; choose another") from error
    url = storage or settings.storage or f"sqlite:///{(folder / name).as_posix()}.db"
    shown = url_without_password(url)
    command = _resume_command(config, storage and shown, study_name, output)
    try:
        result = minimize(
            settings.objective,
            settings.space,
            **options,
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


optimize.__doc__ = f"{optimize.__doc__}\n\n{manual()}"


def _report(result: Result, name: str, folder: Path, url: str, command: str) -> None:
    several = has_several(result.study)
    try:
        best = front_text(result.study) if several else config_lines(result.best_config)
    except DataError as error:
        # Every trial failed or returned NaN.
        raise ObjectiveError(str(error)) from None
    if has_recommendation(result.study) and not several:
        typer.echo(recommendation_text(result))
    trials = result.trials
    failed = int((trials["state"] == "FAIL").sum())
    past = sum(map(is_history, result.study.get_trials(deepcopy=False)))
    counts = [f"{past} past experiments"] * (past > 0) + [f"{failed} failed"] * (failed > 0)
    among = f" ({', '.join(counts)})" if counts else ""
    fixed = fixed_values_text(result.study)
    if several:
        typer.echo(f"{directions_text(result.study)}{fixed} in {len(trials)} trials{among}")
    else:
        typer.echo(f"best value {result.best_value:.6g}{fixed} in {len(trials)} trials{among}, at")
    typer.echo(printable(best))
    declared = declared_space_of(result.study)
    assert declared is not None
    typer.echo(f"kernel      {describe_kernel(declared.kernel_record)}")
    if kernels := found_kernels(result.study):
        typer.echo(printable(f"found       {kernels}"))
    typer.echo(_fits_line(result))
    if (cost := cost_name(result.study)) is not None:
        typer.echo(f"cost        {spent(result.study, cost).describe(cost)}")
    stopped = stopping_text(result.study)
    if stopped:
        typer.echo(printable(f"stopped     {stopped}"))
    figure = f"{name}_front.png" if several else f"{name}_convergence.png"
    typer.echo(f"figure      {_save_figure(result, folder / figure)}")
    typer.echo(f"study       {url}")
    typer.echo(f"inspect     {shlex.join(['slayr', 'inspect', study_argument(url), '--study-name', name])}")
    first = "after lowering epsilon in stop: " if stopped else ""
    typer.echo(f"resume      {first}{command} --budget {2 * (len(trials) - past)}")


def _save_figure(result: Result, path: Path) -> str:
    """Save the figure of the convergence or of the front; an error of the disk does not fail the finished study."""
    try:
        figure = result.plot_front() if has_several(result.study) else result.plot_convergence()
        figure.savefig(path, dpi=150)
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


def _resume_command(path: Path, storage: str | None, study_name: str | None, output: Path | None) -> str:
    """Return the command that resumes this study."""
    words = ["slayr", "optimize", str(path)]
    if storage:
        words += ["--storage", storage]
    if study_name:
        words += ["--study-name", study_name]
    if output:
        words += ["--output", str(output)]
    return shlex.join(words)
