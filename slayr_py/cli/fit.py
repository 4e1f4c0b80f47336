"""``slayr fit``: fit a Gaussian process to a table."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer
from ConfigSpace import (
    CategoricalHyperparameter,
    ConfigurationSpace,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)
from ConfigSpace.hyperparameters import Hyperparameter

from slayr_py.cli.checks import ConfigError
from slayr_py.cli.columns import parameter_columns
from slayr_py.cli.csv_files import read_table
from slayr_py.cli.figures import save_posterior_figures
from slayr_py.cli.fit_text import attempts_text, limits_text, wrapped
from slayr_py.cli.inline_space import LARGEST_FLOAT, LARGEST_INTEGER, read_space
from slayr_py.display import table_text
from slayr_py.errors import DataError, did_you_mean
from slayr_py.inference import GaussianProcess, Posterior
from slayr_py.inference.model import Warp
from slayr_py.inference.sampling.options import FitOptions
from slayr_py.study.storage.attributes import describe_kernel, kernel_record

_LISTED = 5  # rows listed in a message
_SMALLEST_SPAN = 1e-11  # ConfigSpace rounds floats to 13 decimals


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
    data : Path
        CSV file with a header and one row per observation.
    target : str
        Column to model.
    space_file : Path or None
        Space as ConfigSpace JSON; None takes the ranges of the other columns, without row numbers and dates.
    kernel : str
        Name of a kernel, or an expression.
    warp : {"none", "log", "auto"}
        Transformation of the target.
    options : FitOptions
    seed : int
        Seed of the draws.
    output : Path or None
        Folder of the posterior and the figures; by default ``<data>_posterior`` in the working directory.
    parameters, ignored : sequence of str
        Columns that are parameters in any case, or never; only without a space.
    drop_empty : bool
        Whether to leave out rows with an empty target; otherwise they raise an error.

    Returns
    -------
    bool
        Whether the diagnostics pass.

    Raises
    ------
    ConfigError
        If the table cannot be read or lacks a column, or the columns of a space are chosen again.
    DataError
        If a target is empty or not a number.
    DataError, SpaceError, ToolchainError, InferenceError, StorageError
        As raised by the fit.
    """
    table = _read(data, target)
    y = _targets(table[target], data, drop_empty)
    columns, space = _columns_and_space(table.drop(columns=target), y.index, data, space_file, parameters, ignored)

    gp = GaussianProcess(space, kernel=kernel, warp=warp)
    described = describe_kernel(kernel_record(gp.kernel, gp.encoder, automatic=kernel == "auto"))
    typer.echo(f"{len(y)} observations of {target}, {len(space)} parameters\nkernel: {described}")
    gp.prepare(lambda phase: typer.echo(f"{phase} ...", err=True))
    post = gp.fit(_rows(columns, space), y.to_numpy(dtype="float64"), seed=seed, options=options)
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


def _targets(column: pd.Series[Any], data: Path, drop_empty: bool) -> pd.Series[Any]:
    """Return the target of each row as a number, without the empty ones if they may be dropped."""
    empty = [int(row) + 1 for row in np.flatnonzero(column.isna())]
    if empty:
        which = f"row {empty[0]}" if len(empty) == 1 else f"{len(empty)} rows ({_listed(empty)})"
        if len(empty) == len(column):
            raise DataError(f"{data} has no value of {column.name}: all its cells are empty")
        if not drop_empty:
            raise DataError(
                f"the {column.name} of {which} of {data} is empty or NaN: fill it in, or leave such rows out with "
                "--drop-empty"
            )
        typer.echo(f"left out: {which} with an empty {column.name}")
        column = column.dropna()
    y = pd.to_numeric(column, errors="coerce")
    if y.isna().any():
        row = y.index[int(y.isna().to_numpy().argmax())]
        raise DataError(f"row {row + 1} of {data} has the {column.name} {column[row]!r}, which is not a number")
    return y


