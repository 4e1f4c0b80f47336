"""``slayr report``: write a page about a stored study."""

from __future__ import annotations

from pathlib import Path

import typer

from slayr_py.cli.studies import load_study
from slayr_py.display import printable
from slayr_py.study import quiet_optuna, write_report


def run(study: str, *, study_name: str | None, output: Path | None) -> None:
    """Write the page and print its path; slow steps are announced on standard error.

    Parameters
    ----------
    study, study_name
        As in `load_study`.
    output : Path or None
        The file; by default ``report.html`` in the working directory.

    Raises
    ------
    StorageError, DataError
        As raised by `load_study`, or if the file cannot be written.
    """

    def report(step: str) -> None:
        typer.echo(f"{step} ...", err=True)

    with quiet_optuna():
        page = write_report(load_study(study, study_name), output or Path("report.html"), report)
    typer.echo(printable(f"report {page}"))
