"""``slayr replay``: repeat a recorded fit."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from slayr_py.cli.options import StudyName, announce
from slayr_py.cli.studies import is_study, load_study
from slayr_py.display import printable
from slayr_py.errors import DataError, InferenceError
from slayr_py.inference import METHODS, Replay, replay as replay_saved
from slayr_py.kernels import from_name as kernel_from_name
from slayr_py.study import last_fitted, quiet_optuna, replay as replay_trial

# Exit codes of a replay that is not identical bit for bit.
AGREES = 1  # within Monte Carlo error
DISAGREES = 2  # or cannot be repeated


def replay(
    record: Annotated[
        str, typer.Argument(metavar="RECORD", help="A record.json or its folder; an SQLite file or a storage URL.")
    ],
    trial: Annotated[int | None, typer.Option(min=0, help="Trial of a study; default: the last with a fit.")] = None,
    study_name: StudyName = None,
) -> None:
    """Repeat a recorded fit and compare the draws.

    The record belongs to a saved posterior (record.json with data.json beside it) or to a suggestion in a study.

    On the same machine with the same compiler and packages all draws are bit-identical. Otherwise the command lists the
    differences of the environment, and whether means and standard deviations of the hyperparameters agree within their
    Monte Carlo errors.

    Exit codes:
      0  identical, bit for bit
      1  not identical, but the summaries agree
      2  the summaries disagree, or Stan fails; also a wrong option, or a trial without a fit
      3  no usable compiler or CmdStan
      4  no readable record, or data that do not belong to the record

    For example:
      slayr replay runs_posterior
      slayr replay runs_posterior/record.json
      slayr replay study.db --trial 14
    """
    try:
        replays = _replay(record, trial, study_name)
    except InferenceError as error:  # the recorded fit did not fail
        typer.echo(printable(f"slayr: {error}"), err=True)
        raise typer.Exit(DISAGREES) from None
    for again in replays:
        if len(replays) > 1:
            typer.echo(printable(f"kernel       {_kernel(again.record)}"))
        typer.echo(printable(_report(again)))
    if not all(again.agrees for again in replays):
        raise typer.Exit(DISAGREES)
    if not all(again.identical for again in replays):
        raise typer.Exit(AGREES)


def _kernel(record: dict[str, Any]) -> str:
    return kernel_from_name(record["kernel"]["name"], **record["kernel"]["options"]).short_name


def _replay(source: str, trial: int | None, study_name: str | None) -> tuple[Replay, ...]:
    if not is_study(source):
        if trial is not None or study_name is not None:
            raise DataError(f"{source} is not a study: --trial and --study-name need an SQLite file or a storage URL")
        return (replay_saved(source, progress=announce),)
    with quiet_optuna():
        study = load_study(source, study_name)
        number = last_fitted(study) if trial is None else trial
        typer.echo(printable(f"study        {study.study_name}, trial {number}"))
        return replay_trial(study, number, announce)


def _report(again: Replay) -> str:
    record = again.record
    arguments = record["arguments"]
    lines = [
        f"record       {arguments['method']} of {record['program']['name']}, seed {arguments['seed']}, "
        f"made {record.get('made')} in {record.get('seconds')} s; repeated in {again.seconds:.3f} s",
        f"draws        {'identical, bit for bit' if again.identical else 'not identical'}",
    ]
    if again.worst == 0:
        lines.append("summaries    the same")
    else:
        errors = "relative" if METHODS[arguments["method"]].point_estimate else "Monte Carlo errors"
        verdict = "agree" if again.agrees else "DISAGREE"
        lines.append(
            f"summaries    {verdict}: largest difference {again.worst:.3g} {errors} "
            f"({again.worst_of}), limit {again.limit:.3g}"
        )
    if again.differences:
        return "\n".join([*lines, "differs", *(f"  {line}" for line in again.differences)])
    same = "environment  as recorded"
    if not again.identical:
        same += "; the source code of slayr_py or the record itself must have changed"
    return "\n".join([*lines, same])
