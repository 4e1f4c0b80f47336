"""``slayr replay``: repeat a recorded fit."""

from __future__ import annotations

from typing import Any

import typer

from slayr_py.cli.studies import is_study, load_study
from slayr_py.display import printable
from slayr_py.errors import DataError, InferenceError
from slayr_py.inference import Replay, replay_folder
from slayr_py.kernels import from_name as kernel_from_name, label
from slayr_py.study import last_fitted, quiet_optuna, replay as replay_trial

IDENTICAL = 0
AGREES = 1
DISAGREES = 2


def run(source: str, *, trial: int | None, study_name: str | None) -> int:
    """Repeat the fit of a saved posterior, or the fits of a trial, and print the comparison.

    Parameters
    ----------
    source : str
        A ``record.json`` or its folder, an SQLite file, or a storage URL.
    trial : int or None
        Trial of a study; by default the last one with a fit.
    study_name : str or None
        Needed if the storage has several studies.

    Returns
    -------
    int
        The exit code.

    Raises
    ------
    StorageError, DataError, ToolchainError
        As raised by the replay.
    """
    try:
        replays = _replay(source, trial, study_name)
    except InferenceError as error:  # the recorded fit did not fail
        typer.echo(printable(f"slayr: {error}"), err=True)
        return DISAGREES
    for again in replays:
        if len(replays) > 1:
            typer.echo(printable(f"kernel       {_kernel(again.record)}"))
        typer.echo(printable(_report(again)))
    if not all(again.agrees for again in replays):
        return DISAGREES
    return IDENTICAL if all(again.identical for again in replays) else AGREES


def _kernel(record: dict[str, Any]) -> str:
    return label(kernel_from_name(record["kernel"]["name"], **record["kernel"]["options"]))


def _replay(source: str, trial: int | None, study_name: str | None) -> tuple[Replay, ...]:
    def report(phase: str) -> None:
        typer.echo(f"{phase} ...", err=True)

    if not is_study(source):
        if trial is not None or study_name is not None:
            raise DataError(f"{source} is not a study: --trial and --study-name need an SQLite file or a storage URL")
        return (replay_folder(source, report)[1],)
    with quiet_optuna():
        study = load_study(source, study_name)
        number = last_fitted(study) if trial is None else trial
        typer.echo(printable(f"study        {study.study_name}, trial {number}"))
        return replay_trial(study, number, report)


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
        errors = "relative" if arguments["method"] == "map" else "Monte Carlo errors"
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
