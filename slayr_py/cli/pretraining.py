"""The section [pretrain] of a configuration file: a kernel learned from a table of related data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from slayr_py.cli.checks import ConfigError
from slayr_py.cli.csv_files import read_parameters
from slayr_py.cli.keys import check_section
from slayr_py.errors import DataError, SpaceError, did_you_mean
from slayr_py.kernels import Kernel, Matern
from slayr_py.space import Encoder
from slayr_py.svm import pretrain


def learn_kernel(table: Mapping[str, Any], folder: Path, encoder: Encoder) -> Kernel:
    """Learn the kernel of [pretrain] from related data, and print its warnings.

    Raises
    ------
    ConfigError, DataError
        For an unknown key or a wrong value, and if the file of related data cannot be used.
    """
    check_section(table, "pretrain")
    if "data" not in table:
        raise ConfigError('[pretrain] needs data = "FILE.csv": a column for each parameter and one for the value')
    related = read_parameters(folder / table["data"], encoder)
    column = table.get("column", "value")
    if column not in related:
        raise ConfigError(
            f"[pretrain]: {table['data']} has no column {column!r}{did_you_mean(column, [*map(str, related)])}"
        )
    if related[column].isna().any():
        row = int(related[column].isna().idxmax())
        raise ConfigError(f"[pretrain]: row {row} of {table['data']} has no {column}; remove such rows")
    arguments = {key: value for key, value in table.items() if key not in ("data", "column", "layers", "base", "p")}
    try:
        configs = related[[name for name in related if name in encoder.space and name != column]]
        learned = pretrain(encoder, configs, related[column].to_numpy(), **arguments)
        base = Matern(p=table.get("p", 2)) if table.get("base", True) else None
        kernel = learned.kernel(layers=table.get("layers", (1, 2)), base=base)
    except (DataError, SpaceError) as error:
        raise ConfigError(f"[pretrain]: {error}") from error
    for message in learned.messages:
        typer.echo(f"pre-training: {message}", err=True)
    return kernel
