"""``slayr fit``: fit a Gaussian process to a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import typer

from slayr_py.cli.figures import save_posterior_figures
from slayr_py.cli.observations import read_observations
from slayr_py.cli.wrapping import wrapped
from slayr_py.display import table_text
from slayr_py.inference import FitOptions, GaussianProcess, Posterior, Warp
from slayr_py.study import attempts_text, describe_kernel, kernel_record, limits_text


def run(
    data: Path,
    *,
    target: str,
    space_file: Path | None,
    kernel: str,
    warp: Warp,
    options: FitOptions,
    seed: int,
    output: Path | None,
    parameters: Sequence[str] = (),
    ignored: Sequence[str] = (),
    drop_empty: bool = False,
) -> bool:
    """Fit a model to a table, print a summary, and save the posterior and figures.

    Parameters
    ----------
    data, target, space_file, parameters, ignored, drop_empty
        As for :func:`~slayr_py.cli.observations.read_observations`.
    kernel : str
        Name of a kernel, or an expression.
    warp : {"none", "log", "auto"}
        Transformation of the target.
    options : FitOptions
    seed : int
        Seed of the draws.
    output : Path or None
        Folder of the posterior and the figures; by default ``<data>_posterior`` in the working directory.

    Returns
    -------
    bool
        Whether the diagnostics pass.

    Raises
    ------
    ConfigError, DataError
        As raised by `read_observations`.
    DataError, SpaceError, ToolchainError, InferenceError, StorageError
        As raised by the fit.
    """
    configs, y, space = read_observations(data, target, space_file, parameters, ignored, drop_empty)
    gp = GaussianProcess(space, kernel=kernel, warp=warp)
    described = describe_kernel(kernel_record(gp.kernel, gp.encoder, automatic=kernel == "auto"))
    typer.echo(f"{len(y)} observations of {target}, {len(space)} parameters\nkernel: {described}")
    gp.prepare(lambda phase: typer.echo(f"{phase} ...", err=True))
    post = gp.fit(configs, y, seed=seed, options=options)
    passed = _print(post)
    folder = output or Path(f"{data.stem}_posterior")
    post.save(folder)
    typer.echo(f"\nposterior  {folder}  (load it with slayr_py.Posterior.load)")
    try:
        for figure in save_posterior_figures(post, folder):
            typer.echo(f"figure     {figure}")
    except OSError as error:  # the posterior is saved, and figures can be drawn from it later
        typer.echo(f"figure     none: {error}")
    return passed


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
            typer.echo(wrapped(text))
    return diagnostics.ok


def summary(post: Posterior) -> pd.DataFrame:
    """Tabulate mean, standard deviation and the 5%, 50% and 95% quantiles of every hyperparameter."""
    rows = []
    for name, variable in post.idata["posterior"].to_dataset().data_vars.items():
        flat = variable.stack(sample=("chain", "draw"))
        labels = [dimension for dimension in flat.dims if dimension != "sample"]
        entries = [(str(name), flat)]
        if labels:
            dimension = labels[0]
            entries = [
                (f"{name}[{label}]", flat.sel({dimension: label})) for label in flat.coords[dimension].to_numpy()
            ]
        for label, values in entries:
            low, middle, high = values.quantile([0.05, 0.5, 0.95]).to_numpy()
            rows.append(
                {
                    "hyperparameter": label,
                    "mean": float(values.mean()),
                    "sd": float(values.std(ddof=1)) if values.size > 1 else float("nan"),
                    "5%": float(low),
                    "50%": float(middle),
                    "95%": float(high),
                }
            )
    return pd.DataFrame(rows)
