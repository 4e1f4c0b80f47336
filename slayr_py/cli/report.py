"""``slayr report``: write a page about a stored study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from slayr_py.cli.options import Epsilon, Study, StudyName, announce
from slayr_py.cli.studies import load_study
from slayr_py.display import printable
from slayr_py.study import quiet_optuna, write_report


def report(
    study: Study,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="File to write.")] = Path(
        "report.html"
    ),
    study_name: StudyName = None,
    epsilon: Epsilon = None,
) -> None:
    """Write a page about a study, as one HTML file.

    The file needs no network and no server. It has what slayr inspect prints, and figures: convergence with the noise
    of the observations, importance of the parameters, the posterior along each parameter and over pairs of them,
    hyperparameters, and feasibility. The page says which parts are missing, and why.

    The model is fitted to all finished trials, which takes seconds to minutes. Studies of other samplers and studies
    without a fit have a page without the model.

    For example:
      slayr report nusvr_diabetes.db
      slayr report sqlite:///studies.db --study-name net -o net.html
    """
    with quiet_optuna():
        page = write_report(load_study(study, study_name), output, announce, epsilon=epsilon)
    typer.echo(printable(f"report {page}"))
