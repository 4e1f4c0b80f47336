"""``slayr fit``: fit a Gaussian process to a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import pandas as pd
import typer

from slayr_py.cli.exit_codes import FAILED
from slayr_py.cli.figures import save_posterior_figures
from slayr_py.cli.observations import Source, read_observations
from slayr_py.cli.options import announce, expand
from slayr_py.cli.wrapping import wrap
from slayr_py.display import table_text
from slayr_py.inference import FitOptions, GaussianProcess, Posterior, Warp
from slayr_py.space import FloatArray
from slayr_py.study import attempts_text, describe_kernel, kernel_record, limits_text


@expand(source=Source, options=FitOptions)
def fit(
    *,
    source: Source,
    kernel: Annotated[str, typer.Option(help='Name of a kernel, or an expression: "LIN * PER + SE".')] = "auto",
    options: FitOptions,
    warp: Annotated[str, typer.Option(help="none, auto, log or best: compress large values.")] = "none",
    seed: Annotated[int, typer.Option(min=0, help="Random seed; the same seed gives the same draws.")] = 1,
    output: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the posterior; default: <data>_posterior.")
    ] = None,
) -> None:
    """Fit a Gaussian process to a table and summarise its posterior.

    Every column but the target is a parameter: floats, integers, or categories. A text in a column whose cells are
    mostly numbers is an error, unless --space declares categories; "NA" and "None" are levels, not empty cells. Row
    numbers and dates are left out with a note: columns with 0 to n - 1 or 1 to n in order, columns called run, trial,
    index, number or id, and columns of dates or times. --parameter includes such a column, dates such as 2024-03-01 as
    the time since the first, with a note; --ignore leaves out any other. Scales are linear; a note names columns that
    seem to be logarithmic. With --space, the space defines the parameters, and an empty cell means that the parameter
    is inactive. A row with an empty target is an error, or is left out with --drop-empty. Prints a summary and the
    diagnostics, and saves the posterior and ArviZ's trace and pair figures. Exit code 1 if the diagnostics fail.

    For example:
      slayr fit runs.csv --target loss
      slayr fit runs.csv --target loss --ignore seconds --ignore host
      slayr fit runs.csv --target loss --space space.json --method pathfinder
      slayr fit runs.csv --target loss --drop-empty  (failed runs have no loss)
      slayr fit runs.csv --target loss --warp log    (a few losses are far larger)
      slayr fit co2.csv --target ppm --kernel "LIN + SE * PER"
    """
    configs, y, space = read_observations(source)
    gp = GaussianProcess(space, kernel=kernel, warp=cast(Warp, warp))  # GaussianProcess checks the name
    typer.echo(f"kernel: {describe_kernel(kernel_record(gp.kernel, gp.encoder, automatic=kernel == 'auto'))}")
    gp.prepare(announce)
    post = gp.fit(configs, y, seed=seed, options=options)
    passed = _print(post)
    folder = output or Path(f"{source.data.stem}_posterior")
    post.save(folder)
    typer.echo(f"\nposterior  {folder}  (load it with slayr_py.Posterior.load)")
    try:
        for figure in save_posterior_figures(post, folder):
            typer.echo(f"figure     {figure}")
    except OSError as error:  # the posterior is saved, and figures can be drawn from it later
        typer.echo(f"figure     none: {error}")
    if not passed:
        raise typer.Exit(FAILED)


def _print(post: Posterior) -> bool:
    typer.echo(
        f"\nhyperparameters for the standardised target and the unit cube, {post.n_draws} draws\n"
        f"{table_text(summary(post))}"
    )
    diagnostics = post.check()
    as_dict = diagnostics.asdict()
    typer.echo(f"\ndiagnostics  {diagnostics}  {'ok' if diagnostics.ok else 'NOT OK'}")
    attempts = [attempts_text(post.record["abandoned"], as_dict)] if post.record["abandoned"] else []
    limits = limits_text(as_dict)
    for text in (*diagnostics.messages, *attempts, *diagnostics.notes, f"limits: {limits}" if limits else None):
        if text:
            typer.echo(wrap(text))
    return diagnostics.ok


def summary(post: Posterior) -> pd.DataFrame:
    """Tabulate mean, standard deviation and the 5%, 50% and 95% quantiles of every hyperparameter."""
    columns: dict[str, FloatArray] = {}
    for hyperparameter in post.model.hyperparameters:
        draws = post.draws[hyperparameter.name].reshape(post.n_draws, -1)
        columns |= {entry: draws[:, i] for i, entry in enumerate(hyperparameter.entries)}
    table = pd.DataFrame(columns)
    moments = pd.DataFrame({"mean": table.mean(), "sd": table.std()})
    moments[["5%", "50%", "95%"]] = table.quantile([0.05, 0.5, 0.95]).T
    return moments.rename_axis("hyperparameter").reset_index()
