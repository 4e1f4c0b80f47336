"""Read CSV tables: data to fit, related data, and lists of configurations."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import typer

from slayr_py.display import printable
from slayr_py.errors import DataError
from slayr_py.space import Encoder
from slayr_py.study import read_cells
from slayr_py.text_files import decimal_mark, table_note


def read_table(path: Path, types: Mapping[str, type] | None = None) -> pd.DataFrame:
    """Read a CSV file with a header and at least one row; ``types`` of columns as in `pandas.read_csv`.

    Semicolons or tabs between cells and decimal commas are recognised, and empty rows are left out, with a note on
    standard error. Only cells that are empty or NaN are missing values: "None" and "NA" may be levels. The index has
    the positions of the rows in the file, from 0.

    Raises
    ------
    DataError
        If the file cannot be read, is not a table, or has no rows.
    """
    (header, *rows), separator = read_cells(path)
    decimal = decimal_mark(separator, (cell for row in rows for cell in row))
    kept = [i for i, row in enumerate(rows) if any(row)]
    text = io.StringIO()
    csv.writer(text, delimiter=separator).writerows([header, *(rows[i] for i in kept)])
    text.seek(0)
    table: pd.DataFrame = pd.read_csv(
        text, sep=separator, decimal=decimal, dtype=types, keep_default_na=False, na_values=["", "nan", "NaN"]
    )
    if form := table_note(path, separator, decimal):
        typer.echo(printable(f"note: {form}"), err=True)
    if table.empty:
        raise DataError(f"{path} has a header but no rows")
    if empty := len(rows) - len(kept):
        typer.echo(printable(f"note: {path.name} has {empty} empty row{'s' * (empty > 1)}, left out"), err=True)
    table.index = pd.Index(kept)
    return table


def read_parameters(path: Path, encoder: Encoder) -> pd.DataFrame:
    """Read a table with columns of parameters; rows count from 1.

    Levels that are texts are read as texts, also if they look like numbers.

    Raises
    ------
    DataError
        As in `read_table`.
    """
    texts = [d.name for d in encoder.dimensions if d.levels and all(isinstance(level, str) for level in d.levels)]
    table = read_table(path, {column: str for name in texts for column in (name, f"params_{name}")})
    table.index += 1
    return table