def _listed(rows: Sequence[int]) -> str:
    return ", ".join(map(str, rows[:_LISTED])) + (", ..." if len(rows) > _LISTED else "")


def _columns_and_space(
    columns: pd.DataFrame,
    rows: pd.Index[Any],
    data: Path,
    space_file: Path | None,
    parameters: Sequence[str],
    ignored: Sequence[str],
) -> tuple[pd.DataFrame, ConfigurationSpace]:
    """Return the columns of the parameters in these rows, and their space; print which columns are left out."""
    if space_file is None:
        names, notes = parameter_columns(columns, data, parameters, ignored)
        for note in notes:
            typer.echo(note)
        columns = columns.loc[rows, names]
        return columns, infer_space(columns)
    if parameters or ignored:
        raise ConfigError("--space names the parameters; leave out --parameter and --ignore")
    space = read_space(space_file)
    if missing := [name for name in space if name not in columns]:
        raise ConfigError(
            f"{data} has no column for the parameter {missing[0]!r}{did_you_mean(missing[0], columns.columns)}"
        )
    return columns.loc[rows, list(space)], space


def infer_space(columns: pd.DataFrame) -> ConfigurationSpace:
    """Return the space of a table's columns: ranges of numbers, categories of anything else.

    Parameters
    ----------
    columns : pandas.DataFrame
        One column per parameter.

    Raises
    ------
    DataError
        If a column is constant or empty.
    """
    space = ConfigurationSpace()
    space.add(*(_parameter(str(name), columns[name].dropna()) for name in columns.columns))
    return space


def _parameter(name: str, values: pd.Series[Any]) -> Hyperparameter[Any, Any]:
    distinct = values.unique()
    if len(distinct) < 2:
        raise DataError(
            f"column {name!r} does not vary, so the fit cannot use it: leave it out with "
            f"--ignore {shlex.quote(name)}, or give a space with --space"
        )
    if pd.api.types.is_bool_dtype(values) or not pd.api.types.is_numeric_dtype(values):
        return CategoricalHyperparameter(name, sorted((_python(value) for value in distinct), key=str))
    if not np.isfinite(values).all():
        raise DataError(f"column {name!r} has the value {values[~np.isfinite(values)].iloc[0]}: drop such rows")
    low, high = float(values.min()), float(values.max())
    if max(-low, high) > LARGEST_FLOAT or high - low < _SMALLEST_SPAN:
        extent = "large" if max(-low, high) > LARGEST_FLOAT else "small"
        raise DataError(
            f"column {name!r} spans from {low} to {high}, which is too {extent} for ConfigSpace: rescale it, or leave "
            f"it out with --ignore {shlex.quote(name)}"
        )
    # pandas reads a column of integers with an empty cell as floats.
    if (values == values.round()).all() and max(-low, high) <= LARGEST_INTEGER:
        return UniformIntegerHyperparameter(name, int(values.min()), int(values.max()))
    # ConfigSpace rounds bounds. Rounded outwards to fewer digits before, they contain every value.
    unit = 10.0 ** (math.floor(math.log10(high - low)) - 6)
    return UniformFloatHyperparameter(name, math.floor(low / unit) * unit, math.ceil(high / unit) * unit)


def _rows(columns: pd.DataFrame, space: ConfigurationSpace) -> list[dict[str, Any]]:
    """Return the rows of a table as configurations, without empty cells and with whole numbers as integers."""
    rows = []
    for record in columns.astype(object).to_dict(orient="records"):
        row = {str(name): _python(value) for name, value in record.items() if not pd.isna(value)}
        for name, value in row.items():
            if (
                isinstance(space[name], UniformIntegerHyperparameter)
                and isinstance(value, float)
                and value.is_integer()
            ):
                row[name] = int(value)
        rows.append(row)
    return rows


def _python(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _read(data: Path, target: str) -> pd.DataFrame:
    table = read_table(data)
    if target not in table.columns:
        raise ConfigError(
            f"{data} has no column {target!r}{did_you_mean(target, [str(name) for name in table.columns])}"
        )
    return table


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
