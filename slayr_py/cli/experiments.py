"""Read the past experiments of a configuration file and of the option ``--history``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import typer

from slayr_py.cli.checks import ConfigError
from slayr_py.cli.config import Config
from slayr_py.display import printable
from slayr_py.study import FileForm, read_experiments


def target_columns(settings: Config, target: str | None) -> tuple[str, ...]:
    """Return the columns of the results: of one objective ``target``, of several their names or numbers.

    Raises
    ------
    ConfigError
        If several objectives have a target.
    """
    chosen = target or settings.target
    directions = settings.options.get("directions")
    if directions is None:
        return (chosen or "value",)
    if chosen is not None:
        raise ConfigError(
            f"target = {chosen!r} is for one objective; name several by directions: "
            '{ yield = "maximize", cost = "minimize" }'
        )
    return tuple(directions) if isinstance(directions, Mapping) else tuple(map(str, range(len(directions))))


def read_history(
    path: Path, settings: Config, target: str | None = None, separator: str | None = None
) -> tuple[pd.DataFrame, FileForm]:
    """Read a table of experiments, and print notes about it on standard error.

    Raises
    ------
    DataError
        As `slayr_py.study.read_experiments`.
    """
    return read_experiments(
        path,
        settings.space,
        target_columns(settings, target),
        cost=settings.options.get("cost"),
        constraints=settings.options.get("constraints", ()),
        separator=separator,
        note=lambda text: typer.echo(printable(f"note: {text}"), err=True),
    )
